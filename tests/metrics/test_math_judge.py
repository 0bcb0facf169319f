from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import metrics.math_judge as module
from metrics.math_judge import JudgeError, MathJudge
from metrics.math_strict import strict_math
from metrics.scorer import score_async

PROJECT = Path(module.__file__).resolve().parents[1]
HOSTILE = {
    "a power tower": "9^{9^{9^9}}",
    "a huge factorial": "(10^8)!",
    "deep nesting": "\\frac{1}{" * 150 + "2" + "}" * 150,
    "a huge expansion": "(" + "+".join(f"x_{{{i}}}" for i in range(150)) + ")^{60}",
    "unbalanced braces": "{" * 1_500,
    "a huge matrix": "\\begin{pmatrix}" + "1&" * 800 + "1\\end{pmatrix}",
}


@pytest.fixture(scope="module")
def judge() -> MathJudge:
    return MathJudge(1, cpu_seconds=1.0, memory_mib=200)


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_expression_is_given_up_and_the_next_answer_judged(judge: MathJudge, expression: str) -> None:
    assert judge.compare("5", expression) in ("time", "memory", "different")
    assert judge.compare("x+1", "1+x") == "equal"


def test_a_power_tower_runs_out_of_time(judge: MathJudge) -> None:
    assert judge.compare("5", "9^{9^{9^9}}") == "time"


def test_the_clock_ends_what_processor_time_does_not(judge: MathJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(judge._limits, "cpu_seconds", 1_000.0)
    monkeypatch.setitem(judge._limits, "wall_seconds", 0.5)
    assert judge.compare("5", "9^{9^{9^9}}") == "time"


def test_memory_is_bounded_and_running_out_of_it_is_told(judge: MathJudge) -> None:
    assert judge.compare("5", "a" * 1_000_000) == "memory"
    assert judge.compare("x+1", "1+x") == "equal"


def test_many_threads_get_each_their_own_verdict(judge: MathJudge) -> None:
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda n: judge.compare(f"x+{n}", f"{n % 7}+x"), range(40)))
    assert verdicts == ["equal" if n < 7 else "different" for n in range(40)]


async def test_a_comparison_does_not_hold_up_the_event_loop(judge: MathJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_default", judge)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    assert await judge.compare_async("5", "9^{9^{9^9}}") == "time"
    ticking.cancel()
    assert ticks > 5
    result = await score_async("\\boxed{1+x}", ["x+1"], "math")
    assert result.strict["math_equal"] == 1.0


def test_a_child_that_was_killed_is_replaced(judge: MathJudge) -> None:
    judge.compare("x", "x+0")
    process = judge._idle[0]._process
    assert process is not None
    os.killpg(process.pid, 9)
    process.wait()
    assert judge.compare("x+1", "1+x") == "equal"


def test_a_forked_process_uses_children_of_its_own(judge: MathJudge) -> None:
    assert judge.compare("x+1", "1+x") == "equal"
    outcome, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(report, judge.compare("x+2", "2+x").encode())
            judge.close()
        finally:
            os._exit(0)
    os.close(report)
    verdicts = [judge.compare("x+3", f"{n}+x") for n in range(5)]
    assert os.read(outcome, 20) == b"equal"
    os.close(outcome)
    os.waitpid(child, 0)
    assert verdicts == ["different"] * 3 + ["equal", "different"]


def test_no_child_outlives_an_interpreter_that_used_one() -> None:
    script = (
        "from metrics.math_judge import default_judge\n"
        "judge = default_judge()\n"
        "assert judge.compare('x+1', '1+x') == 'equal'\n"
        "print(judge._idle[0]._process.pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    until = time.monotonic() + 30
    while _alive(int(done.stdout)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _alive(int(done.stdout))


def test_a_judge_that_cannot_start_says_how_to_mend_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(f"print({json.dumps(json.dumps({'error': 'No module named math_verify'}))}, flush=True)")
    monkeypatch.setattr(module, "_WORKER", worker)
    with pytest.raises(JudgeError, match=r"No module named math_verify.*pip install"):
        MathJudge(1).compare("x", "y")


def test_an_answer_that_was_given_up_is_wrong_and_counted(monkeypatch: pytest.MonkeyPatch, judge: MathJudge) -> None:
    monkeypatch.setattr(module, "_default", judge)
    numbers = strict_math("9^{9^{9^{9}}}+1", ["7"])
    assert (numbers["math_equal"], numbers["valid"], numbers["undecided"]) == (0.0, 1.0, 1.0)
    assert strict_math("9^{9^{9^{9}}}+1", ["7", "9^{9^{9^{9}}}+1"])["undecided"] == 0.0


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
