from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.corpus.build_folder import BuildFolder
from retrieval.corpus.index import CorpusIndex, IndexInfo, build_index, iter_documents, open_info
from signatures.errors import DataError

DOCUMENTS = [
    {"id": "eiffel", "title": "Eiffel Tower", "text": "An iron tower in Paris, built in 1889 by Gustave Eiffel."},
    {"id": "louvre", "title": "Louvre", "text": "A museum in Paris."},
    {"id": "tokyo", "title": "東京タワー", "text": "東京タワーは日本の電波塔です。"},
]
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrt"]


def write_jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def many(path: Path, count: int, seed: int = 0, words: int = 12) -> Path:
    """Write documents of random words, every hundredth line malformed, every 97th an id that occurred before."""
    rng = random.Random(seed)
    lines = []
    for number in range(count):
        if number % 100 == 50:
            lines.append("{broken")
            continue
        identity = f"d{number - 90}" if number % 97 == 96 else f"d{number}"
        text = " ".join(rng.choices(WORDS, k=words))
        lines.append(json.dumps({"id": identity, "title": rng.choice(WORDS), "text": text}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def found(directory: Path) -> list[list[str]]:
    index = CorpusIndex(directory)
    pairs = zip(WORDS, WORDS[7:] + WORDS[:7], strict=True)
    return [[document.id for document in index.search(" ".join(pair), 10)] for pair in pairs]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


BUILD = """
import sys
from pathlib import Path
from retrieval.corpus.index import build_index
paths = [Path(path) for path in sys.argv[3:]]
build_index(paths, Path(sys.argv[1]), "n", commit_documents=int(sys.argv[2]), say=lambda line: print(line, flush=True))
"""


def start_build(directory: Path, commit_documents: int, *paths: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(directory), str(commit_documents), *map(str, paths)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
        # A shell that runs the tests in the background makes its children ignore Ctrl-C, which a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def committed(directory: Path) -> int:
    try:
        state = json.loads((directory.parent / f".{directory.name}-building" / "state.json").read_text())
    except FileNotFoundError:
        return 0
    return int(state["commits"][-1]["documents"])


def stop_after(process: subprocess.Popen[str], directory: Path, documents: int, how: signal.Signals) -> bool:
    """Send a signal once so much is committed; False if the build ended before."""
    deadline = time.monotonic() + 60
    while process.poll() is None and committed(directory) < documents:
        assert time.monotonic() < deadline, "nothing was committed in time"
        time.sleep(0.002)
    if process.poll() is not None:
        return False
    process.send_signal(how)
    process.wait(60)
    return process.returncode != 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path, IndexInfo]:
    folder = tmp_path_factory.mktemp("whole")
    paths = [many(folder / "a.jsonl", 6000), folder / "b.jsonl.gz", folder / "notes"]
    import gzip

    paths[1].write_bytes(gzip.compress(many(folder / "b.jsonl", 6000, seed=1).read_bytes().replace(b'"d', b'"e')))
    paths[2].mkdir()
    for number in range(300):
        (paths[2] / f"{number:03}.txt").write_text(f"note {number} " + WORDS[number % 50])
    return paths, folder / "i", build_index(paths, folder / "i", "n")


def same_index(directory: Path, whole: tuple[list[Path], Path, IndexInfo]) -> None:
    info = open_info(directory)
    assert (info.documents, info.skipped, info.corpus_hash) == (
        whole[2].documents, whole[2].skipped, whole[2].corpus_hash,
    )  # fmt: skip
    assert found(directory) == found(whole[1])
    assert [d.id for d in iter_documents(directory)] == [d.id for d in iter_documents(whole[1])]


def test_a_build_killed_many_times_equals_one_that_was_not(
    whole: tuple[list[Path], Path, IndexInfo], tmp_path: Path
) -> None:
    directory = tmp_path / "i"
    stopped = 0
    for documents in (400, 5000, 7500, 11_900):
        process = start_build(directory, 400, *whole[0])
        stopped += stop_after(process, directory, documents, signal.SIGKILL)
        process.communicate()
    assert stopped >= 2
    assert not directory.exists()
    before = committed(directory)
    last = start_build(directory, 400, *whole[0])
    out, err = last.communicate(timeout=60)
    assert (last.returncode, err) == (0, "")
    assert "Going on after " in out
    assert int(out.split("after ")[1].split()[0].replace(",", "")) >= before - 400
    same_index(directory, whole)
    assert names(tmp_path) == ["i"]


def test_ctrl_c_keeps_what_was_committed(whole: tuple[list[Path], Path, IndexInfo], tmp_path: Path) -> None:
    directory = tmp_path / "i"
    process = start_build(directory, 300, *whole[0])
    assert stop_after(process, directory, 600, signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert names(tmp_path) == [".i-building"]
    told: list[str] = []
    build_index(whole[0], directory, "n", say=told.append)
    assert told[0].startswith("Going on after ")
    same_index(directory, whole)


@pytest.mark.parametrize("stop_at", [1, 3, 4, 6])
def test_a_build_that_breaks_off_goes_on_in_the_same_process(tmp_path: Path, stop_at: int) -> None:
    """Broken off by its own callback, at every kind of moment: in a commit's middle, at its edge, between files."""
    paths = [
        write_jsonl(tmp_path / f"{part}.jsonl", [{"id": f"{part}{n}", "text": f"w{n}"} for n in range(3)] + [1])
        for part in "ab"
    ]
    straight = build_index(paths, tmp_path / "straight", "n")

    calls = []

    def stop(problem: str) -> None:
        calls.append(problem)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        build_index(paths, tmp_path / "i", "n", on_problem=stop, commit_documents=stop_at)
    assert (tmp_path / ".i-building").exists() == (stop_at <= 3)
    broken = build_index(paths, tmp_path / "i", "n", commit_documents=stop_at)
    assert (broken.corpus_hash, broken.documents, broken.skipped) == (straight.corpus_hash, 6, 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(stops=st.lists(st.integers(1, 9), min_size=1, max_size=2), commit=st.integers(5, 15))
def test_wherever_a_build_stops_the_result_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, stops: list[int], commit: int
) -> None:
    folder = tmp_path_factory.mktemp("stops")
    lines: list[Any] = [{"id": f"{n % 33}", "text": f"w{n}"} if n % 5 else n for n in range(40)]
    path = write_jsonl(folder / "d.jsonl", lines)
    straight = build_index([path], folder / "straight", "n")
    for stop in stops:
        left = [stop]

        def count(problem: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise InterruptedError

        try:
            build_index([path], folder / "i", "n", on_problem=count, commit_documents=commit)
        except InterruptedError:
            continue
    again = build_index([path], folder / "i", "n", commit_documents=commit)
    assert (again.corpus_hash, again.documents, again.skipped) == (
        straight.corpus_hash, straight.documents, straight.skipped,
    )  # fmt: skip


def broken_off(folder: Path) -> list[Path]:
    """Leave a build behind that committed four documents and one malformed line of `d.jsonl`."""
    good = [{"id": f"{number}", "text": "x"} for number in range(4)]
    path = write_jsonl(folder / "d.jsonl", [good[0], 1, *good[1:], 2])

    def stop(problem: str) -> None:
        if "line 6" in problem:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        build_index([path], folder / "i", "n", on_problem=stop, commit_documents=4)
    assert names(folder) == [".i-building", "d.jsonl"]
    return [path]


def test_a_changed_file_starts_anew_and_says_so(tmp_path: Path) -> None:
    paths = broken_off(tmp_path)
    write_jsonl(paths[0], [{"id": "other", "text": "x"}])
    told: list[str] = []
    assert build_index(paths, tmp_path / "i", "n", say=told.append).documents == 1
    assert told == ["The files are not those of the build that was stopped; starting anew."]


def test_starting_anew_on_request_says_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    assert build_index(broken_off(tmp_path), tmp_path / "i", "n", say=told.append, fresh=True).documents == 4
    assert told == []


def test_a_strict_build_does_not_go_on_after_one_that_skipped(tmp_path: Path) -> None:
    paths = broken_off(tmp_path)
    told: list[str] = []
    with pytest.raises(DataError, match="line 2"):
        build_index(paths, tmp_path / "i", "n", say=told.append, strict=True)
    assert told == ["The build that was stopped was not strict and had skipped something; starting anew."]


def test_a_half_built_folder_that_is_damaged_starts_anew(tmp_path: Path) -> None:
    paths = broken_off(tmp_path)
    (tmp_path / ".i-building" / "index" / "meta.json").write_text("{")
    told: list[str] = []
    assert build_index(paths, tmp_path / "i", "n", say=told.append).documents == 4
    assert told == ["The build that was stopped cannot be read any more; starting anew."]
    (tmp_path / ".i-building").mkdir()
    (tmp_path / ".i-building" / "state.json").write_text("{")
    assert build_index(paths, tmp_path / "i", "n").documents == 4


def test_a_commit_that_was_announced_but_never_made_does_not_count(tmp_path: Path) -> None:
    paths = broken_off(tmp_path)
    state = tmp_path / ".i-building" / "state.json"
    record = json.loads(state.read_text())
    last = record["commits"][-1]
    state.write_text(json.dumps({**record, "commits": [last, {**last, "documents": 99, "position": [70, 5]}]}))
    told: list[str] = []
    info = build_index(paths, tmp_path / "i", "n", say=told.append)
    assert (info.documents, info.skipped, told[0][:23]) == (4, 2, "Going on after 4 docume")


def test_a_build_that_ends_after_its_last_commit_repeats_nothing(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": "1", "text": "x"}, {"id": "2", "text": "x"}, 3])
    path.write_text(path.read_text() + "\n\n")

    def stop(progress: Any) -> None:
        # Reading never gets to the blank lines at the end, so this is the report after the last commit.
        if progress.bytes_done == progress.bytes_total:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        build_index([path], tmp_path / "i", "n", stop)
    told: list[str] = []
    info = build_index([path], tmp_path / "i", "n", say=told.append)
    assert (info.documents, info.skipped, len(told)) == (2, 1, 1)


def test_a_whole_index_that_was_not_yet_in_its_place_is_put_there(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    built = build_index([path], tmp_path / "i", "n")
    (tmp_path / ".i-building").mkdir()
    os.rename(tmp_path / "i", tmp_path / ".i-building" / "index")
    assert build_index([path], tmp_path / "i", "n") == built
    assert names(tmp_path) == ["d.jsonl", "i"]


def _build_in_process(folder: str) -> int:
    return build_index([Path(folder) / "d.jsonl"], Path(folder) / "i", "n").documents


def test_processes_that_build_the_same_index_take_turns(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_build_in_process, [str(tmp_path)] * 4, chunksize=1) == [3] * 4
    assert len(CorpusIndex(tmp_path / "i").search("museum", 5)) == 1
    assert names(tmp_path) == ["d.jsonl", "i"]


def test_a_second_build_waits_and_takes_what_the_first_one_built(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    waiting, told, built = threading.Event(), [], []

    def say(line: str) -> None:
        told.append(line)
        waiting.set()

    place = BuildFolder(tmp_path / "i")
    with place.locked(lambda: None):
        second = threading.Thread(target=lambda: built.append(build_index([path], tmp_path / "i", "n", say=say)))
        second.start()
        assert waiting.wait(30)
        assert told == ["Another build of i is under way; waiting for it ..."]
        assert built == []
    second.join(30)
    assert built[0].documents == 3
    # Its turn came after the folder it waited at had been removed.
    assert names(tmp_path) == ["d.jsonl", "i"]
