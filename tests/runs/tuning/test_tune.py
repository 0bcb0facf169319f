"""A tuning end to end in one process: a model server over HTTP, a real index, a study in SQLite."""

from __future__ import annotations

import io
import json
import struct

import optuna
import pytest
from rich.console import Console

from runs import evaluate
from runs.benchmarks.registry import load_questions
from runs.run_folder import load_run
from runs.tuning.trial_run import TrialFailedError
from runs.tuning.tune import tune
from signatures.errors import DataError, ModelError, OptionError, ProgramError
from tests.runs.tuning.tuning_world import QUESTIONS, reading_model, tried
from tests.runs.world import Films, facts, write_lines


def screen() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=200), text


def test_the_best_options_are_found_kept_and_printed_as_flags(tunings) -> None:
    world = tunings()
    console, text = screen()
    tuned = world.tune(console, trials=8, progress=True)
    assert tuned.finished == 8
    assert tuned.best is not None
    assert tuned.best.metrics["score"] == 1.0
    # Among equals the cheapest: three documents are all that is needed.
    assert tuned.options["top_k"] == 3
    assert tuned.flags == f"--set top_k=3 --set context_chars={tuned.options['context_chars']}"
    kept = json.loads((tuned.folder / "best.json").read_text())
    assert (kept["options"], kept["trial"], kept["flags"]) == (tuned.options, tuned.best.number, tuned.flags)
    assert kept["score"] == pytest.approx({"mean": 1.0, "low": 0.6756, "high": 1.0, "n": 8}, abs=1e-4)
    assert f"Best options: {tuned.flags}" in text.getvalue()
    assert "search-o1 evaluate films --data OTHER_QUESTIONS.jsonl" in text.getvalue()
    assert (
        f"trial {tuned.best.number}: top_k=3 context_chars={tuned.options['context_chars']} · 100.0 complete"
        in text.getvalue()
    )
    # What parts right from wrong is what matters.
    assert kept["importance"]["top_k"] > 0.9


def test_evaluating_with_the_flags_gives_the_trial_again(tunings) -> None:
    world = tunings()
    tuned = world.tune()
    best = load_run(tuned.folder / "trials" / tuned.best.folder)
    calls = len(world.server.calls)
    settings = Films.settings(world, methods=("standard_rag",), program="none", options=tuned.options)
    (done,) = evaluate("films", home=world.home, **settings)
    assert done.id.rpartition("-")[0] == "films-standard_rag-qwq-32b"
    assert best.complete
    assert best.facts["options"] == json.loads((done.folder / "facts.json").read_text())["options"]
    assert [r["chain"] for r in best.records] == [r["chain"] for r in done.records]
    assert len(world.server.calls) == calls


def test_hopeless_trials_are_given_up_after_a_few_questions(tunings) -> None:
    world = tunings()
    tuned = world.tune(trials=14)
    pruned = [t for t in tuned.trials if t.state == "pruned"]
    assert pruned
    for trial in pruned:
        assert trial.values["top_k"] < 3
        assert trial.metrics["questions"] == 2
        assert trial.running == {2: 0.0}
        assert len(load_run(tuned.folder / "trials" / trial.folder).records) == 2
    # None is given up that could have been right.
    assert all(t.state == "complete" for t in tuned.trials if t.values["top_k"] >= 3)
    answered = sum(len(load_run(tuned.folder / "trials" / t.folder).records) for t in tuned.trials)
    assert answered == QUESTIONS * (14 - len(pruned)) + 2 * len(pruned)


def test_hyperband_lets_few_trials_go_on_and_none_lets_all(tunings) -> None:
    world = tunings(12)
    tuned = world.tune(trials=10, pruner="hyperband")
    assert {t.metrics["questions"] for t in tuned.trials if t.state == "pruned"} <= {2.0, 6.0}
    assert any(t.state == "pruned" for t in tuned.trials)
    assert tuned.best.values["top_k"] >= 3
    whole = world.tune(trials=3, pruner="none", study="whole", params={"top_k": "1,2"})
    assert [t.state for t in whole.trials] == ["complete"] * 3


def test_the_same_command_tries_the_same_options_and_another_seed_others(tunings, tmp_path) -> None:
    world = tunings()
    first = world.tune(trials=11)
    calls = len(world.server.calls)
    again = world.tune(trials=11, study="again")
    assert tried(again) == tried(first)
    assert [t.metrics["score"] for t in again.trials] == [t.metrics["score"] for t in first.trials]
    # All replies are in the cache.
    assert len(world.server.calls) == calls
    assert tried(world.tune(trials=2, seed=1)) != tried(first)[:2]


def test_a_study_goes_on_where_it_stopped_as_if_it_had_not(tunings) -> None:
    world = tunings()
    whole = world.tune(trials=11, study="whole")
    world.tune(trials=4, study="parts")
    console, text = screen()
    parts = world.tune(console, trials=11, study="parts")
    # The startup trials of Optuna, drawn from its seed alone, must not come a second time.
    assert tried(parts) == tried(whole)
    assert "Going on after 4 of 11 finished trials" in text.getvalue()
    calls = len(world.server.calls)
    console, text = screen()
    done = world.tune(console, trials=11, study="parts")
    assert (tried(done), len(world.server.calls)) == (tried(whole), calls)
    assert "has its 11 trials; more of them: --trials N" in text.getvalue()


def test_a_server_that_fails_stops_the_study_which_then_goes_on_as_if_nothing_had_been(tunings) -> None:
    world = tunings()
    whole = world.tune(trials=4, study="whole")
    world.server.fail_next(2, status=400, body={"error": {"message": "Injected refusal"}})
    with pytest.raises(TrialFailedError, match=r"Every question so far failed, 2 of 2; .*Injected refusal"):
        world.tune(trials=4, study="parts", temperature=0.5)
    parts = world.tune(trials=4, study="parts", temperature=0.5)
    assert [t.state for t in parts.trials] == ["failed"] + ["complete"] * 4
    assert tried(parts) == tried(whole)
    assert parts.trials[1].folder == parts.trials[0].folder == "0000"


def test_some_failed_questions_count_as_wrong(tunings) -> None:
    world = tunings()
    world.server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    tuned = world.tune(trials=1, concurrency=1, params={"top_k": "3,4"})
    assert (tuned.best.metrics["failures"], tuned.best.metrics["score"]) == (1, 7 / 8)


def test_score_against_tokens_gives_the_front_and_prunes_nothing(tunings) -> None:
    known = facts()

    def reply(prompt: str, _: object) -> str:
        film = next(film for film in known if f"Who directed {film}?" in prompt)
        needed = 1 + 2 * (list(known).index(film) % 3)
        return f"\\boxed{{{known[film] if f'**Document {needed}:**' in prompt else 'nobody'}}}"

    world = tunings(reply=reply)
    console, text = screen()
    tuned = world.tune(console, objective="score,tokens", params={"top_k": "1,2,3,4,5,6"}, trials=18)
    assert "Optuna cannot prune: every trial answers all questions" in text.getvalue()
    assert {t.state for t in tuned.trials} == {"complete"}
    assert {t.values["top_k"] for t in tuned.trials} == {1, 2, 3, 4, 5, 6}
    # 2, 4 and 6 cost more than 1, 3 and 5 and answer no more.
    assert [t.values["top_k"] for t in tuned.front] == [5, 3, 1]
    assert [t.metrics["score"] for t in tuned.front] == [1.0, 6 / 8, 3 / 8]
    assert tuned.best.values["top_k"] == 5
    kept = json.loads((tuned.folder / "best.json").read_text())
    assert [row["values"]["top_k"] for row in kept["front"]] == [5, 3, 1]
    assert {p.name for p in tuned.plots} == {"history.png", "slices.png", "importance.png", "pareto.png"}
    assert "Pareto front" in text.getvalue()


def test_latency_is_measured_without_the_reply_cache(tunings) -> None:
    world = tunings(2, latency=0.01)
    console, text = screen()
    tuned = world.tune(console, objective="score,latency", params={"top_k": "3,4"}, trials=4)
    assert "neither taken from the cache nor kept in it" in text.getvalue()
    assert len(world.server.calls) == 4 * 2
    assert all(t.metrics["latency"] > 0.01 for t in tuned.trials)
    with pytest.raises(OptionError, match=r"nobody tells a price for hosted_vllm/QwQ"):
        world.tune(objective="score,cost")


def test_the_plots_are_pictures(tunings) -> None:
    tuned = tunings().tune(
        trials=8,
        params={"top_k": "1:4", "temperature": "0.01:1:log", "stop_loops": "true,false", "max_turns": "none,3,5"},
    )
    assert {p.name for p in tuned.plots} == {"history.png", "slices.png", "importance.png"}
    for path in tuned.plots:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert width > 900
        assert height > 600
        assert content.endswith(b"IEND\xaeB`\x82")


def test_one_trial_is_too_few_for_pictures(tunings) -> None:
    assert tunings().tune(trials=1).plots == []


def test_methods_are_compared_in_one_study(tunings) -> None:
    world = tunings(reply=reading_model(1))
    tuned = world.tune(params={"method": "direct,standard_rag"}, trials=6, pruner="none")
    scores = {t.values["method"]: t.metrics["score"] for t in tuned.trials}
    assert scores == {"direct": 0.0, "standard_rag": 1.0}
    assert tuned.flags == "--method standard_rag"
    assert tuned.study.startswith("films-methods-qwq-32b-")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"params": {}}, "Nothing to tune"),
        ({"trials": 0}, "trials = 0"),
        ({"pruner": "random"}, "pruner = 'random'"),
        ({"objective": "speed"}, "Unknown objective 'speed'"),
        ({"study": "../up"}, "study = '../up'"),
        ({"method": "search_o2"}, "search_o2"),
        ({"option": 1}, "Unknown option 'option'"),
        ({"options": {"top_n": 3}}, "Unknown option 'top_n'"),
        ({"storage": "my-database"}, "--storage is not a database URL"),
        ({"storage": "oracle+nothing://u:secret@h/d"}, "driver for oracle is not installed"),
    ],
)
def test_bad_input_is_refused_before_a_question_is_asked(tunings, changes, told) -> None:
    world = tunings(1)
    with pytest.raises(OptionError) as error:
        world.tune(**changes)
    assert told in str(error.value)
    assert "secret" not in str(error.value)
    assert not world.server.calls


def test_a_program_for_another_method_is_refused_before_a_question_is_asked(tunings, tmp_path) -> None:
    world = tunings(1)
    with pytest.raises(ProgramError, match=r"nothing\.json"):
        world.tune(params={"program": f"none,{tmp_path / 'nothing.json'}"})
    assert not world.server.calls


def test_a_server_that_is_not_there_is_named(tunings) -> None:
    world = tunings(1)
    world.server.stop()
    with pytest.raises(ModelError):
        world.tune()


def test_test_rows_are_refused_unless_that_is_known_and_then_said(tunings) -> None:
    world = tunings(2)
    rows = [
        {"id": f"q{i}", "question": f"Who directed {f}?", "answers": [d]} for i, (f, d) in enumerate(facts(2).items())
    ]
    rows[1]["split"] = "test"
    write_lines(world.data, rows)
    with pytest.raises(DataError, match=r"1 of 2 questions to tune on are test rows, for example 'q1'.*--i-know"):
        world.tune()
    console, text = screen()
    tuned = world.tune(console, i_know=True, trials=2)
    assert "Tuning on 1 test rows (--i-know); best.json and MLflow say so." in text.getvalue()
    assert "the test score with these options is too good" in text.getvalue()
    assert json.loads((tuned.folder / "best.json").read_text())["leaked_test_rows"] == 1


def test_test_rows_of_a_benchmark_are_known_by_their_text(tunings) -> None:
    world = tunings(2)
    settings = {**world.settings(), "params": {"top_k": "1:2"}}
    (test,) = load_questions("quickstart", split="test", limit=1).questions
    copied = {"id": "mine", "question": f"  {test.question.upper().rstrip('?')} ?", "answers": ["x"]}
    write_lines(world.data, [copied, {"id": "1", "question": "Who?", "answers": ["x"]}])
    with pytest.raises(DataError, match=r"1 of 2 questions to tune on are test rows, for example 'mine'"):
        tune("quickstart", home=world.home, **settings)
    write_lines(
        world.data,
        [
            {"id": "a", "question": "Who is it?", "answers": ["x"], "split": "validation"},
            {"id": "b", "question": "Who is it", "answers": ["x"], "split": "test"},
        ],
    )
    with pytest.raises(DataError, match=r"1 of 1 questions to tune on are test rows, for example 'a'"):
        tune("films", home=world.home, **settings, split="validation")
    split = {name: value for name, value in settings.items() if name != "data"}
    with pytest.raises(DataError, match=r"212 of 212 questions to tune on are test rows"):
        tune("quickstart", home=world.home, **split, split="test")
    with pytest.raises(OptionError, match=r"Benchmark gpqa has no split 'validation' to tune on; it has: "):
        tune("gpqa", home=world.home, **split)


def test_a_file_of_unknown_split_is_taken_with_a_warning(tunings) -> None:
    world = tunings(2)
    write_lines(world.data, [{"id": "q0", "question": f"Who directed {next(iter(facts()))}?", "answers": ["x"]}])
    console, text = screen()
    tuned = world.tune(console, trials=1)
    assert "Not checked for test rows" in text.getvalue()
    warning = json.loads((tuned.folder / "best.json").read_text())["warning"]
    assert "nothing says which questions are for testing" in warning


def test_optunas_log_level_is_left_as_it_was(tunings) -> None:
    before = optuna.logging.get_verbosity()
    tunings(1).tune(trials=1)
    assert optuna.logging.get_verbosity() == before


def test_a_terminal_shows_trial_best_and_time_left(tunings) -> None:
    text = io.StringIO()
    tunings().tune(Console(file=text, width=160, force_terminal=True), trials=3, progress=True, params={"top_k": "3:6"})
    assert "trial 2: 8/8 · best 100.0" in text.getvalue()
    assert "3/3" in text.getvalue()
    assert "0:00:0" in text.getvalue()
