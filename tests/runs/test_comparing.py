from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from metrics.statistics import paired_difference
from metrics.version import METRICS_VERSION
from runs.comparability import ComparisonRefused
from runs.comparing import compare
from runs.comparison_page import comparison_page
from runs.home import Home
from runs.run_folder import load_run
from signatures.errors import DataError, OptionError
from tests.runs.recorded import answer, record_run

A, B = "films-direct-small-aaaa", "films-search_o1-small-bbbb"
FIRST = [True, True, False, False, True, False, False, False, True, False]
SECOND = [True, False, True, True, True, True, True, False, True, True]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def two(home) -> Home:
    record_run(home, A, FIRST)
    record_run(home, B, SECOND, facts={"method": "search_o1"})
    return home


def test_the_difference_is_the_second_run_minus_the_first(two) -> None:
    found = compare(A, B, home=two)
    known = paired_difference(SECOND, FIRST)
    overall = found.overall
    assert (overall.a.mean, overall.b.mean, overall.difference) == (0.4, 0.8, pytest.approx(0.4))
    assert (overall.low, overall.high, overall.p) == (known.low, known.high, known.mcnemar_p)
    assert (overall.only_a, overall.only_b, overall.n) == (1, 5, 10)
    assert (found.metric, found.family, found.metrics_version) == ("em", "strict", METRICS_VERSION)
    assert (found.run_a.method, found.run_b.method, found.clean) == ("direct", "search_o1", None)


def test_swapping_the_runs_turns_everything_round(two) -> None:
    forth, back = compare(A, B, home=two), compare(B, A, home=two)
    assert back.overall.difference == -forth.overall.difference
    assert (back.overall.only_a, back.overall.only_b) == (5, 1)
    assert back.power == forth.power


def test_groups_have_their_own_differences(two) -> None:
    found = compare(A, B, home=two, group="type")
    assert list(found.groups) == ["type=bridge", "type=single"]
    assert [scores.n for scores in found.groups.values()] == [5, 5]
    assert found.groups["type=bridge"].difference == pytest.approx((3 - 1) / 5)
    assert compare(A, B, home=two).groups == found.groups
    with pytest.raises(OptionError, match="no groups named 'level'; they have: type"):
        compare(A, B, home=two, group="level")


def test_questions_that_flipped_are_told_with_both_answers_and_where_their_chains_are(two) -> None:
    flips = compare(A, B, home=two).flips
    assert [flip.id for flip in flips] == ["q1", "q2", "q3", "q5", "q6", "q9"]
    assert [flip.gained for flip in flips] == [False, *[True] * 5]
    lost = flips[0]
    assert (lost.question, lost.answers) == ("Who directed film 1?", ("Name 1",))
    assert (lost.a[0].prediction, lost.b[0].prediction) == ("Name 1", "nobody")
    assert (lost.a[0].journal, lost.a[0].trace) == (str(two.runs / A / "journal.jsonl"), "")
    assert lost.b[0].chain == "Well, \\boxed{nobody}"


def test_the_power_says_how_many_questions_it_would_take(two) -> None:
    power = compare(A, B, home=two).power
    assert (power.questions, power.discordant, power.discordant_bound) == (10, 0.6, None)
    # Connor: ((1.95996 sqrt(0.6) + 0.84162 sqrt(0.6 - 0.16)) / 0.4)^2 = 26.9.
    assert power.needed == 27
    assert power.visible is None or power.visible > 0.4


def test_runs_that_agree_everywhere_need_no_number_of_questions(home) -> None:
    for name in (A, B):
        record_run(home, name, [True, False] * 50)
    found = compare(A, B, home=home)
    assert (found.flips, found.overall.p, found.power.needed) == ((), 1.0, None)
    assert found.power.discordant == 0
    assert found.power.discordant_bound == pytest.approx(3 / 100, rel=0.03)


def test_graded_metrics_have_a_bootstrap_interval_and_a_p(two) -> None:
    found = compare(A, B, metric="f1", home=two)
    half = [answer(i, True, reasoning="\\boxed{Name x}" if i % 2 else f"\\boxed{{Name {i}}}") for i in range(10)]
    record_run(two, "films-halves", half)
    graded = compare("films-halves", B, metric="f1", home=two)
    assert found.overall.mcnemar_p is not None
    assert graded.overall.mcnemar_p is None
    assert graded.power.discordant is None
    assert 0 < graded.overall.p <= 1
    assert graded.overall.low <= graded.overall.difference <= graded.overall.high


def test_several_samples_are_compared_by_question_means(home) -> None:
    record_run(home, A, [[True, False], [False, False], [True, True], [False, True]])
    record_run(home, B, [[True, True], [False, False], [True, False], [True, True]])
    overall = compare(A, B, home=home).overall
    assert (overall.n, overall.a.n, overall.mcnemar_p) == (4, 4, None)
    assert overall.difference == pytest.approx(1 / 8)
    assert (overall.only_a, overall.only_b) == (1, 2)
    flip = compare(A, B, home=home).flips[0]
    assert (flip.id, flip.score_a, flip.score_b, len(flip.a)) == ("q2", 1.0, 0.5, 2)
    record_run(home, "films-once", [True, False, True, True])
    assert "A has 2 samples a question, B 1; question means are compared." in compare(A, "films-once", home=home).notes


def test_contaminated_questions_are_left_out_once_more(home) -> None:
    record_run(home, A, FIRST)
    record_run(home, B, [answer(i, right, contaminated=i in (2, 3)) for i, right in enumerate(SECOND)])
    found = compare(A, B, home=home)
    assert found.clean is not None
    assert (found.overall.n, found.clean.n, found.contaminated) == (10, 8, 2)
    assert found.clean.difference == pytest.approx((3 - 1) / 8)
    assert [flip.id for flip in found.flips if flip.contaminated] == ["q2", "q3"]


def test_failed_questions_are_compared_as_wrong_and_told(home) -> None:
    record_run(home, A, [answer(0, True), answer(1, True, finish="error", error_kind="model")])
    record_run(home, B, [True, True])
    found = compare(A, B, home=home)
    assert (found.overall.only_b, found.notes[-1]) == (1, "A: 1 answers failed and count as wrong.")


def test_other_versions_of_the_metrics_do_not_compare_even_on_shared_questions(home) -> None:
    record_run(home, A, FIRST)
    record_run(home, B, SECOND, facts={"metrics": METRICS_VERSION + 1})
    for shared in (False, True):
        with pytest.raises(ComparisonRefused, match=f"different versions of the metrics, {A} by version 1 and {B} by"):
            compare(A, B, home=home, shared=shared)
    record_run(home, "films-old", FIRST, facts={"metrics": None})
    with pytest.raises(ComparisonRefused, match="films-old by an unnumbered one"):
        compare("films-old", A, home=home)


def test_runs_from_before_versions_were_noted_compare_with_a_warning(home) -> None:
    for name, outcomes in ((A, FIRST), (B, SECOND)):
        record_run(home, name, outcomes, facts={"metrics": None})
    found = compare(A, B, home=home)
    assert found.metrics_version is None
    assert "Neither run noted the version of its metrics" in found.notes[0]


def test_other_questions_are_refused_unless_the_shared_ones_are_enough(home) -> None:
    record_run(home, A, FIRST)
    record_run(home, B, SECOND[:6])
    with pytest.raises(ComparisonRefused, match=r"different questions, 10 and 6, of which 6 are the same.*--shared"):
        compare(A, B, home=home)
    found = compare(A, B, home=home, shared=True)
    assert (found.overall.n, found.run_a.questions, found.run_b.questions) == (6, 10, 6)
    assert "Compared on the 6 questions that both answered." in found.notes


def test_other_data_are_refused_and_changed_questions_never_count_as_shared(home) -> None:
    record_run(home, A, FIRST)
    changed = [answer(i, right) for i, right in enumerate(SECOND)]
    changed[4]["answers"] = ["Somebody else"]
    record_run(home, B, changed, facts={"data": "e" * 64, "split": "validation"})
    with pytest.raises(ComparisonRefused, match=r"films test \(dddd.*films validation \(eeee.*1 questions have one id"):
        compare(A, B, home=home)
    assert compare(A, B, home=home, shared=True).overall.n == 9
    record_run(home, "films-other", [{**answer(i, True), "id": f"x{i}"} for i in range(3)])
    with pytest.raises(ComparisonRefused, match="no question of one is in the other"):
        compare(A, "films-other", home=home, shared=True)


def test_an_unfinished_run_says_how_many_are_missing(home) -> None:
    record_run(home, A, FIRST)
    record_run(home, B, SECOND[:7], planned=10)
    with pytest.raises(ComparisonRefused, match=f"{B} is unfinished: 3 of 10 answers are missing"):
        compare(A, B, home=home)
    found = compare(A, B, home=home, shared=True)
    assert (found.overall.n, any("3 of 10" in note for note in found.notes)) == (7, True)
    (home.runs / B / "plan.json").unlink()
    with pytest.raises(ComparisonRefused, match="7 answers, how many are missing is not noted"):
        compare(A, B, home=home)


def test_runs_that_cannot_be_compared_at_all(two) -> None:
    with pytest.raises(OptionError, match="named twice"):
        compare(A, two.runs / A, home=two)
    (two.runs / "films-empty").mkdir()
    (two.runs / "films-empty" / "journal.jsonl").touch()
    with pytest.raises(DataError, match="holds no answered question"):
        compare(A, "films-empty", home=two)
    with pytest.raises(OptionError, match=r"no metric 'bleu'; it has: acc, em, f1"):
        compare(A, B, metric="bleu", home=two)
    with pytest.raises(OptionError, match="Unknown family 'lax'; known: official, strict"):
        compare(A, B, family="lax", home=two)


@pytest.mark.parametrize("broken", [math.nan, math.inf, None, "1"])
def test_scores_that_are_no_numbers_are_refused_by_name(home, broken) -> None:
    records = [answer(i, True) for i in range(10)]
    records[3]["strict"] = {**records[3]["strict"], "em": broken}
    record_run(home, A, records)
    record_run(home, B, SECOND)
    with pytest.raises(DataError, match=r"em \(strict\) is no number for q3; score the run again"):
        compare(A, B, home=home)
    assert compare(A, B, metric="f1", home=home).overall.n == 10


def test_the_official_family_shows_its_own_predictions(two) -> None:
    found = compare(load_run(A, two), load_run(B, two), family="official", home=two)
    assert (found.overall.difference, found.flips[0].a[0].prediction) == (pytest.approx(0.4), "Name 1")


def test_a_comparison_is_plain_data_without_chains(home) -> None:
    for name in (A, B):
        record_run(home, name, [answer(0, name == B, reasoning=f"SECRET CHAIN \\boxed{{Name {int(name == A)}}}")])
    found = compare(A, B, home=home)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert "SECRET CHAIN" not in text
    assert json.loads(text)["overall"]["standard_error"] is None
    assert json.loads(text)["flips"][0]["b"][0]["prediction"] == "Name 0"


def test_the_page_shows_both_chains_as_text(home) -> None:
    attack = "<script>alert(1)</script> \\boxed{<img src=x>}"
    record_run(home, A, [answer(0, False, reasoning=attack)])
    record_run(home, B, [answer(0, True)])
    page = comparison_page(compare(A, B, home=home))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "Well, \\boxed{Name 0}" in page
    assert "Gained (B right, A wrong): 1" in page
