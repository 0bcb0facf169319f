from __future__ import annotations

import json

import pytest

from runs.home import Home
from runs.traces import write_trace
from runs.tracking import write_note
from tests.runs.recorded import answer, record_run
from tests.runs.world import command

A, B = "films-direct-small-aaaa", "films-search_o1-small-bbbb"


@pytest.fixture
def home(tmp_path) -> Home:
    home = Home(tmp_path / "home")
    record_run(home, A, [i % 2 == 0 for i in range(40)])
    record_run(home, B, [i % 4 != 1 for i in range(40)], facts={"method": "search_o1"})
    return home


def compare(home: Home, *arguments: str):
    return command("compare", *arguments, home=home.root, COLUMNS="100", MLFLOW_TRACKING_URI=None)


def test_scores_difference_power_and_flips_are_printed(home) -> None:
    done = compare(home, A, B)
    assert done.exit_code == 0, done.output
    text = done.output
    assert f"A  {A}  (direct · small · 40 questions)  em 50.0 [35.2, 64.8]" in text
    assert f"B  {B}  (search_o1 · small · 40 questions)  em 75.0 [" in text
    assert "em (strict, metrics version 1), in percent; B - A with its 95 % interval, p by McNemar's exact test" in text
    row = next(line for line in text.splitlines() if "all questions" in line)
    assert row.split()[2:6] == ["40", "50.0", "75.0", "+25.0"]
    assert row.split()[-2:] == ["0", "10"]
    assert "type=bridge" in text
    assert "To see a difference of +25.0 points with 80 % power takes about 29 questions; here are 40." in text
    assert "Gained (B right, A wrong): 10" in text
    assert "Lost" not in text
    assert "  q3  Who directed film 3?\n    gold  Name 3\n    A     nobody  " in text
    assert f"{home.runs / B / 'journal.jsonl'} (id q3, sample 0)" in text


def test_flips_are_cut_and_told_in_full(home) -> None:
    few = compare(home, "aaaa", "bbbb", "--flips", "2")
    assert few.output.count("gold") == 2
    assert "... 8 more (all: --flips 0, or --html FILE)" in few.output
    assert compare(home, "aaaa", "bbbb", "--flips", "0").output.count("gold") == 10


def test_json_is_all_there_is_on_standard_output(home) -> None:
    done = compare(home, A, B, "--json", "--metric", "f1", "--family", "official", "--group", "type")
    found = json.loads(done.stdout)
    assert (found["metric"], found["family"], list(found["groups"])) == (
        "f1",
        "official",
        ["type=bridge", "type=single"],
    )
    assert len(found["flips"]) == found["overall"]["only_a"] + found["overall"]["only_b"]


def test_a_page_is_written(home, tmp_path) -> None:
    page = tmp_path / "flipped.html"
    done = compare(home, A, B, "--html", str(page))
    assert f"Page: {page}" in done.output
    assert page.read_text().count("<article>") == 10
    refused = compare(home, A, B, "--html", str(tmp_path / "missing" / "flipped.html"))
    assert "cannot be written: No such file or directory" in str(refused.stderr)


def test_runs_that_do_not_compare_end_with_2_and_the_reason(home) -> None:
    record_run(home, "films-short", [True] * 5)
    refused = compare(home, A, "films-short")
    assert (refused.exit_code, "of which 5 are the same" in refused.stderr) == (2, True)
    shared = compare(home, A, "films-short", "--shared")
    assert (shared.exit_code, "Compared on the 5 questions that both answered." in shared.output) == (0, True)
    unknown = compare(home, A, "film-short")
    assert (unknown.exit_code, "No run 'film-short'" in unknown.stderr, "films-short" in unknown.stderr) == (
        2,
        True,
        True,
    )


def test_text_with_markup_and_contaminated_questions_are_printed_as_they_are(home) -> None:
    odd = [answer(i, i > 0, contaminated=i == 0) for i in range(40)]
    odd[1]["question"] = "Is [bold]it[/] [/nothing]?"
    other = [answer(i, False) for i in range(40)]
    other[1]["question"] = odd[1]["question"]
    record_run(home, "films-odd", odd)
    record_run(home, "films-wrong", other)
    done = compare(home, "films-wrong", "films-odd", "--flips", "3")
    assert "Is [bold]it[/] [/nothing]?" in done.output
    assert "without contaminated" in done.output


def test_chains_are_linked_to_their_mlflow_traces(home, tmp_path) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    try:
        mlflow.set_tracking_uri(home.tracking_uri)
        experiment = mlflow.create_experiment("films", artifact_location=(tmp_path / "artifacts").as_uri())
        with mlflow.start_run(experiment_id=experiment) as run:
            trace = write_trace(answer(3, True), experiment)
    finally:
        mlflow.set_tracking_uri(before)
    write_note(home.runs / B, run.info.run_id, complete=True)
    # A run that the store has never heard of, and a question without a trace, are read from the journal.
    write_note(home.runs / A, "0" * 32, complete=True)
    done = compare(home, A, B, "--flips", "2")
    assert done.exit_code == 0, done.output
    address = f"http://127.0.0.1:5000/#/experiments/{experiment}/traces?selectedEvaluationId={trace}"
    assert f"    B     Name 3  {address}\n" in done.output
    assert done.output.count("journal.jsonl (id q") == 3
    assert "The addresses of the chains are those of: search-o1 ui" in done.output
