"""Code questions: the program in a chain is run on a problem's tests, in a sandbox.

`official` is the published scorer: public tests only, 10 s each, the last closed Python block of the whole output, and
every program run the way LiveCodeBench's older runner runs one that reads standard input. A problem that asks for a
function is therefore always failed: of the 112 problems 70 can be passed. `strict` is right rather than comparable: all
tests that are present, the program of the model's own final answer, started as a program or called by the function's
name, with the newest runner's 6 s and its way to compare. It differs from that runner where its stand-ins fail a right
program (`global`, `for line in sys.stdin`, threads, a main guard that is not last, `from __future__`). Where the
private tests are missing, a strict score is an upper bound, and `CodeScore.coverage` says so.

Both stop at the first test that is not passed, as those runners do: one is enough to fail. One sample a chain is scored
here; pass@k over several is in `metrics.statistics`.

Source: the published scorer (github.com/sunnynexus/Search-o1, scripts/evaluate.py) and LiveCodeBench
(github.com/LiveCodeBench/LiveCodeBench, lcb_runner/evaluation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metrics.code_judge import official_output_matches, strict_output_matches, value_matches
from metrics.code_verdicts import CodeScore, TestVerdict
from metrics.extraction import code_block
from metrics.kinds import HEADLINE
from metrics.livecodebench_tests import CodeTest, CodeTests
from metrics.sandbox.launcher import Program, Run
from metrics.sandbox.options import SandboxOptions
from metrics.sandbox.pool import Cancellation, in_thread, map_in_order, run_program, with_time_limit
from signatures.errors import DataError, OptionError

FAMILIES = ("official", "strict", "both")

OFFICIAL_SECONDS = 10.0
"""Time limit of a test in the published scorer."""

STRICT_SECONDS = 6.0
"""Time limit of a test in LiveCodeBench's own runner."""

Tests = CodeTests | Callable[[], CodeTests]
"""The tests of a problem, or a function that reads them. It is called in the thread that judges, and what it returned
is let go of afterwards: private tests take seconds to decode and hundreds of megabytes to keep."""

_SHOWN = 200


def score_code(chain: str, tests: Tests, *, family: str = "both", sandbox: SandboxOptions | None = None) -> CodeScore:
    """Score a chain that answers a code question.

    Args:
        chain: The whole chain, injected blocks with their markers; empty for a question that failed, which is wrong.
        tests: The problem's tests, or what reads them.
        family: One of `FAMILIES`; one alone takes half the time.
        sandbox: How programs are run; None is the default of `SandboxOptions`. The time limit is the family's own.

    Returns:
        The score; its metrics are `pass@1` (every test passed) and `valid` (there is a program at all), 0 or 1.

    Raises:
        OptionError: The family is unknown.
        SandboxError: Programs cannot be isolated here, and running them without was not asked for.
    """
    return _score(chain, tests, family, sandbox or SandboxOptions(), None)


async def score_code_async(
    chain: str, tests: Tests, *, family: str = "both", sandbox: SandboxOptions | None = None
) -> CodeScore:
    """Score a chain without blocking the event loop; at most one program a processor runs at once.

    A cancelled task kills its sandbox.

    Args:
        chain: As of `score_code`.
        tests: As of `score_code`.
        family: As of `score_code`.
        sandbox: As of `score_code`.

    Returns:
        The score.

    Raises:
        OptionError: The family is unknown.
        SandboxError: Programs cannot be isolated here.
    """
    options = sandbox or SandboxOptions()
    return await in_thread(lambda cancellation: _score(chain, tests, family, options, cancellation), options)


def score_many(
    chains: Sequence[str],
    tests: Sequence[Tests],
    *,
    family: str = "both",
    sandbox: SandboxOptions | None = None,
) -> list[CodeScore]:
    """Score chains on all processors.

    Args:
        chains: As of `score_code`.
        tests: The tests of each chain's problem, or what reads them.
        family: As of `score_code`.
        sandbox: As of `score_code`.

    Returns:
        The scores, in the chains' order.

    Raises:
        OptionError: The family is unknown, or there are not as many tests as chains.
        SandboxError: Programs cannot be isolated here.
    """
    if len(chains) != len(tests):
        raise OptionError(f"score_many got {len(chains)} chains but the tests of {len(tests)} problems.")
    options = sandbox or SandboxOptions()
    pairs = list(zip(chains, tests, strict=True))
    return map_in_order(lambda pair: _score(*pair, family, options, None), pairs, options)


def score_code_label(chain: str, answers: Sequence[str], *, sandbox: SandboxOptions | None = None) -> CodeScore:
    """Score a chain whose question carries its tests as its label, as the scorers of other tasks are called.

    Args:
        chain: As of `score_code`.
        answers: One label, written by `CodeTests.to_label`.
        sandbox: As of `score_code`.

    Returns:
        The score in both families.

    Raises:
        DataError: There is not one label, or it holds no tests.
        SandboxError: Programs cannot be isolated here.
    """
    if len(answers) != 1:
        raise DataError(f"A code question has one label, its tests; this one has {len(answers)}.")
    return score_code(chain, CodeTests.from_label(answers[0]), sandbox=sandbox)


def judge_program(
    source: str,
    tests: CodeTests,
    family: str,
    sandbox: SandboxOptions | None = None,
    *,
    cancellation: Cancellation | None = None,
) -> tuple[TestVerdict, ...]:
    """Judge a program, whatever it was found in.

    Args:
        source: The program; empty is `no_code`.
        tests: The problem's tests.
        family: `official` or `strict`.
        sandbox: As of `score_code`.
        cancellation: Given by whoever may want to give the work up.

    Returns:
        One verdict a test that the family judges, in the problem's order.

    Raises:
        SandboxError: Programs cannot be isolated here.
    """
    options = sandbox or SandboxOptions()
    strict = family == "strict"
    wanted = tests.all if strict else tests.public
    public = [index < len(tests.public) for index in range(len(wanted))]
    if not source.strip():
        return tuple(TestVerdict("no_code", "no closed Python block", public=shown) for shown in public)
    verdicts: list[TestVerdict] = []
    groups = _by_kind(wanted, strict=strict)
    for mode, members in groups:
        if verdicts and not verdicts[-1].passed:
            break
        offset = len(verdicts)

        def judged(index: int, run: Run, mode: str = mode, offset: int = offset) -> bool:
            verdicts.append(_verdict(run, wanted[offset + index], mode, public[offset + index]))
            return verdicts[-1].passed

        run_program(
            Program(source, mode, tests.function if mode == "function" else ""),
            (test.input for test in members),
            options,
            with_time_limit(options.limits, STRICT_SECONDS if strict else OFFICIAL_SECONDS),
            go_on=judged,
            cancellation=cancellation,
        )
    return (*verdicts, *(TestVerdict("not_run", public=shown) for shown in public[len(verdicts) :]))


def _score(
    chain: str, tests: Tests, family: str, options: SandboxOptions, cancellation: Cancellation | None
) -> CodeScore:
    if family not in FAMILIES:
        raise OptionError(f"unknown metric family {family!r}; known: {', '.join(FAMILIES)}.")
    tests = tests if isinstance(tests, CodeTests) else tests()
    programs = {"official": code_block(chain), "strict": code_block(chain, strict=True)}
    verdicts = {
        name: judge_program(source, tests, name, options, cancellation=cancellation)
        for name, source in programs.items()
        if family in (name, "both")
    }
    metrics = {
        # Without tests nothing is shown to be right.
        name: {
            HEADLINE["code"]: float(bool(found) and all(verdict.passed for verdict in found)),
            "valid": float(bool(programs[name].strip())),
        }
        for name, found in verdicts.items()
    }
    return CodeScore(
        official=metrics.get("official", {}),
        strict=metrics.get("strict", {}),
        official_answer=programs["official"],
        strict_answer=programs["strict"],
        headline=HEADLINE["code"],
        official_verdicts=verdicts.get("official", ()),
        strict_verdicts=verdicts.get("strict", ()),
        coverage=tests.coverage,
    )


def _by_kind(tests: Sequence[CodeTest], *, strict: bool) -> list[tuple[str, list[CodeTest]]]:
    """Return runs of tests that are run in one way, in order; nearly always one."""
    groups: list[tuple[str, list[CodeTest]]] = []
    for test in tests:
        mode = "published" if not strict else "function" if test.functional else "script"
        if not groups or groups[-1][0] != mode:
            groups.append((mode, []))
        groups[-1][1].append(test)
    return groups


def _verdict(run: Run, test: CodeTest, mode: str, public: bool) -> TestVerdict:
    reason, detail = run.reason, run.detail
    if reason == "ok":
        printed = run.output.decode("utf-8", "replace")
        if mode == "function":
            right, got = value_matches(run.value, test.output), run.value or "nothing"
        else:
            matches = official_output_matches if mode == "published" else strict_output_matches
            right, got = matches(printed, test.output), printed
        reason = "passed" if right else "wrong_answer"
        detail = "" if right else f"got {_short(got)}, expected {_short(test.output)}"
    return TestVerdict(reason, detail, run.stderr, run.cpu_seconds, run.wall_seconds, public)


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
