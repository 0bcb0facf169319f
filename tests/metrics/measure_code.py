r"""Measure judging LiveCodeBench's recorded programs; prints Markdown, is not collected by pytest.

    python tests/metrics/measure_code.py DIR [--limit N] [--workers N]

DIR holds `test.json` (the 112 problems) and `recorded_generations.jsonl` (four programs each, with `passed_all_tests`
as LiveCodeBench judged them on public and private tests). It prints
- the judge check: programs that passed everything there must pass the public tests here;
- that table by difficulty and kind, in the strict and the official family;
- the time it took, beside what the older runner waits for in the worst case, one program after the other:
  (10 s + 1) x tests + 5 a program, as its global time-out has it;
- what starting a sandbox and running a test costs, for each way of isolation that works here.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from metrics.code import judge_program
from metrics.code_verdicts import TestVerdict
from metrics.livecodebench_tests import CodeTests, read_tests
from metrics.sandbox.isolation import available_backends, bubblewrap_path, choose_backend
from metrics.sandbox.launcher import Program, Sandbox
from metrics.sandbox.options import Limits, SandboxOptions
from metrics.sandbox.pool import map_in_order

Row = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="programs, from the first")
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    problems = {row["question_id"]: row for row in json.loads((given.folder / "test.json").read_text())}
    lines = (given.folder / "recorded_generations.jsonl").read_text().splitlines()
    recorded = [json.loads(line) for line in lines][: given.limit]
    tests = {name: read_tests(row) for name, row in problems.items()}
    options = SandboxOptions(workers=given.workers)
    backend = choose_backend(options)
    print(f"{len(recorded)} programs of {len(problems)} problems; {backend}, {options.worker_count} at once\n")
    verdicts = {}
    for family in ("strict", "official"):
        began = time.monotonic()
        verdicts[family] = judge_all(recorded, tests, family, options)
        seconds = time.monotonic() - began
        report_time(family, seconds, recorded, tests, verdicts[family])
    report_check(recorded, problems, tests, verdicts)
    report_start_cost()


def judge_all(
    recorded: list[Row], tests: dict[str, CodeTests], family: str, options: SandboxOptions
) -> list[tuple[TestVerdict, ...]]:
    def judge(row: Row) -> tuple[TestVerdict, ...]:
        return judge_program(row["code"], tests[row["question_id"]], family, options)

    return map_in_order(judge, recorded, options)


def report_time(
    family: str,
    seconds: float,
    recorded: list[Row],
    tests: dict[str, CodeTests],
    verdicts: list[tuple[TestVerdict, ...]],
) -> None:
    limit = 10 if family == "official" else 6
    worst = sum((limit + 1) * len(tests[row["question_id"]].public) + 5 for row in recorded)
    ran = [verdict for row in verdicts for verdict in row if verdict.reason != "not_run"]
    print(
        f"{family}: {seconds:.1f} s on the clock, {sum(v.cpu_seconds for v in ran):.1f} s of processor time in "
        f"{len(ran)} tests that ran, {seconds / len(ran) * 1000:.0f} ms a test; the runner's worst case one after the "
        f"other: {worst} s ({worst / seconds:.0f} times as long). "
        f"Reasons: {dict(collections.Counter(v.reason for v in ran).most_common())}\n"
    )


def report_check(
    recorded: list[Row],
    problems: dict[str, Row],
    tests: dict[str, CodeTests],
    verdicts: dict[str, list[tuple[TestVerdict, ...]]],
) -> None:
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    disagreeing = []
    for index, row in enumerate(recorded):
        kind = "function" if tests[row["question_id"]].function else "stdin"
        strict, official = (all(v.passed for v in verdicts[name][index]) for name in ("strict", "official"))
        for key in ((problems[row["question_id"]]["difficulty"], kind), ("all", "")):
            counts[key].update(
                programs=1,
                recorded=bool(row["passed_all_tests"]),
                both=bool(row["passed_all_tests"] and strict),
                more=bool(strict and not row["passed_all_tests"]),
                official=official,
            )
        if row["passed_all_tests"] and not strict:
            failed = next(v for v in verdicts["strict"][index] if not v.passed)
            disagreeing.append(f"{row['question_id']} ({row['run']}): {failed.reason}: {failed.detail}")
    print("| difficulty | kind | programs | recorded full pass | of these pass public | public only | official |")
    print("|---|---|---|---|---|---|---|")
    order = ("easy", "medium", "hard", "all")
    for key in sorted(counts, key=lambda pair: (order.index(pair[0]), pair[1])):
        cells = [counts[key][name] for name in ("programs", "recorded", "both", "more", "official")]
        print(f"| {' | '.join([*key, *map(str, cells)])} |")
    print("\n".join(["", *disagreeing]))


def report_start_cost(repeats: int = 20) -> None:
    print("| isolation | start, ms (median) | a further test, ms (median) | of a plain `python -S` |")
    print("|---|---|---|---|")
    plain = statistics.median(_plain_start() for _ in range(repeats))
    for backend in (*available_backends(), "none"):
        starts, runs = [], []
        for _ in range(repeats):
            began = time.monotonic()
            with Sandbox(Program("print(1)"), Limits(), backend, bubblewrap_path()) as sandbox:
                starts.append(time.monotonic() - began)
                sandbox.run("")
                began = time.monotonic()
                sandbox.run("")
                runs.append(time.monotonic() - began)
        start, run = statistics.median(starts), statistics.median(runs)
        print(f"| {backend} | {start * 1000:.0f} | {run * 1000:.1f} | {start / plain:.1f}x |")


def _plain_start() -> float:
    import subprocess

    began = time.monotonic()
    subprocess.run([sys.executable, "-S", "-c", "print(1)"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
