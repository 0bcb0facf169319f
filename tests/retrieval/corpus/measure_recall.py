"""Measures how many gold paragraphs lexical, dense and hybrid search find; not a test.

Each folder holds `corpus.jsonl` ({id, title, text}) and `questions.jsonl` ({question, gold_titles}). The corpus is
indexed and embedded by the embeddings server, then every question is searched once a mode with its own text. Reported
are, over all questions, the share with ALL gold titles among the first k hits and the mean share of gold titles there,
with the median time of a search. An unfinished embedding goes on where it stopped.

    python tests/retrieval/corpus/measure_recall.py FOLDER… --embeddings-url http://127.0.0.1:8000/v1 \\
        --embedding-model all-MiniLM-L6-v2 --work-folder /somewhere
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

from retrieval.corpus.build import build_index
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.corpus.modes import MODES, CorpusSearch, local_search
from retrieval.corpus.vector_building import build_vectors


def measure(folder: Path, url: str, model: str, work_folder: Path, k: int) -> None:
    index = work_folder / folder.name
    if not (index / "info.json").exists():
        started = time.monotonic()
        build_index([folder / "corpus.jsonl"], index, folder.name)
        print(f"{folder.name}: indexed in {time.monotonic() - started:.1f} s", file=sys.stderr)
    started = time.monotonic()
    info = build_vectors(index, EmbeddingsClient(url, model), show_progress)
    print(f"\n{folder.name}: {info.count:,} vectors in {time.monotonic() - started:.1f} s: {info}", file=sys.stderr)
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    for mode in MODES:
        search = local_search(index, mode, **({} if mode == "lexical" else {"embeddings_url": url}))
        everything, share, seconds = asyncio.run(score(search, questions, k))
        print(
            f"| {folder.name} | {mode} | {len(questions)} | {100 * everything:.1f} | {100 * share:.1f} | "
            f"{1000 * seconds:.1f} |",
            flush=True,
        )


async def score(search: CorpusSearch, questions: list[dict[str, object]], k: int) -> tuple[float, float, float]:
    complete, shares, times = [], [], []
    await search.search("warm", k)
    for question in questions:
        started = time.monotonic()
        hits = await search.search(str(question["question"]), k)
        times.append(time.monotonic() - started)
        gold = set(question["gold_titles"])  # type: ignore[call-overload]
        found = gold & {hit.title for hit in hits}
        complete.append(found == gold)
        shares.append(len(found) / len(gold))
    return statistics.fmean(complete), statistics.fmean(shares), statistics.median(times)


def show_progress(done: int, total: int) -> None:
    print(f"\r{done:,} of {total:,} passages embedded", end="", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--embeddings-url", required=True)
    parser.add_argument("--embedding-model", required=True)
    parser.add_argument("--work-folder", required=True, type=Path, help="where the indexes go")
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    print(f"| questions | search | n | all gold in first {options.k} (%) | mean gold found (%) | median ms |")
    print("|---|---|---|---|---|---|")
    for folder in options.folders:
        measure(folder, options.embeddings_url, options.embedding_model, options.work_folder, options.k)


if __name__ == "__main__":
    main()
