"""An optimisation from questions to a compiled program: never worse than the start, nothing paid for in vain."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from programs.saving import read_compiled
from runs.evaluation import evaluate
from runs.optimizing.result import Optimised
from signatures.errors import DataError, ModelError, OptionError, ProgramError
from tests.runs.optimizing.optimize_world import TRAIN, VAL, shows_a_chain
from tests.runs.world import write_lines


def test_a_model_that_must_be_shown_how_is_shown_how(workshop) -> None:
    here = workshop()
    done = here.optimize()
    assert (done.before.mean, done.after.mean, done.after.n) == (0.0, 1.0, VAL)
    assert done.difference.mcnemar_p < 0.05
    assert (done.improved, done.interrupted) == (True, False)
    assert len(done.program.reason.demos) > 0
    assert done.file == here.home.programs / "search_o1--qwq-32b--open_qa.json"
    assert [trial.score for trial in done.trials][:1] == [0.0]
    assert max(done.trials, key=lambda trial: trial.score).score == 1.0


def test_the_program_written_is_the_one_that_scored(workshop) -> None:
    here = workshop()
    done = here.optimize()
    calls = here.generations()
    (run,) = evaluate(
        "films",
        home=here.home,
        data=here.val,
        corpus=here.films.corpus,
        model=f"hosted_vllm/{here.server.model}",
        base_url=here.server.base_url,
        program=done.file.stem,
        methods=("search_o1",),
        track=False,
        progress=False,
    )
    assert run.summary.scores["strict"]["em"].mean == done.after.mean == 1.0
    # The very prompts and seeds of the optimisation: every reply is in the cache.
    assert here.generations() == calls


def test_the_file_says_how_the_program_came_about(workshop) -> None:
    here = workshop()
    done = here.optimize(options={"top_k": 3}, seed=5)
    told = read_compiled(done.file).metadata
    assert told == done.metadata
    assert (told["optimizer"], told["budget"], told["seed"], told["interrupted"]) == ("random-search", "2", 5, False)
    assert (told["train"]["n"], told["validation"]["n"], told["train"]["ids"][0]) == (TRAIN, VAL, "q0")
    assert (len(told["trained_on"]), {len(key) for key in told["trained_on"]}) == (TRAIN + VAL, {16})
    assert told["before"]["mean"] == 0.0
    assert told["after"]["low"] == done.after.low > 0.5
    assert told["difference"]["mcnemar_p"] == done.difference.mcnemar_p
    assert told["spent"]["calls"] == done.spent.calls == here.generations()
    assert told["demo_tokens"]["reason"] > 0
    assert told["command"]["options"] == {"top_k": 3}
    assert told["model"]["name"] == "hosted_vllm/QwQ"
    assert {"gepa", "optuna"} <= set(told["versions"])
    assert told["leaked_test_rows"] == []


def test_a_key_is_not_written(workshop, monkeypatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "a-secret")
    assert "a-secret" not in everything(workshop(api_key="a-secret").optimize())


def test_the_password_of_an_address_is_not_written(workshop) -> None:
    here = workshop()
    address = here.server.base_url.replace("http://", "http://user:a-password@")
    assert "a-password" not in everything(here.optimize(base_url=address))


def everything(done: Optimised) -> str:
    """Return all that an optimisation wrote."""
    return done.file.read_text() + "".join(path.read_text() for path in done.folder.rglob("*") if path.is_file())


def test_where_nothing_beats_the_start_the_start_is_written_and_it_is_said(workshop) -> None:
    here = workshop(lambda prompt, body: "\\boxed{unknown}")
    out = io.StringIO()
    done = here.optimize(Console(file=out, width=100))
    assert (done.improved, done.before, done.program.reason.demos) == (False, done.after, [])
    assert "No candidate beat the start" in out.getvalue()


def test_what_the_optimizer_proposes_last_does_not_win_over_a_better_start(workshop) -> None:
    """The model answers from itself, and only while nobody shows it chains."""

    def reply(prompt: str, body: dict[str, Any]) -> str:
        if shows_a_chain(prompt):
            return "\\boxed{distracted}"
        number = prompt.rpartition("Sunrise over ")[2].split("?")[0]
        return f"\\boxed{{Director {number}}}"

    here = workshop(reply)
    done = here.optimize(method="direct")
    assert (done.before.mean, done.after.mean, done.improved) == (1.0, 1.0, False)


@pytest.mark.parametrize("method", ["direct", "standard_rag", "rag_agent"])
def test_every_method_is_optimised(workshop, method) -> None:
    here = workshop()
    done = here.optimize(method=method, budget=1)
    assert (done.program.method, done.after.n) == (method, VAL)
    assert done.after.mean >= done.before.mean


@pytest.mark.parametrize(("only", "frozen"), [("reason", "refine"), ("refine", "reason")])
def test_only_one_predictor_is_changed(workshop, only, frozen) -> None:
    here = workshop()
    done = here.optimize(only=only)
    state = json.loads(done.file.read_text())["state"]
    assert state[frozen]["demos"] == []
    assert done.improved == (only == "reason")


def test_a_compiled_program_is_improved_further_and_remembers_what_it_learned_from(workshop) -> None:
    here = workshop()
    first = here.optimize(output="first", method="direct")
    rows = [{"id": f"n{i}", "question": f"Which number is {i}?", "answers": [str(i)]} for i in range(8)]
    out = io.StringIO()
    second = here.optimize(
        Console(file=out, width=100), train=write_lines(here.folder / "more.jsonl", rows), method="direct",
        start="first", output="second", seed=1,
    )  # fmt: skip
    assert set(first.metadata["trained_on"]) < set(second.metadata["trained_on"])
    assert f"learned from {VAL} of the validation questions" in out.getvalue()


def test_a_start_from_the_labels_needs_no_teacher(workshop) -> None:
    here = workshop()
    out = io.StringIO()
    done = here.optimize(Console(file=out, width=100), start="worked")
    assert f"demos from the labels of {TRAIN} training questions" in out.getvalue()
    assert (done.before.mean, done.after.mean) == (1.0, 1.0)
    assert len(done.program.reason.demos) > 0


def test_settings_that_cannot_be_are_refused_before_a_model_is_asked(workshop) -> None:
    here = workshop()
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"optimizer": "adam"}, OptionError, r"adam.*bootstrap.*random-search.*simba"),
        ({"method": "magic"}, OptionError, r"Unknown method 'magic'; known methods: direct"),
        ({"budget": "huge"}, OptionError, r"huge.*light"),
        ({"budget": 0}, OptionError, r"0"),
        ({"only": "refine", "method": "direct"}, OptionError, r"--only refine is for search_o1"),
        ({"train_limit": 1}, DataError, r"needs at least \d+ training questions; found 1"),
        ({"start": "nothing-of-that-name"}, OptionError, r"Unknown program 'nothing-of-that-name'"),
        ({"output": "a/b"}, OptionError, r"'a/b' cannot name a program"),
        ({"colour": "red"}, OptionError, r"Unknown option 'colour'"),
        ({"options": {"top_k": -1}}, OptionError, r"top_k"),
    ]
    for changes, kind, text in refused:
        with pytest.raises(kind, match=text):
            here.optimize(**changes)
    assert here.generations() == 0
    assert not list(here.home.root.glob("optimizations/*"))


def test_test_rows_are_refused_unless_the_user_knows_and_then_the_program_says_so(workshop) -> None:
    here = workshop()
    rows = [json.loads(line) for line in here.train.read_text().splitlines()]
    write_lines(
        here.train, [*rows, {"id": "t", "question": "Who directed Metropolis?", "answers": ["Lang"], "split": "test"}]
    )
    with pytest.raises(DataError, match=r"'t' for one.*--i-know"):
        here.optimize()
    assert here.generations() == 0
    assert here.optimize(i_know=True).metadata["leaked_test_rows"] == ["t"]


def test_another_program_of_that_name_is_not_overwritten(workshop) -> None:
    here = workshop()

    def optimize(**changes: Any) -> Optimised:
        return here.optimize(method="direct", budget=1, **changes)

    first = optimize(output="mine")
    with pytest.raises(ProgramError, match=r"mine\.json exists .* --output NAME, or replace it with --force"):
        optimize(output="mine", seed=1)
    assert optimize(output="mine").id == first.id
    assert optimize(output="mine", seed=1, force=True).id != first.id
    own = here.folder / "own.json"
    own.write_text("{}")
    with pytest.raises(ProgramError, match=r"own\.json exists"):
        optimize(output=str(own))
    own.unlink()
    assert optimize(output=str(own)).file == own
    (here.folder / "folder.json").mkdir()
    with pytest.raises(ProgramError, match=r"folder\.json is a folder"):
        optimize(output=str(here.folder / "folder.json"))


def test_where_every_question_fails_nothing_is_optimised(workshop) -> None:
    here = workshop()
    here.server.fail_next(10_000, status=400, body={"error": {"message": "out of order"}}, path="completions")
    with pytest.raises(ModelError, match=r"Every question failed.*out of order"):
        here.optimize()
    assert here.ledger_lines() < 40


def test_questions_that_fail_count_as_wrong_and_are_asked_again_by_the_next_start(workshop) -> None:
    here = workshop()
    here.server.fail_next(2, status=400, body={"error": {"message": "hiccup"}}, path="completions")
    first = here.optimize(concurrency=1)
    assert first.after.mean == 1.0
    again = here.optimize(concurrency=1)
    assert (again.id, again.before.mean, again.after.mean) == (first.id, 0.0, 1.0)


def test_progress_tells_trial_score_questions_tokens_and_what_is_left(workshop) -> None:
    here = workshop()
    out = io.StringIO()
    here.optimize(Console(file=out, width=200), progress=True)
    lines = [line for line in out.getvalue().splitlines() if line.startswith("random-search: ")]
    assert 5 <= len(lines) <= 60
    assert "trial " in lines[0]
    assert "questions" in lines[0]
    assert "tokens" in lines[0]
    assert "left about" in lines[0]
    assert "best 100.0" in lines[-1]
    assert "Average Metric" not in out.getvalue()


def test_a_second_optimisation_is_told_apart_by_what_changes_its_result(workshop) -> None:
    here = workshop()
    first = here.optimize(output="one", method="direct", budget=1)
    assert here.optimize(output="two", method="direct", budget="1", concurrency=1).id == first.id
    assert here.optimize(output="three", method="direct", budget=1, options={"max_turns": 2}).id != first.id
