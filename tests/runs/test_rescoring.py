"""Predictions made elsewhere are scored: every shape of file, the fallback, and the scores that a file has already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.home import Home
from runs.rescoring import rescore
from signatures.errors import DataError
from tests.runs.prediction_files import code_items, direct_items, gpqa_items, listed, mean, metrics, plain, questions
from tests.runs.report_world import write_run
from tests.runs.world import write_lines


def test_the_authors_choices_are_scored_as_they_scored_them_and_strictly(tmp_path: Path) -> None:
    found = rescore(listed(tmp_path / "gpqa.qwq.search_o1" / "diamond.1.2,3:4.json", gpqa_items()))
    assert (found.kind, found.headline, found.total.questions) == ("multiple_choice", "em", 5)
    assert "Correct Choice" in found.reason
    assert [mean(found, "official", n) for n in ("em", "acc")] == [2 / 5, 3 / 5]
    # A letter with its text names the letter; a page's box is not the model's.
    assert mean(found, "strict", "em") == 2 / 5
    assert [bool(i.own["strict"].metrics["em"]) for i in found.items] == [True, False, True, False, False]
    assert (found.total.valid["official"], found.total.valid["strict"]) == (3, 3)
    estimate = found.total.scores["official"]["em"]
    assert (estimate.low, estimate.high) == (pytest.approx(0.1176, abs=1e-4), pytest.approx(0.7693, abs=1e-4))


def test_the_stored_metrics_of_an_unchanged_file_are_reproduced(tmp_path: Path) -> None:
    found = rescore(listed(tmp_path / "x.json", gpqa_items()))
    assert {d.metric for d in found.stored} == {"em", "acc", "f1", "math_equal"}
    assert [(d.metric, d.different) for d in found.stored if d.different] == []
    # "b. two" and "b" share no word, as the authors' token F1 has it.
    assert found.notes == ()


def test_stored_metrics_that_disagree_are_told_with_their_ids(tmp_path: Path) -> None:
    items = gpqa_items()
    items[0]["Metrics"] = metrics(0, 0, 0.0)
    items[3]["Metrics"] = metrics(1, 0, 0.0)
    found = rescore(listed(tmp_path / "x.json", items))
    by_name = {d.metric: d for d in found.stored}
    assert by_name["em"].different == ("0", "3")
    assert (by_name["em"].stored, by_name["em"].ours) == (2 / 5, 2 / 5)
    assert any("The file's em differs from our official em for 2 of 5 outputs (0, 3)" in note for note in found.notes)


def test_domains_are_tabled_as_the_authors_table_them(tmp_path: Path) -> None:
    found = rescore(listed(tmp_path / "x.json", gpqa_items()))
    assert set(found.groups) == {"domain=Physics", "domain=Biology"}
    told = found.to_dict()["per_group"]["domain=Physics"]
    assert told["official"]["em"]["mean"] == pytest.approx(1 / 3)
    assert told["official"]["num_valid_answer"] == "2 of 3"
    assert told["questions"] == 3


def test_the_direct_answer_stands_in_by_its_own_label_where_none_is_valid(tmp_path: Path) -> None:
    file = listed(tmp_path / "x.json", gpqa_items())
    found = rescore(file, backoff=listed(tmp_path / "direct.json", direct_items()))
    # Official: item 2 (four characters) and item 3 (none) are not valid. Strict: 3, and 4, whose direct one is not.
    assert found.taken == {"official": 2, "strict": 1}
    assert (mean(found, "official", "em"), mean(found, "official", "em", "own")) == (4 / 5, 2 / 5)
    assert (mean(found, "strict", "em"), mean(found, "strict", "em", "own")) == (3 / 5, 2 / 5)
    assert (found.total.valid["official"], found.own.valid["official"]) == (5, 3)
    # What the file stores is about its own answers, so nothing disagrees.
    assert not any(d.different for d in found.stored)
    assert found.to_dict()["fallback"] == {"official": 2, "strict": 1}


def test_direct_answers_are_joined_by_id_and_those_that_are_absent_counted(tmp_path: Path) -> None:
    file = listed(tmp_path / "x.json", gpqa_items())
    found = rescore(file, backoff=listed(tmp_path / "d.json", reversed(direct_items()[3:])))
    assert found.taken["official"] == 1
    assert "3 of 5 questions have no direct answer in d.json; theirs are kept." in found.notes
    strangers = [{**item, "id": f"other{i}"} for i, item in enumerate(direct_items())]
    with pytest.raises(DataError, match="None of the 5 ids has a direct answer"):
        rescore(file, backoff=listed(tmp_path / "e.json", strangers))


def test_without_ids_the_place_in_the_file_is_the_id(tmp_path: Path) -> None:
    def bare(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in item.items() if k != "id"} for item in items]

    file = listed(tmp_path / "x.json", bare(gpqa_items()))
    found = rescore(file, backoff=listed(tmp_path / "d.json", bare(direct_items())))
    assert [item.id for item in found.items] == ["0", "1", "2", "3", "4"]
    assert found.taken["official"] == 2


def test_the_authors_open_questions_have_lists_of_labels(tmp_path: Path) -> None:
    items = [
        {"id": "a", "Question": "q", "answer": ["Paris", "Lutetia"], "Output": "\\boxed{the Paris}",
         "Pred_Answer": "the Paris", "Metrics": metrics(1, 1, 1.0, 0)},
        {"id": "b", "Question": "q", "answer": ["Rome"], "Output": "\\boxed{old Rome}", "Pred_Answer": "old Rome",
         "Metrics": metrics(0, 1, 2 / 3, 0)},
    ]  # fmt: skip
    found = rescore(listed(tmp_path / "x.json", items))
    assert (found.kind, found.reason) == ("open_qa", "its labels are lists")
    assert mean(found, "official", "em") == 0.5
    assert mean(found, "official", "f1") == pytest.approx((1 + 2 / 3) / 2)
    assert not any(d.different for d in found.stored)


def test_a_label_that_is_a_string_where_a_list_is_meant_is_one_label(tmp_path: Path) -> None:
    # The authors' scorer goes through such a label letter by letter, so the two disagree, and that is said.
    item = {"id": 1, "Question": "q", "answer": "Paris", "Output": "\\boxed{Paris}", "Metrics": metrics(0, 0, 0.0)}
    found = rescore(listed(tmp_path / "x.json", [item]), kind="qa")
    assert mean(found, "official", "em") == mean(found, "strict", "em") == 1.0
    assert any("differs from our official em for 1 of 1" in note for note in found.notes)


def test_the_authors_math_is_compared_as_text_and_by_value(tmp_path: Path) -> None:
    items = [
        {"id": 0, "Question": "q", "solution": "s", "answer": "73", "level": "2", "subject": "Algebra",
         "Output": "so \\boxed{73.0}", "Metrics": metrics(0, 1, 0.0)},
        {"id": 1, "Question": "q", "solution": "s", "answer": "5", "level": "3", "subject": "Algebra",
         "Output": "so \\boxed{5}", "Metrics": metrics(1, 1, 1.0, True)},
    ]  # fmt: skip
    found = rescore(listed(tmp_path / "x.json", items))
    assert (found.kind, found.headline) == ("math", "math_equal")
    assert (mean(found, "official", "math_equal"), mean(found, "strict", "math_equal")) == (0.5, 1.0)
    assert set(found.groups) == {"level=2", "level=3", "subject=Algebra"}
    assert not any(d.different for d in found.stored)


def test_code_is_run_and_an_absent_program_replaced_by_the_direct_one(tmp_path: Path) -> None:
    file = listed(tmp_path / "livecode.qwq.search_o1" / "test.1.2,3:4.json", code_items())
    direct = [{**item, "Output": code_items()[0]["Output"]} for item in code_items()]
    found = rescore(file, backoff=listed(tmp_path / "d.json", direct))
    assert (found.kind, found.headline, found.coverage) == ("code", "pass@1", "public only")
    assert (mean(found, "official", "pass@1"), mean(found, "official", "pass@1", "own")) == (2 / 3, 1 / 3)
    assert mean(found, "strict", "pass@1") == 2 / 3
    assert found.taken == {"official": 1, "strict": 1}
    assert not any(d.different for d in found.stored)
    assert set(found.groups) == {"difficulty=easy", "difficulty=hard"}


@pytest.mark.parametrize("benchmark", ["nq", "gpqa", "aime24"])
def test_a_journal_of_ours_gives_the_scores_it_recorded(tmp_path: Path, benchmark: str) -> None:
    home = Home(tmp_path)
    right = [1] * 6 + [0] * 6
    folder = write_run(home, benchmark, "search_o1", right, empty=[6, 7, 8], direct=[6, 7], failed=[0], samples=2)
    found = rescore(folder / "journal.jsonl")
    assert "facts.json" in found.reason
    assert (found.total.questions, found.total.outputs, found.missing) == (12, 24, 2)
    assert found.stored
    assert not any(d.different for d in found.stored)
    assert mean(found, "strict", found.headline) == pytest.approx(7 / 12)
    assert mean(found, "strict", found.headline, "own") == pytest.approx(5 / 12)
    assert found.taken == {"official": 4, "strict": 4}


def test_a_journal_alone_tells_its_kind_by_its_scores(tmp_path: Path) -> None:
    for benchmark, kind in (("nq", "open_qa"), ("gpqa", "multiple_choice"), ("aime24", "math")):
        folder = write_run(Home(tmp_path), benchmark, "direct", [1, 0])
        (folder / "facts.json").unlink()
        assert rescore(folder / "journal.jsonl").kind == kind
    code = write_run(Home(tmp_path), "livecodebench", "direct", [1, 0])
    with pytest.raises(DataError, match="2 of 2 questions have no tests"):
        rescore(code / "journal.jsonl")


def test_a_journals_last_record_of_a_question_counts(tmp_path: Path) -> None:
    folder = write_run(Home(tmp_path), "nq", "direct", [0, 1])
    journal = folder / "journal.jsonl"
    again = json.loads(journal.read_text().splitlines()[0])
    again["chain"] = "\\boxed{Paris}"
    with journal.open("a") as file:
        file.write(json.dumps(again) + "\n")
    assert mean(rescore(journal), "strict", "em") == 1.0


def test_lines_with_id_output_and_answers_are_enough(tmp_path: Path) -> None:
    found = rescore(
        plain(tmp_path / "p.jsonl", "\\boxed{7}", "\\boxed{8}"), kind="qa", output=tmp_path / "new" / "s.json"
    )
    assert (mean(found, "official", "em"), found.reason, found.stored) == (0.5, "as given with --kind", ())
    told = json.loads((tmp_path / "new" / "s.json").read_text(encoding="utf-8"))
    assert told["items"][0]["strict"] == {
        "prediction": "7",
        "em": 1.0,
        "acc": 1.0,
        "f1": 1.0,
        "valid": 1.0,
        "fallback": False,
    }
    assert told["overall"]["official"]["em"]["n"] == 2
    assert (told["kind"], told["headline"], told["missing"]) == ("open_qa", "em", 0)


def test_labels_groups_and_denominator_come_from_the_data(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "p.jsonl", [{"id": "q2", "output": "\\boxed{7}"}, {"id": "q0", "output": "\\boxed{7}"}]
    )
    found = rescore(file, data=questions(tmp_path / "data.jsonl"))
    assert (mean(found, "strict", "em"), found.missing, found.total.questions) == (0.5, 2, 4)
    assert "2 of 4 questions have no prediction; they count as wrong." in found.notes
    assert {name: g.questions for name, g in found.groups.items()} == {"type=even": 2, "type=odd": 2}
    assert found.groups["type=even"].scores["strict"]["em"].mean == 1.0


def test_samples_of_a_question_are_averaged_and_clustered(tmp_path: Path) -> None:
    rows = [
        {"id": i, "sample": s, "output": "\\boxed{7}" if s < right else "no", "answers": ["7"]}
        for i, right in (("a", 2), ("b", 0), ("c", 1))
        for s in range(2)
    ]
    found = rescore(write_lines(tmp_path / "p.jsonl", rows), kind="qa")
    assert (found.total.questions, found.total.outputs) == (3, 6)
    assert (mean(found, "strict", "em"), found.total.scores["strict"]["em"].n) == (0.5, 3)


@pytest.mark.parametrize("output", ["", None, float("nan")])
def test_an_output_that_is_not_there_is_wrong_and_counted(tmp_path: Path, output: Any) -> None:
    found = rescore(plain(tmp_path / "p.jsonl", "\\boxed{7}", output), kind="qa")
    assert mean(found, "official", "em") == mean(found, "strict", "em") == 0.5
    assert found.missing == (0 if output == "" else 1)


def test_an_item_without_an_output_field_among_others_is_a_missing_prediction(tmp_path: Path) -> None:
    items = gpqa_items()
    del items[0]["Output"]
    found = rescore(listed(tmp_path / "x.json", items))
    assert (found.missing, found.total.questions, mean(found, "official", "em")) == (1, 5, 1 / 5)


def test_a_megabyte_of_output_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    item = {"id": "x", "output": "word " * 200_000 + "\\boxed{7}", "answers": ["7"]}
    file.write_text("\ufeff" + json.dumps([item]), encoding="utf-8")
    assert mean(rescore(file, kind="qa"), "strict", "em") == 1.0
