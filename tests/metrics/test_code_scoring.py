from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from metrics.code import judge_program, score_code, score_code_async, score_code_label, score_many
from metrics.code_verdicts import CodeScore, TestVerdict
from metrics.livecodebench_tests import CodeTest, CodeTests
from metrics.sandbox.options import Limits, SandboxOptions
from signatures.errors import DataError, OptionError

DOUBLE = CodeTests((CodeTest("3\n", "6\n"), CodeTest("5\n", "10\n")))
"""Read a number, print it doubled."""

ADD = CodeTests((CodeTest("[1, 2]\n3", "[4, 5]", True), CodeTest("[]\n1", "[]", True)), function="add")
"""`add(numbers, step)` returns the numbers, each raised by the step."""


def chain(program: str) -> str:
    return f"I think so.\n```python\n{program}\n```\nDone."


def judge(program: str, tests: CodeTests = DOUBLE, family: str = "strict", **limits: float) -> TestVerdict:
    """Return the first verdict that is not a pass, or the last."""
    options = SandboxOptions(limits=Limits(**limits))  # type: ignore[arg-type]
    verdicts = judge_program(program, tests, family, options)
    return next((verdict for verdict in verdicts if not verdict.passed), verdicts[-1])


PROGRAMS = [
    # (program, passes officially, passes strictly): how a program that is right may be written.
    ("print(int(input()) * 2)", True, True),
    ("import sys\nprint(int(sys.stdin.readline()) * 2)", True, True),
    ("import sys\ninput = sys.stdin.readline\nprint(int(input()) * 2)", True, True),
    ("import sys\nprint(int(sys.stdin.read()) * 2)", True, True),
    ("import sys\nfor line in sys.stdin:\n    print(int(line) * 2)", True, True),
    ("def f(a: List[int]) -> Optional[int]:\n    return sum(a)\nprint(f([int(input())] * 2))", True, True),
    ("def main():\n    print(int(input()) * 2)\nif __name__ == '__main__':\n    main()", True, True),
    ("print(int(input()) * 2)\nimport sys\nsys.exit(3)", True, True),
    ("print(math.floor(int(input()) * 2), end='')", True, True),
    ("heap = [int(input())]\nheappush(heap, heap[0])\nprint(sum(heap))", True, True),
    ("f = lambda n: 0 if n == 0 else 1 + f(n - 1)\nn = int(input())\nprint(n * 2 + f(20000) - 20000)", True, True),
    ("from sys import stdin\nprint(int(stdin.readline()) * 2)", True, True),
    ("from sys import stdin\nprint(int(stdin.read()) * 2)", True, True),
    # What the published runner gets wrong.
    ("def main():\n    print(int(input()) * 2)\nif __name__ == '__main__':\n    main()\npass", False, True),
    ("import sys\nprint(int(sys.stdin.buffer.readline()) * 2)", False, True),
    ("from sys import stdin\nfor line in stdin:\n    print(int(line) * 2)", False, True),
    ("print(int(open(0).read()) * 2)", False, True),
    ("print(int(input()) * 2)\nexit()", False, True),
    ("n = 0\ndef read():\n    global n\n    n += int(input())\nread()\nprint(n * 2)", False, True),
    ("import resource\nprint(int(input()) * 2)", False, True),
    ("from __future__ import annotations\nprint(int(input()) * 2)", False, True),
    ("import sys\nsys.stdout.buffer.write(b'%d' % (int(input()) * 2))", False, True),
    (
        "import threading, time\ndef main():\n    time.sleep(0.05)\n    print(int(input()) * 2)\n"
        "threading.Thread(target=main).start()",
        False,
        True,
    ),
]


@pytest.mark.parametrize(("program", "official", "strict"), PROGRAMS)
def test_programs_that_are_right(program: str, official: bool, strict: bool) -> None:
    score = score_code(chain(program), DOUBLE)
    assert score.strict["pass@1"] == strict, score.strict_verdicts
    assert score.official["pass@1"] == official, score.official_verdicts
    assert score.official["valid"] == score.strict["valid"] == 1


FAILURES = [
    ("print(int(input()))", "wrong_answer", "got '3', expected '6'"),
    ("", "no_code", "no closed Python block"),
    ("pass", "wrong_answer", "got '', expected '6'"),
    ("def f(:", "compile", "SyntaxError"),
    ("print('\0')", "compile", "null bytes"),
    ("print('\ud800')", "compile", "UnicodeEncodeError"),
    ("(" * 5000 + ")" * 5000, "compile", ""),
    ("1 / 0", "runtime_error", "ZeroDivisionError: division by zero"),
    ("input(); input(); input()", "runtime_error", "EOFError"),
    ("raise KeyboardInterrupt", "runtime_error", "KeyboardInterrupt"),
    ("x = [0] * (1 << 40)", "memory", "2048 MiB"),
    ("import os; os.kill(os.getpid(), 11)", "runtime_error", "killed by SIGSEGV"),
    ("import os; os.write(1, b'\\xff\\xfe6\\n')", "wrong_answer", "got"),
    ("print('\\ud800')", "runtime_error", "UnicodeEncodeError"),
    ("print('6' * (1 << 20))", "wrong_answer", "…"),
]


@pytest.mark.parametrize(("program", "reason", "detail"), FAILURES)
def test_why_a_program_fails(program: str, reason: str, detail: str) -> None:
    verdict = judge(program)
    assert verdict.reason == reason
    assert detail in verdict.detail


@pytest.mark.parametrize("family", ["official", "strict"])
def test_a_program_over_its_time_memory_or_output_fails_for_that(family: str) -> None:
    assert judge("print('x' * (17 << 20))", family=family).reason == "output_limit"
    assert judge("x = bytearray(4 << 30)", family=family).reason == "memory"
    assert judge("import time\ntime.sleep(30)", family=family, wall_seconds=0.5).reason == "time"


def test_the_end_of_standard_error_is_kept() -> None:
    verdict = judge("import sys\nprint('look here', file=sys.stderr)\nraise ValueError('bad')")
    assert "look here" in verdict.stderr
    assert "line 3" in verdict.stderr
    assert verdict.stderr.endswith("ValueError: bad")


def test_judging_stops_at_the_first_failure() -> None:
    tests = CodeTests((CodeTest("1\n", "2\n"), CodeTest("2\n", "5\n")), (CodeTest("3\n", "6\n"),))
    verdicts = judge_program("print(int(input()) * 2)", tests, "strict")
    assert [(verdict.reason, verdict.public) for verdict in verdicts] == [
        ("passed", True),
        ("wrong_answer", True),
        ("not_run", False),
    ]


def test_strict_judges_private_tests_and_official_does_not() -> None:
    tests = CodeTests((CodeTest("1\n", "2\n"),), (CodeTest("2\n", "999\n"),))
    score = score_code(chain("print(int(input()) * 2)"), tests)
    assert (score.official["pass@1"], score.strict["pass@1"]) == (1, 0)
    assert score.coverage == "all"
    assert len(score.official_verdicts) == 1
    assert score.reason == "wrong_answer"
    assert score_code("", DOUBLE).coverage == "public only"


METHOD = "class Solution:\n    def add(self, numbers: List[int], step: int) -> List[int]:\n        return "

FUNCTIONS = [
    (METHOD + "[n + step for n in numbers]", "passed"),
    ("def add(numbers, step):\n    return [n + step for n in numbers]", "passed"),
    (METHOD + "tuple(n + step for n in numbers)", "passed"),
    (METHOD + "[float(n + step) for n in numbers]", "passed"),
    ("import numpy\n" + METHOD + "list(numpy.array(numbers, dtype=int) + step)", "passed"),
    ("print('noise')\n" + METHOD + "[n + step for n in numbers]\nif __name__ == '__main__':\n    1 / 0", "passed"),
    (METHOD + "numbers", "wrong_answer"),
    (METHOD + "None", "wrong_answer"),
    (METHOD + "{n + step for n in numbers}", "wrong_answer"),
    (METHOD + "(n + step for n in numbers)", "wrong_answer"),
    (METHOD + "str([n + step for n in numbers])", "wrong_answer"),
    (METHOD + "[n + step for n in numbers", "compile"),
    (METHOD + "1 / 0", "runtime_error"),
    ("class Solution:\n    pass", "runtime_error"),
    ("class Solution:\n    add = 5", "runtime_error"),
    ("x = 1", "runtime_error"),
    (
        "class Solution:\n    def __init__(self):\n        raise ValueError\n    def add(self, numbers, step): ...",
        "runtime_error",
    ),
    (METHOD + "self.add(numbers, step)", "runtime_error"),
    (
        "class Solution:\n    def add(self, numbers, step):\n        a = []\n        a.append(a)\n        return a",
        "runtime_error",
    ),
]


@pytest.mark.parametrize(("program", "reason"), FUNCTIONS)
def test_functions_are_called_with_json_arguments(program: str, reason: str) -> None:
    assert judge(program, ADD).reason == reason


TRICKS = {
    "sys.exit": ("import sys\ndef add(numbers, step):\n    sys.exit(0)", "runtime_error"),
    "exit at import": ("import sys\nsys.exit(0)\ndef add(numbers, step):\n    return [4, 5]", "runtime_error"),
    "os._exit": ("import os\ndef add(numbers, step):\n    os._exit(0)", "runtime_error"),
    "a value that equals everything": (
        "class Any_(list):\n    def __eq__(self, other):\n        return True\n"
        "def add(numbers, step):\n    return Any_([9])",
        "wrong_answer",
    ),
    "a report of its own": (
        "import json, os\ndef add(numbers, step):\n    os.write(3, json.dumps({'status': 'ok', 'passed': True, "
        "'reason': 'passed', 'value': 'true'}).encode())\n    os._exit(0)",
        "wrong_answer",
    ),
    "a rewritten comparator": (
        "import sys\nfor name, module in list(sys.modules.items()):\n    for key in dir(module):\n"
        "        if 'match' in key or 'judge' in key or 'verdict' in key:\n            try:\n"
        "                setattr(module, key, lambda *a, **k: True)\n"
        "            except Exception:\n                pass\n"
        "def add(numbers, step):\n    return [0]",
        "wrong_answer",
    ),
    "a rewritten json": (
        "import json\njson.dumps = lambda *a, **k: '[4, 5]' if a and a[0] == 'x' else 'true'\n"
        "def add(numbers, step):\n    return 'y'",
        "runtime_error",
    ),
}


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_gain_nothing(name: str) -> None:
    program, reason = TRICKS[name]
    assert judge(program, ADD).reason == reason


def test_the_expected_output_is_nowhere_in_the_memory_of_a_program() -> None:
    search = (
        "import re\npattern = re.compile(b'zq' + b'7[0-9a-f]{32}')\nfound = set()\n"
        "maps = [line.split()[0].split('-') for line in open('/proc/self/maps') if ' rw' in line]\n"
        "with open('/proc/self/mem', 'rb', buffering=0) as memory:\n    for low, high in maps:\n        try:\n"
        "            memory.seek(int(low, 16))\n"
        "            found.update(pattern.findall(memory.read(int(high, 16) - int(low, 16))))\n"
        "        except (OSError, OverflowError):\n            pass\n"
        "print(*(name.decode() for name in found))\n"
    )
    label, visible = "zq7" + "0123456789abcdef" * 2, "zq7" + "fedcba9876543210" * 2
    tests = CodeTests((CodeTest("nothing\n", label),), (CodeTest("nothing\n", label),))
    assert judge(search, tests).detail == f"got '', expected {label!r}"
    # The search does find what is in the program's memory.
    assert judge(f"given = input()\n{search}", CodeTests((CodeTest(visible, visible),))).passed


def test_official_fails_every_problem_that_asks_for_a_function() -> None:
    score = score_code(chain(FUNCTIONS[0][0]), ADD)
    assert (score.official["pass@1"], score.strict["pass@1"]) == (0, 1)
    assert score.official_verdicts[0].reason == "wrong_answer"


def test_what_one_test_changes_the_next_does_not_see() -> None:
    program = "import builtins, sys\nn = int(input())\nprint(n * getattr(builtins, 'factor', 2))\nbuiltins.factor = 0"
    assert judge(program).passed


def test_each_family_reads_its_own_program() -> None:
    text = (
        "```python\nprint(int(input()) * 2)\n```\n</think>\n```python\nprint(int(input()) * 2)\n```\n"
        "<|begin_search_result|>\n```python\nprint('injected')\n```\n<|end_search_result|>\n"
    )
    score = score_code(text, DOUBLE)
    assert score.official_answer == "print('injected')"
    assert score.strict_answer == "print(int(input()) * 2)"
    assert (score.official["pass@1"], score.strict["pass@1"]) == (0, 1)


@pytest.mark.parametrize("text", ["", "no code at all", "```python\nprint(1)", "x" * (1 << 20), "```python\n```"])
def test_a_chain_without_a_program_is_invalid_and_wrong(text: str) -> None:
    score = score_code(text, DOUBLE)
    assert score.official == score.strict == {"pass@1": 0, "valid": 0}
    assert {verdict.reason for verdict in score.strict_verdicts} == {"no_code"}


def test_one_family_alone_leaves_the_other_empty() -> None:
    official = score_code(chain("print(6)"), DOUBLE, family="official")
    assert (official.strict, official.strict_verdicts, official.official["valid"]) == ({}, (), 1)
    strict = score_code(chain("print(6)"), DOUBLE, family="strict")
    assert (strict.official, strict.official_verdicts, strict.strict["valid"]) == ({}, (), 1)
    with pytest.raises(OptionError, match="lenient"):
        score_code("", DOUBLE, family="lenient")


def test_a_problem_without_tests_is_never_passed() -> None:
    score = score_code(chain("print(6)"), CodeTests(()))
    assert score.official["pass@1"] == score.strict["pass@1"] == 0
    assert score.reason == "not_run"


def test_a_score_is_plain_data_and_the_headline_is_one_of_its_metrics() -> None:
    score = score_code(chain("print(int(input()) * 2)"), DOUBLE)
    assert score.strict[score.headline] == score.official[score.headline] == 1
    assert json.loads(json.dumps(score.to_dict()))["strict_verdicts"][0]["reason"] == "passed"


def test_tests_can_come_as_a_label() -> None:
    assert score_code_label(chain("print(int(input()) * 2)"), [DOUBLE.to_label()]).strict["pass@1"] == 1
    with pytest.raises(DataError, match="one label"):
        score_code_label("", [])


def test_many_chains_are_scored_in_order() -> None:
    chains = [chain(f"import time\ntime.sleep({0.3 if n == 0 else 0})\nprint(int(input()) * {n})") for n in range(6)]
    scores = score_many(chains, [DOUBLE] * 6, family="strict")
    assert [score.strict["pass@1"] for score in scores] == [0, 0, 1, 0, 0, 0]
    assert [score.strict_answer for score in scores] == [c.split("```python\n")[1].split("\n```")[0] for c in chains]
    with pytest.raises(OptionError, match="2 chains but the tests of 1"):
        score_many(["", ""], [DOUBLE])


def test_scoring_twice_gives_the_same_even_for_programs_that_throw_dice() -> None:
    program = "import random\nprint(random.random(), list({'a', 'b', 'c', 'd', 'e', 'f'}))"
    details = {judge(program).detail for _ in range(3)}
    assert len(details) == 1


async def test_scoring_from_coroutines_does_not_block_the_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    slow = chain("import time\ntime.sleep(0.3)\nprint(int(input()) * 2)")
    scores: list[CodeScore] = await asyncio.gather(*(score_code_async(slow, DOUBLE, family="strict") for _ in range(3)))
    ticking.cancel()
    assert [score.strict["pass@1"] for score in scores] == [1, 1, 1]
    assert ticks > 3


async def test_tests_are_read_in_the_thread_that_judges_for_they_can_be_large() -> None:
    readers: list[threading.Thread] = []

    def read() -> CodeTests:
        readers.append(threading.current_thread())
        return DOUBLE

    right = chain("print(int(input()) * 2)")
    assert (await score_code_async(right, read, family="strict")).strict["pass@1"] == 1
    assert [score.strict["pass@1"] for score in score_many([right, "none"], [read, read], family="strict")] == [1, 0]
    assert len(readers) == 3
    assert threading.main_thread() not in readers


async def test_cancelling_kills_the_sandbox_and_frees_its_place() -> None:
    options = SandboxOptions(workers=1, limits=Limits(wall_seconds=300))
    endless = chain("import time\ntime.sleep(300)")
    task = asyncio.create_task(score_code_async(endless, DOUBLE, sandbox=options))
    await asyncio.sleep(1)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    score = await score_code_async(chain("print(int(input()) * 2)"), DOUBLE, sandbox=options)
    assert score.strict["pass@1"] == 1
    assert time.monotonic() - began < 100
