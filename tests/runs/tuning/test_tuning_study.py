"""The study in its storage: whose it is, what it refuses, and that passwords stay out of sight."""

from __future__ import annotations

import optuna
import pytest

from runs.tuning.pruning import make_pruner, waves
from runs.tuning.results import TrialResult, best_trial, pareto_front
from runs.tuning.storage import default_storage, open_storage, shown_storage, without_secrets
from runs.tuning.study import TuningStudy
from signatures.errors import DataError, OptionError

FACTS = {"space": {"top_k": "1:20"}, "data": "abc", "runs": {"search_o1 none": {"options": {"max_searches": 3}}}}


def open_study(folder, facts=FACTS, name="mine", objective=("score",)) -> TuningStudy:
    pruner = make_pruner("none", questions=8, report_every=2, warmup=2)
    return TuningStudy(
        name, facts, objective, url=default_storage(folder), folder=folder, seed=0, pruner=pruner, grace=60
    )


def test_a_study_of_another_space_or_other_data_is_refused_by_the_difference(tmp_path) -> None:
    open_study(tmp_path)
    open_study(tmp_path)
    with pytest.raises(DataError) as error:
        open_study(tmp_path, {**FACTS, "space": {"top_k": "1:10", "max_searches": "1:5"}, "data": "xyz"})
    text = str(error.value)
    assert "data: abc there, xyz here" in text
    assert "space.top_k: 1:20 there, 1:10 here" in text
    assert "space.max_searches: not there there, 1:5 here" in text
    assert "Choose another --study NAME" in text
    changed = {"search_o1 none": {"options": {"max_searches": 9}}}
    with pytest.raises(DataError, match=r"runs\.search_o1 none\.options\.max_searches: 3 there, 9 here"):
        open_study(tmp_path, {**FACTS, "runs": changed})


def test_a_study_that_another_program_made_is_refused(tmp_path) -> None:
    url = default_storage(tmp_path)
    optuna.create_study(study_name="mine", storage=url).optimize(lambda trial: 0.0, n_trials=1)
    with pytest.raises(DataError, match="Study 'mine' was not made by search-o1 tune"):
        open_study(tmp_path)


def test_a_trial_is_surplus_when_enough_lower_numbers_are_done_at_work_or_waiting(tmp_path) -> None:
    study = open_study(tmp_path)
    for _ in range(3):
        study.optuna.ask()
    assert [study.is_surplus(number, 2) for number in range(3)] == [False, False, True]
    study.fail(0)
    assert not study.is_surplus(2, 2)
    assert not study.fail(0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@db.lab/studies", "postgresql://me:***@db.lab/studies"),
        ("mysql+pymysql://me:p%40ss@h/d?password=s3cret&charset=utf8", "mysql+pymysql://me:***@h/d?charset=utf8&password=***"),
        ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
        ("s3cret", "(not a database URL)"),
    ],
)  # fmt: skip
def test_passwords_are_not_shown(url, shown) -> None:
    assert shown_storage(url) == shown


def test_passwords_are_taken_out_of_what_a_driver_says() -> None:
    url = "postgresql://me:p%40ss@h/d?sslpassword=other"
    told = without_secrets(f"cannot open {url}: p@ss, p%40ss and other are wrong", url)
    assert not any(secret in told for secret in ("p@ss", "p%40ss", "other"))


@pytest.mark.parametrize(
    ("url", "kind", "told"),
    [
        ("studies", OptionError, "--storage is not a database URL"),
        ("postgresql+missing://me:s3cret@h/d", OptionError, "the driver for postgresql is not installed"),
        ("sqlite:////nowhere/at/all.db", DataError, "storage sqlite:////nowhere/at/all.db cannot be used: "),
    ],
)
def test_a_storage_that_cannot_be_used_is_named_without_its_password(url, kind, told) -> None:
    with pytest.raises(kind) as error:
        open_storage(url, grace=60, on_dead=lambda study, trial: None)
    assert told in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_folder_with_braces_and_blanks_holds_a_study(tmp_path) -> None:
    study = open_study(tmp_path / "a {SCHEMA_VERSION} b")
    study.optuna.ask()
    assert study.standing().running == 1
    assert (tmp_path / "a {SCHEMA_VERSION} b" / "study.db").is_file()


def trial(number: int, score: float, tokens: float, state: str = "complete") -> TrialResult:
    return TrialResult(number, state, {}, {"score": score, "tokens": tokens})


def test_the_best_trial_has_the_highest_score_then_the_fewest_tokens_then_comes_first() -> None:
    trials = [trial(0, 0.5, 10), trial(1, 0.9, 90), trial(2, 0.9, 50), trial(3, 0.9, 50), trial(4, 1.0, 1, "pruned")]
    assert best_trial(trials) is trials[2]
    assert best_trial([trials[4]]) is None


def test_the_front_holds_what_no_other_trial_beats() -> None:
    trials = [trial(0, 0.5, 10), trial(1, 0.9, 90), trial(2, 0.9, 50), trial(3, 0.4, 20), trial(4, 0.9, 50)]
    assert [t.number for t in pareto_front(trials, ("score", "tokens"))] == [2, 0]
    assert [t.number for t in pareto_front(trials, ("score",))] == [2]
    assert pareto_front([], ("score",)) == []


def test_questions_are_cut_into_waves() -> None:
    assert [list(wave) for wave in waves(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert waves([], 2) == []
