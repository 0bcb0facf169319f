"""Runs beside the paper's tables: which cells they fill, what the numbers are, and what is never invented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.home import Home
from runs.reporting import Report, report
from runs.reports.averages import paper_average, paper_row
from runs.reports.layout import MISSING, Table
from runs.reports.paper_tables import AVERAGES, paper_data, paper_tables, plain_name
from signatures.errors import DataError, OptionError
from tests.runs.report_world import write_run


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def ones(count: int, right: int) -> list[int]:
    return [1] * right + [0] * (count - right)


def made(home: Home, *folders: Path, **options: object) -> Report:
    return report([f.name for f in folders], home=home, paper=True, **options)  # type: ignore[arg-type]


def cells(found: Report) -> dict[str, object]:
    return {cell.column.key: cell for cell in found.cells}


def row_of(found: Report, table: int, name: str) -> tuple[str, ...]:
    assert found.document is not None
    wanted = [b for b in found.document.blocks if isinstance(b, Table) and b.caption.startswith(f"Table {table} ")]
    return next(row.cells for row in wanted[0].rows if row.cells[0] == name)


def test_the_shipped_figures_are_shares_of_the_sets_that_they_name() -> None:
    for table in paper_tables():
        for row in table.rows:
            for column in table.columns:
                value = row.values.get(column.key)
                if value is None or row.source or row.method == "human" or column.metrics == ("f1",):
                    continue
                right = round(value * column.questions / 100)
                # Printed with one decimal: no count of right answers may be further away than rounding.
                assert abs(100 * right / column.questions - value) <= 0.0501, (row, column.key)


def test_the_tables_have_the_papers_rows_and_columns() -> None:
    first, second, third = paper_tables()
    assert (len(first.columns), len(second.columns), len(third.columns)) == (11, 4, 12)
    authors_own = [row for row in first.rows if "WebThinker" not in row.source]
    assert (len(authors_own), len(second.rows), len(third.rows)) == (13, 6, 9)
    best = first.row("search_o1", "Qwen/QwQ-32B-Preview")
    assert best is not None
    assert [best.values[c.key] for c in first.columns] == [
        77.9, 47.3, 78.9, 63.6, 86.4, 85.0, 56.7, 57.7, 32.4, 20.4, 33.0,
    ]  # fmt: skip
    assert [c.questions for c in first.columns] == [86, 93, 19, 198, 500, 40, 30, 26, 37, 49, 112]


@pytest.mark.parametrize("claim", paper_data()["text_gains"], ids=lambda c: f"{c['over']} {c['average']}")
def test_the_gains_in_the_papers_text_follow_from_its_tables(claim) -> None:
    keys = AVERAGES[claim["average"]][1]
    above, below = (paper_average(paper_row(*name.split("/"), keys), keys) for name in (claim["row"], claim["over"]))
    assert above is not None
    assert below is not None
    assert 100 * (above / below - 1) == pytest.approx(claim["percent"], abs=0.11)


def test_the_averages_in_the_papers_text_follow_from_its_tables() -> None:
    def em(name: str, method: str, model: str) -> float:
        keys = AVERAGES[name][1]
        found = paper_average(paper_row(method, model, keys), keys)
        assert found is not None
        return round(100 * found, 1)

    assert em("open_qa", "direct", "Qwen2.5-32B-Instruct") == 31.3
    assert em("open_qa", "direct", "QwQ-32B-Preview") == 30.7
    assert em("single_hop", "rag_agent", "QwQ-32B-Preview") == 47.8
    assert em("single_hop", "standard_rag", "QwQ-32B-Preview") == 47.6


def test_a_run_fills_the_cells_of_its_set_method_and_model(home: Home) -> None:
    found = made(home, write_run(home, "gpqa", "direct", ones(198, 99), split="diamond"))
    by_key = cells(found)
    assert list(by_key) == [f"gpqa_diamond.{d}" for d in ("physics", "chemistry", "biology", "overall")]
    overall = by_key["gpqa_diamond.overall"]
    assert (overall.paper, overall.official.mean, overall.official.n) == (pytest.approx(0.581), 0.5, 198)
    assert overall.difference.value == pytest.approx(0.5 - 0.581)
    assert overall.difference.low < overall.difference.value < overall.difference.high
    ours = row_of(found, 1, "QwQ-32B-Preview, ours, official")
    assert ours[4] == "50.0"
    assert set(ours[5:]) == {MISSING}
    assert row_of(found, 1, "QwQ-32B-Preview")[4] == "58.1"


def test_the_same_score_as_the_papers_differs_by_nothing(home: Home) -> None:
    found = made(home, write_run(home, "gpqa", "direct", ones(198, 115), split="diamond"))
    difference = cells(found)["gpqa_diamond.overall"].difference
    assert abs(difference.value) < 0.001
    # Newcombe's interval for 115 of 198 against 115 of 198, by hand: +- 1.414 times the half-widths of Wilson's.
    assert (difference.low, difference.high) == (pytest.approx(-0.0964, abs=0.002), pytest.approx(0.0964, abs=0.002))


def test_what_was_not_run_is_a_dash_everywhere(home: Home) -> None:
    found = made(home, write_run(home, "nq", "search_o1", ones(500, 170)))
    assert set(row_of(found, 3, "QwQ-32B-Preview, ours, official")[3:]) == {MISSING}
    assert {c.column.key for c in found.cells} == {"nq.em", "nq.f1"}
    assert {(a.name, a.complete) for a in found.averages} == {("single_hop", False), ("open_qa", False)}


def test_the_released_qwq_32b_is_told_apart_from_the_preview(home: Home) -> None:
    found = made(
        home,
        write_run(home, "gpqa", "search_o1", ones(198, 133), split="diamond", model="hosted_vllm/Qwen/QwQ-32B"),
        write_run(home, "gpqa", "search_o1", ones(198, 126), split="diamond"),
        write_run(home, "math500", "search_o1", ones(500, 450), model="Qwen/QwQ-32B"),
    )
    released, preview = (c for c in found.cells if c.column.key == "gpqa_diamond.overall")
    assert (released.paper, preview.paper) == (pytest.approx(0.672), pytest.approx(0.636))
    assert "WebThinker" in released.row.source
    assert next(c for c in found.cells if c.column.key == "math500").paper is None
    assert any("QwQ-32B is not the paper's model" in note for note in found.notes)
    assert row_of(found, 1, "QwQ-32B-Preview, ours, official")[4] == "63.6‡"
    assert row_of(found, 1, "QwQ-32B, ours, official")[4] == "67.2‡"


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("Qwen/QwQ-32B-Preview", True),
        ("hosted_vllm/Qwen/QwQ-32B-Preview", True),
        ("qwq_32b_preview", True),
        ("Qwen/QwQ-32B", False),
        ("Qwen/QwQ-32B-Preview-AWQ", False),
    ],
)
def test_spellings_of_a_model_are_the_same_and_builds_are_not(name, same) -> None:
    assert (plain_name(name) == plain_name("QwQ-32B-Preview")) is same


def test_the_extended_set_stands_beside_the_human_experts(home: Home) -> None:
    found = made(home, write_run(home, "gpqa", "search_o1", ones(546, 316), split="extended"))
    assert {c.table for c in found.cells} == {2}
    assert row_of(found, 2, "physicists")[1:] == ("57.9", "31.6", "42.0", "39.9")
    assert row_of(found, 2, "QwQ-32B-Preview, ours, official")[4] == "57.9‡"


@pytest.mark.parametrize(
    ("label", "questions", "split"),
    [("gpqa", 198, "diamond"), ("gpqa", 546, "extended"), ("gpqa_extended", 9, "extended")],
)
def test_a_gpqa_file_without_a_split_is_known_by_its_label_or_size(home: Home, label, questions, split) -> None:
    folder = write_run(home, "gpqa", "direct", ones(questions, 2), name="run")
    facts = json.loads((folder / "facts.json").read_text())
    (folder / "facts.json").write_text(json.dumps({**facts, "benchmark": label}))
    assert made(home, folder).runs[0].split == split


def test_recorded_fallbacks_are_counted_with_and_without(home: Home) -> None:
    right = ones(40, 20)
    found = made(home, write_run(home, "amc23", "search_o1", right, empty=range(20, 26), direct=range(20, 24)))
    cell = cells(found)["amc23"]
    assert (cell.official.mean, cell.official_own.mean) == (24 / 40, 20 / 40)
    assert (cell.strict.mean, cell.strict_own.mean) == (24 / 40, 20 / 40)
    assert not cell.fallback_missing
    assert cell.outcomes.taken == 4


def test_a_direct_run_of_the_same_model_stands_in_afterwards(home: Home) -> None:
    direct = write_run(home, "amc23", "direct", ones(40, 30), empty=[0])
    found = made(home, write_run(home, "amc23", "search_o1", ones(40, 20), empty=range(5)), direct)
    cell = next(c for c in found.cells if c.outcomes.run.method == "search_o1")
    # The direct answer to the first question is not valid either, so that one stays wrong.
    assert (cell.official.mean, cell.official_own.mean) == (19 / 40, 15 / 40)
    assert "4 answers, from" in found.text


@pytest.mark.parametrize("change", [{"data": "other"}, {"model": "Qwen/QwQ-32B"}])
def test_a_direct_run_on_other_questions_or_of_another_model_does_not_stand_in(home: Home, change) -> None:
    direct = write_run(home, "amc23", "direct", ones(40, 40), **change)
    found = made(home, write_run(home, "amc23", "search_o1", ones(40, 20), empty=range(5)), direct)
    cell = next(c for c in found.cells if c.outcomes.run.method == "search_o1")
    assert (cell.official.mean, cell.with_fallback, cell.fallback_missing) == (15 / 40, False, True)
    assert any(note.startswith("‡") for note in found.notes)


def test_a_program_that_was_replaced_before_it_was_tested_gives_no_score_of_its_own(home: Home) -> None:
    folder = write_run(home, "livecodebench", "search_o1", ones(112, 30), empty=[5], direct=[50])
    lines = (folder / "journal.jsonl").read_text().splitlines()
    assert cells(made(home, folder))["livecodebench.overall"].official_own.mean == 30 / 112
    record = json.loads(lines[50])
    record["chain"] = "```python\nprint(1)\n```"
    lines[50] = json.dumps(record)
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")
    cell = cells(made(home, folder))["livecodebench.overall"]
    assert (cell.official.mean, cell.official_own, cell.strict_own) == (31 / 112, None, None)


def test_failed_questions_stay_in_the_denominator(home: Home) -> None:
    found = made(home, write_run(home, "aime24", "direct", ones(30, 30), failed=range(6)))
    assert cells(found)["aime24"].official.mean == 24 / 30
    assert "| 6 | yes |" in found.text


def test_a_part_of_a_set_is_marked(home: Home) -> None:
    found = made(home, write_run(home, "nq", "direct", ones(40, 10)))
    assert cells(found)["nq.em"].partial
    assert row_of(found, 3, "QwQ-32B-Preview, ours, official")[1] == "25.0†"
    assert "40 of 500" in found.text
    assert any(note.startswith("†") for note in found.notes)


def test_samples_are_averaged_a_question(home: Home) -> None:
    cell = cells(made(home, write_run(home, "aime24", "direct", ones(30, 15), samples=3)))["aime24"]
    assert (cell.official.mean, cell.official.n) == (0.5, 30)


def test_the_ceiling_of_official_code_is_stated(home: Home) -> None:
    found = made(home, write_run(home, "livecodebench", "direct", ones(112, 37)))
    assert any("70 of 112 (62.5 %)" in note for note in found.notes)
    assert not any("70 of 112" in n for n in made(home, write_run(home, "nq", "direct", ones(9, 1))).notes)


def test_averages_and_gains_are_those_of_the_paper_when_the_scores_are(home: Home) -> None:
    sets = {"gpqa": 198, "math500": 500, "amc23": 40, "aime24": 30, "livecodebench": 112}
    keys = {"gpqa": "gpqa_diamond.overall", "livecodebench": "livecodebench.overall"}
    folders = []
    for method in ("direct", "search_o1"):
        values = paper_tables()[0].row(method, "QwQ-32B-Preview").values
        for name, count in sets.items():
            right = round(values[keys.get(name, name)] * count / 100)
            folders.append(write_run(home, name, method, ones(count, right), split="diamond" if name == "gpqa" else ""))
    found = made(home, *folders)
    average = next(a for a in found.averages if a.name == "reasoning" and a.system.method == "search_o1")
    assert average.complete
    assert average.paper == pytest.approx(0.6494)
    assert average.official.value == pytest.approx(0.6494, abs=2e-4)
    (gain,) = (g for g in found.gains if g.name == "reasoning")
    assert (gain.method, gain.over, gain.complete) == ("search_o1", "direct", True)
    assert gain.paper == pytest.approx(0.047, abs=5e-4)
    assert gain.official.value == pytest.approx(0.047, abs=2e-3)
    assert gain.official.low < gain.official.value < gain.official.high


def test_an_average_over_some_of_the_sets_is_compared_over_the_same_ones(home: Home) -> None:
    found = made(home, write_run(home, "nq", "direct", ones(500, 115)))
    average = next(a for a in found.averages if a.name == "open_qa")
    assert (average.columns, average.complete) == (("nq.em",), False)
    assert average.paper == pytest.approx(0.23)
    assert "1 of 6: nq" in found.text


def test_two_runs_of_one_system_on_one_set_stand_by_themselves(home: Home) -> None:
    found = made(
        home, write_run(home, "aime24", "direct", ones(30, 10)), write_run(home, "aime24", "direct", ones(30, 20))
    )
    assert row_of(found, 1, "QwQ-32B-Preview, ours, official")[7] == "33.3"
    assert row_of(found, 1, "QwQ-32B-Preview (2), ours, official")[7] == "66.7"
    assert any("QwQ-32B-Preview (2) is aime24-direct-qwq-32b-preview-1" in note for note in found.notes)


def test_the_papers_settings_are_recognised_and_departures_named(home: Home) -> None:
    same = write_run(home, "nq", "search_o1", ones(4, 2), name="same")
    other = write_run(home, "nq", "search_o1", ones(4, 2), name="other", top_k=3)
    plain = write_run(home, "nq", "search_o1", ones(4, 2), name="plain", paper=False)
    notes = made(home, same, other, plain).notes
    assert not any(note.startswith("same:") for note in notes)
    assert "other: not the paper's settings: top_k 3 (paper: 10)." in notes
    assert any(note.startswith("plain: not the paper's settings:") for note in notes)


@pytest.mark.parametrize("method", ["direct", "standard_rag", "rag_agent", "search_o1"])
@pytest.mark.parametrize("benchmark", ["nq", "hotpotqa", "gpqa", "aime24", "livecodebench"])
def test_every_paper_run_is_recognised_as_one(home: Home, method, benchmark) -> None:
    found = made(home, write_run(home, benchmark, method, ones(3, 1), split="diamond" if benchmark == "gpqa" else ""))
    assert "| yes |" in found.text


def test_another_benchmark_fills_nothing_and_says_so(home: Home) -> None:
    found = made(home, write_run(home, "quickstart", "direct", ones(4, 2)))
    assert found.cells == ()
    assert "None of these runs is on a set of the paper's tables." in found.notes


def test_an_unfinished_run_is_said_to_be_one(home: Home) -> None:
    folder = write_run(home, "aime24", "direct", ones(20, 10))
    (folder / "plan.json").write_text(json.dumps({f"q{i}": 1 for i in range(30)}))
    assert any("is not finished: 10 answers are missing" in note for note in made(home, folder).notes)


def test_runs_are_named_by_id_part_of_it_or_folder_and_each_counts_once(home: Home) -> None:
    folder = write_run(home, "nq", "direct", ones(4, 2), name="nq-direct-abc123")
    write_run(home, "nq", "direct", ones(4, 2), name="nq-direct-abd999")
    found = report(["nq-direct-abc", str(folder), folder / "journal.jsonl", "abc123"], home=home)
    assert [run.id for run in found.runs] == ["nq-direct-abc123"]


def test_mistakes_are_told(home: Home, tmp_path: Path) -> None:
    folder = write_run(home, "nq", "direct", ones(4, 2), name="nq-direct-abc")
    write_run(home, "nq", "direct", ones(4, 2), name="nq-direct-abd")
    with pytest.raises(OptionError, match="at least one run"):
        report([], home=home)
    with pytest.raises(OptionError, match="may mean 2 runs"):
        report(["nq-direct"], home=home)
    with pytest.raises(OptionError, match="No run 'gpqa'"):
        report(["gpqa"], home=home)
    with pytest.raises(OptionError, match="Unknown format 'docx'; known: markdown, html, latex"):
        report(["nq-direct-abc"], home=home, format="docx")
    with pytest.raises(DataError, match="cannot be written"):
        report(
            ["nq-direct-abc"], home=home, output=tmp_path / "home" / "runs" / "nq-direct-abc" / "facts.json" / "x.md"
        )
    (folder / "facts.json").unlink()
    with pytest.raises(DataError, match=r"no facts\.json"):
        report(["nq-direct-abc"], home=home)
