"""Measures building and searching an index against bm25s on the same passages; not a test.

    pip install bm25s numba
    python tests/retrieval/corpus/measure_index.py pairs FOLDER… --work-folder /somewhere
    python tests/retrieval/corpus/measure_index.py made-up --documents 1000000 --work-folder /somewhere

`pairs` takes folders with `corpus.jsonl` ({id, title, text}) and `questions.jsonl` ({question, gold_titles}), indexes
all passages together, and searches every question. Recall at 10 is the share of questions with ALL gold titles among
the first 10 hits (and the mean share of gold titles there), of questions that name gold titles. `made-up` writes
documents of 60 to 100 words, whose frequencies follow Zipf's law over 500,000 words, and searches 8 different words of
one document.

Each engine builds in a process of its own, where anonymous memory is sampled 20 times a second; a mapped file is not
counted, since the system may drop it. Both split, stem and fold alike (bm25s is given our terms and k1 = 1.2,
b = 0.75); bm25s has one field, title and text together. Its time is given with and without making terms, which ours
always includes. Searches alternate between the engines, one thread each, documents included, after a warm-up.
bm25s searches with numba where it is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

K = 10
WIKI_18 = 21_015_324
"""Passages of the wiki-18 corpus."""


class PeakMemory(threading.Thread):
    """Samples the anonymous memory of this process, in megabytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self.start()

    def run(self) -> None:
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.peak = max(self.peak, int(line.split()[1]) / 1000)
            time.sleep(0.05)


def passages(corpus: Path) -> Iterator[tuple[str, str, str]]:
    with open(corpus, encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            yield record["id"], record["title"], record["text"]


def build_ours(corpus: Path, folder: Path) -> dict[str, Any]:
    from retrieval.corpus.index import CorpusIndex, build_index

    memory, started = PeakMemory(), time.perf_counter()
    info = build_index([corpus], folder, "measured", fresh=True)
    return {
        "documents": info.documents,
        "seconds": time.perf_counter() - started,
        "peak_mb": memory.peak,
        "disk_mb": sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
        "segments": CorpusIndex(folder)._searcher.num_segments,
    }


def build_bm25s(corpus: Path, folder: Path) -> dict[str, Any]:
    import bm25s
    from bm25s.tokenization import Tokenized

    from retrieval.corpus.analysis import english_terms

    memory, started = PeakMemory(), time.perf_counter()
    vocabulary: dict[str, int] = {}
    ids = [
        [vocabulary.setdefault(term, len(vocabulary)) for term in english_terms(f"{title} {text}")]
        for _, title, text in passages(corpus)
    ]
    tokenised = time.perf_counter()
    engine = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    engine.index(Tokenized(ids=ids, vocab=vocabulary), show_progress=False)
    engine.save(str(folder), corpus=[{"id": identity} for identity, _, _ in passages(corpus)])
    done = time.perf_counter()
    return {
        "documents": len(ids),
        "seconds": done - started,
        "seconds_without_terms": done - tokenised,
        "peak_mb": memory.peak,
        "disk_mb": sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
    }


def search_both(ours: Path, theirs: Path, queries: list[str]) -> dict[str, Any]:
    """Search alternately; return (found ids, seconds) of each engine."""
    import bm25s

    from retrieval.corpus.analysis import query_terms
    from retrieval.corpus.index import CorpusIndex

    index = CorpusIndex(ours)
    engine = bm25s.BM25.load(str(theirs), load_corpus=True)
    numba = True
    try:
        engine.activate_numba_scorer()
    except ImportError:
        numba = False

    # Its documents hold no text, so ours are looked up for both.
    def search_bm25s(query: str) -> list[str]:
        terms = [term for term in query_terms(query) if term in engine.vocab_dict]
        found = engine.retrieve([terms], k=K, show_progress=False, n_threads=0).documents[0] if terms else []
        return [document["id"] for document in found]

    def search_ours(query: str) -> list[str]:
        return [document.id for document in index.search(query, K)]

    engines: dict[str, Callable[[str], list[str]]] = {"tantivy": search_ours, "bm25s": search_bm25s}
    for query in queries[:20]:
        for search in engines.values():
            search(query)
    found: dict[str, list[list[str]]] = {name: [] for name in engines}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for query in queries:
        for name, search in engines.items():
            started = time.perf_counter()
            found[name].append(search(query))
            seconds[name].append(time.perf_counter() - started)
    return {"numba": numba, "found": found, "seconds": seconds}


def made_up(path: Path, documents: int, words: int = 500_000, exponent: float = 1.07) -> None:
    """Write documents with made-up words."""
    import numpy as np

    rng = np.random.default_rng(0)
    shares = np.cumsum(np.arange(1, words + 1) ** -exponent)
    shares /= shares[-1]
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < words:
        drawn = np.minimum(rng.geometric(0.12, rng.integers(2, 11)) - 1, 25)
        vocabulary.setdefault("".join(letters[drawn]))
    known = np.array(list(vocabulary), dtype=object)
    with open(path, "w", encoding="utf-8") as file:
        for start in range(0, documents, 10_000):
            lengths = rng.integers(60, 101, min(10_000, documents - start))
            drawn = known[np.searchsorted(shares, rng.random(int(lengths.sum())))]
            for number, text in enumerate(np.split(drawn, np.cumsum(lengths)[:-1]), start=start):
                record = {"id": str(number), "title": " ".join(text[:3]), "text": " ".join(text)}
                file.write(json.dumps(record) + "\n")


def made_up_queries(corpus: Path, count: int = 200) -> list[str]:
    rng = random.Random(0)
    queries = []
    for number, (_, _, text) in enumerate(passages(corpus)):
        if number % 97 == 0:
            queries.append(" ".join(rng.sample(sorted(set(text.split())), 8)))
        if len(queries) == count:
            break
    return queries


def in_process(part: str, *arguments: object) -> Any:
    """Run a part of this script in a process of its own."""
    command = [sys.executable, __file__, part, *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def compare(corpus: Path, folder: Path, queries: list[str]) -> dict[str, list[list[str]]]:
    """Build, search and report; return what each engine found."""
    ours, theirs = in_process("ours", corpus, folder / "tantivy"), in_process("bm25s", corpus, folder / "bm25s")
    for name, built in (("tantivy", ours), ("bm25s", theirs)):
        rest = {key: round(value, 1) for key, value in built.items() if key != "documents"}
        print(
            f"{name:8} {built['documents']:,} documents, {built['documents'] / built['seconds']:,.0f} a second, {rest}"
        )
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    searched = in_process("search", folder / "tantivy", folder / "bm25s", folder / "queries.json")
    for name, seconds in searched["seconds"].items():
        ordered = sorted(1000 * second for second in seconds)
        middle, late = ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))]
        print(f"{name:8} {len(ordered)} searches: p50 {middle:.2f} ms, p95 {late:.2f} ms (numba: {searched['numba']})")
    hours = WIKI_18 / ours["documents"] * ours["seconds"] / 3600
    disk = WIKI_18 / ours["documents"] * ours["disk_mb"] / 1000
    print(f"wiki-18 in proportion: {hours:.2f} h, {disk:.0f} GB on disk")
    return searched["found"]  # type: ignore[no-any-return]


def pairs(folders: list[Path], work: Path) -> None:
    corpus, titles = work / "all.jsonl", {}
    with open(corpus, "w", encoding="utf-8") as file:
        for folder in folders:
            for number, (_, title, text) in enumerate(passages(folder / "corpus.jsonl")):
                identity = f"{folder.name}/{number}"
                titles[identity] = title
                file.write(json.dumps({"id": identity, "title": title, "text": text}) + "\n")
    asked = [
        (folder.name, json.loads(line))
        for folder in folders
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    found = compare(corpus, work, [question["question"] for _, question in asked])
    for folder in folders:
        for name, hits in found.items():
            shares = [
                len(gold & {titles[identity] for identity in ids}) / len(gold)
                for (source, question), ids in zip(asked, hits, strict=True)
                if source == folder.name and (gold := set(question.get("gold_titles", ())))
            ]
            if shares:
                everything = sum(share == 1 for share in shares) / len(shares)
                mean = sum(shares) / len(shares)
                print(f"{name:8} {folder.name}: all gold at {K} {everything:.3f}, mean {mean:.3f}, n {len(shares)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["pairs", "made-up", "ours", "bm25s", "search"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--work-folder", type=Path)
    given = parser.parse_args()
    if given.part == "pairs":
        pairs(given.paths, given.work_folder)
    elif given.part == "made-up":
        corpus = given.work_folder / f"made-up-{given.documents}.jsonl"
        if not corpus.exists():
            made_up(corpus, given.documents)
        found = compare(corpus, given.work_folder, made_up_queries(corpus))
        same = [len(set(a) & set(b)) / K for a, b in zip(found["tantivy"], found["bm25s"], strict=True)]
        print(f"hits in common: {sum(same) / len(same):.3f} of {K}")
    elif given.part == "search":
        queries = json.loads(given.paths[2].read_text(encoding="utf-8"))
        print(json.dumps(search_both(given.paths[0], given.paths[1], queries)))
    else:
        print(json.dumps({"ours": build_ours, "bm25s": build_bm25s}[given.part](*given.paths)))


if __name__ == "__main__":
    main()
