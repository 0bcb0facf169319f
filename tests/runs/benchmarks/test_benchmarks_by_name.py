"""The eleven benchmarks by name, each from a hub whose files have the real shape."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from metrics.kinds import HEADLINE
from programs.options import paper_options
from runs.benchmarks.question import dataset_hash
from runs.benchmarks.registry import BENCHMARKS, load_questions
from signatures.errors import DataError, OptionError
from signatures.profiles import profile_for
from tests.runs.benchmarks.hub_world import SECRET_TESTS, aimo, encoded, gpqa_csv, gpqa_rows, parquet
from tests.servers.hub import HubRepo

PAPER_COUNTS = {
    "gpqa": {"diamond": 198, "main": 448, "extended": 546},
    "math500": {"test": 500},
    "aime24": {"test": 30},
    "amc23": {"test": 40},
    "livecodebench": {"test": 112},
    "nq": {"test": 500},
    "triviaqa": {"test": 500},
    "hotpotqa": {"dev": 500},
    "2wikimultihopqa": {"dev": 500},
    "musique": {"dev": 500},
    "bamboogle": {"test": 125},
}


def load(name: str, split: str = "", **counts: int):
    """Load a benchmark of which the hub holds only so many questions."""
    spec = BENCHMARKS[name]
    return load_questions(replace(spec, splits=counts or dict.fromkeys(spec.splits)), split=split)


def test_the_paper_s_benchmarks_are_there_with_their_counts() -> None:
    assert {name: dict(b.splits) for name, b in BENCHMARKS.items() if name != "quickstart"} == PAPER_COUNTS


def test_metrics_are_the_headlines_of_their_task_and_only_gpqa_needs_a_login() -> None:
    assert {b.metric == HEADLINE[b.task] for b in BENCHMARKS.values()} == {True}
    assert [b.name for b in BENCHMARKS.values() if b.gated] == ["gpqa"]
    assert all(
        b.source.startswith("https://huggingface.co/datasets/") for b in BENCHMARKS.values() if b.name[:5] != "quick"
    )


@pytest.mark.parametrize("name", PAPER_COUNTS)
def test_limits_are_those_of_the_paper_s_options(name) -> None:
    spec = BENCHMARKS[name]
    options = paper_options("search_o1", profile_for("QwQ-32B"), spec.task, benchmark=name, multi_hop=spec.multi_hop)
    assert spec.paper_limits == (options.max_searches, options.turns)
    assert (name in ("nq", "triviaqa")) == (spec.paper_limits == (5, 15))


def test_math500(hub) -> None:
    chosen = load("math500", test=3)
    first = chosen.questions[0]
    assert (first.id, first.question, first.answers) == ("test/algebra/0.json", "Simplify 0.", (r"\frac{0}{2}",))
    assert first.groups == {"level": "1", "subject": "Algebra"}
    assert (chosen.task, chosen.split, chosen.revision) == ("math", "test", hub.repos["HuggingFaceH4/MATH-500"].commit)


def test_the_year_is_kept_and_answers_are_whole_numbers(hub) -> None:
    aime, amc = load("aime24", test=2), load("amc23", test=1)
    assert [(q.id, q.answers) for q in aime.questions] == [("60", ("25",)), ("61", ("73",))]
    assert [(q.id, q.answers) for q in amc.questions] == [("1", ("27",))]
    assert "2023_AMC" in amc.questions[0].details["url"]


@pytest.mark.parametrize("answer", ["12.5", "twelve", None, float("inf")])
def test_an_answer_that_is_no_whole_number_is_refused(hub, answer) -> None:
    repo = "AI-MO/aimo-validation-amc"
    hub.repos[repo] = HubRepo({"data/train-0.parquet": parquet([aimo("x/2023_AMC", answer, 1)])})
    with pytest.raises(DataError, match=r"row 1: the answer .* is no whole number"):
        load("amc23")


def test_open_questions_with_groups_and_gold_documents(hub) -> None:
    hotpot, musique = load("hotpotqa", dev=2), load("musique", dev=2)
    first = hotpot.questions[0]
    assert (first.id, first.answers) == ("dev_0", ("Author 0", "A. 0"))
    assert (first.groups, first.gold_titles) == ({"type": "comparison"}, ("Book", "Author"))
    assert musique.questions[1].groups == {"hops": "2"}
    assert musique.questions[1].gold_titles == ("Book", "Author")
    assert load("2wikimultihopqa").questions[0].groups == {"type": "comparison"}
    assert len(load("bamboogle").questions) == 4
    assert {load(name).task for name in ("hotpotqa", "musique")} == {"open_qa"}


@pytest.mark.parametrize("name", ["nq", "triviaqa"])
def test_the_first_five_hundred_questions_are_taken(hub, name) -> None:
    chosen = load_questions(name)
    assert [q.id for q in chosen.questions] == [f"test_{i}" for i in range(500)]


def test_livecodebench_takes_its_window_once_and_all_its_tests(hub) -> None:
    chosen = load("livecodebench", test=3)
    assert [q.id for q in chosen.questions] == ["abc2_a", "abc3_a", "abc5_a"]
    program, _, function = chosen.questions
    assert (program.task, program.answers, chosen.task) == ("code", (), "code")
    assert program.inputs == {"question_title": "Problem 2"}
    assert function.inputs["starter_code"].startswith("class Solution")
    assert function.groups == {"difficulty": "hard", "platform": "leetcode"}
    assert function.details["contest_date"] == "2024-11-30T00:00:00"
    tests = program.tests.read()
    assert (len(tests.public), len(tests.private), tests.function, tests.coverage) == (1, 3, "", "all")
    assert function.tests.read().function == "square"
    # Private tests stay in the file until a program is judged.
    assert (dict(program.tests.fields), program.tests.place is None) == ({}, False)
    assert not [r for r in hub.requests if r.endswith(".py")]


def test_private_tests_that_change_under_a_run_are_refused(hub) -> None:
    question = load("livecodebench").questions[0]
    place = question.tests.place
    content = place.path.read_bytes()
    place.path.write_bytes(content.replace(rb"\"output\": \"4", rb"\"output\": \"5"))
    with pytest.raises(DataError, match="has changed since its questions were read"):
        question.tests.read()
    place.path.write_bytes(content[:100])
    with pytest.raises(DataError, match="no longer holds its row"):
        question.tests.read()
    place.path.unlink()
    with pytest.raises(DataError, match="no longer holds its row"):
        question.tests.read()


def test_the_hash_knows_private_tests(hub) -> None:
    before = dataset_hash(load("livecodebench").questions)
    repo = hub.repos["livecodebench/code_generation_lite"]
    changed = repo.files["test3.jsonl"].replace(encoded(SECRET_TESTS).encode(), encoded(SECRET_TESTS[:2]).encode())
    hub.repos["livecodebench/code_generation_lite"] = HubRepo({**repo.files, "test3.jsonl": changed})
    assert dataset_hash(load("livecodebench").questions) != before


@pytest.fixture
def member(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_member")
    return hub


def test_gpqa_is_laid_out_as_in_the_authors_prompts(member) -> None:
    chosen = load("gpqa", diamond=6)
    assert (chosen.split, chosen.task) == ("diamond", "multiple_choice")
    for number, question in enumerate(chosen.questions):
        assert question.id == f"rec{number:05d}"
        texts = re.fullmatch(
            r"Which constant, of \d\?\n\(mind the units\) Choices:\n\(A\) (.*)\n\(B\) (.*)\n\(C\) (.*)\n\(D\) (.*)\n",
            question.question,
            re.DOTALL,
        )
        assert texts is not None
        assert tuple(text.strip() for text in texts.groups()) == question.choices
        assert question.choices["ABCD".index(question.answers[0])] == f"right {number}"
        listed = [f"right {number}", f"first wrong {number}", "None", f"third, wrong {number}"]
        assert [listed[place] for place in question.choice_order] == list(question.choices)
    assert chosen.questions[1].groups == {"domain": "Chemistry"}


def test_gpqa_s_order_depends_on_the_record_alone(member) -> None:
    diamond, extended = load("gpqa").questions, load("gpqa", split="extended").questions
    assert list(extended[:6]) == list(diamond) == list(load("gpqa").questions)
    assert load("gpqa", split="main").questions[4] == diamond[4]
    member.repos["Idavidrein/gpqa"] = HubRepo({"gpqa_diamond.csv": gpqa_csv(gpqa_rows(6)[::-1])})
    assert list(load("gpqa").questions) == list(diamond[::-1])


def test_right_choices_fall_on_all_letters_alike(member) -> None:
    member.repos["Idavidrein/gpqa"] = HubRepo({"gpqa_diamond.csv": gpqa_csv(gpqa_rows(800))})
    right = [q.answers[0] for q in load("gpqa").questions]
    assert all(abs(right.count(letter) - 200) < 50 for letter in "ABCD")


def test_a_gpqa_file_with_other_columns_is_refused(member) -> None:
    rows = [{**gpqa_rows(1)[0], "Incorrect Answer 3": ""}]
    member.repos["Idavidrein/gpqa"] = HubRepo({"gpqa_diamond.csv": gpqa_csv(rows)})
    with pytest.raises(DataError, match="row 1: no 'Incorrect Answer 3'; the hub's file has changed its columns"):
        load("gpqa")


def test_another_number_of_questions_is_refused_with_the_revision(hub) -> None:
    commit = hub.repos["HuggingFaceH4/MATH-500"].commit
    with pytest.raises(DataError, match=f"math500, split test: found 3 questions at revision {commit}, expected 500"):
        load_questions("math500")


def test_a_gated_benchmark_and_an_unknown_split_say_what_to_do(hub) -> None:
    with pytest.raises(DataError, match=r"Idavidrein/gpqa is gated: accept its terms .*HF_TOKEN"):
        load_questions("gpqa")
    with pytest.raises(OptionError, match="Benchmark gpqa has no split 'test'; it has: diamond, main, extended"):
        load_questions("gpqa", split="test")
