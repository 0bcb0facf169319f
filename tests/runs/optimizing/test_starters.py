from __future__ import annotations

import json
from importlib.resources import files
from typing import get_args

import pytest

from metrics.extraction import extract_answer
from programs.registry import PROGRAMS, make_program
from runs.optimizing.starters import starters, with_starters
from runs.optimizing.worked import reasoning_demo, refine_demos
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_URL, END_SEARCH_QUERY, segments
from signatures.profiles import profile_for
from signatures.templates import LANGUAGES, Task

CHAT = profile_for("qwq-32b")
COMPACT = profile_for("smollm2-135m")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", get_args(Task))
@pytest.mark.parametrize("method", PROGRAMS)
def test_every_starter_ends_in_its_answer(method: str, task: Task, language: str) -> None:
    for worked in starters(task, language):  # type: ignore[arg-type]
        demo = reasoning_demo(method, worked, compact=False)  # type: ignore[arg-type]
        own = "code" if worked.answer.startswith("```") else "open_qa"
        answer = extract_answer(demo["reasoning"], own)  # type: ignore[arg-type]
        assert answer
        assert answer in worked.answer


def test_a_search_o1_starter_is_a_chain_in_the_markers_own_syntax() -> None:
    demo = reasoning_demo("search_o1", starters("open_qa")[-1], compact=False)
    injected = [part.text for part in segments(demo["reasoning"]) if part.kind == "injected"]
    assert [text.strip() for text in injected] == [
        "<|begin_search_result|>Roger Federer was born in Basel, Switzerland.<|end_search_result|>",
        "<|begin_search_result|>The Dufourspitze, a summit of Monte Rosa, is the highest mountain of Switzerland."
        "<|end_search_result|>",
    ]
    assert demo["reasoning"].endswith("\n\n\\boxed{Dufourspitze}")


def test_a_rag_agent_starter_reads_a_page_that_its_search_returned() -> None:
    demo = reasoning_demo("rag_agent", starters("open_qa")[0], compact=False)
    url = demo["reasoning"].split(BEGIN_URL)[1].split("<|")[0]
    assert f'"url": "{url}"' in demo["reasoning"].split(BEGIN_URL)[0]


def test_a_standard_rag_starter_shows_every_document_once_with_its_rank() -> None:
    documents = reasoning_demo("standard_rag", starters("open_qa")[1], compact=False)["documents"]
    assert [f"**Document {rank}:**" in documents for rank in range(1, 6)] == [True] * 4 + [False]


def test_a_refine_starter_is_shown_the_reasoning_up_to_its_query() -> None:
    first, second = refine_demos(starters("open_qa")[-1], compact=True)
    assert first["prev_reasoning"].endswith(f"{BEGIN_SEARCH_QUERY}{first['search_query']}{END_SEARCH_QUERY}")
    assert first["final_information"] in second["prev_reasoning"]
    assert second["document"].startswith("Dufourspitze: The Dufourspitze is a summit")


@pytest.mark.parametrize("profile", [CHAT, COMPACT], ids=["chat", "compact"])
def test_starters_come_before_the_demos_a_program_has_and_leave_the_program_alone(profile: object) -> None:
    program = make_program("search_o1")
    own = {"question": "Q?", "reasoning": "\\boxed{1}", "answer": "1"}
    program.reason.demos = [own]
    twin = with_starters(program, profile)  # type: ignore[arg-type]
    assert len(twin.reason.demos) == 6
    assert twin.reason.demos[-1] == own
    assert len(twin.refine.demos) == 9
    assert (program.reason.demos, program.refine.demos) == ([own], [])


def test_a_task_without_starters_in_a_language_has_those_of_open_qa() -> None:
    assert starters("math", "zh") == starters("open_qa", "zh")
    assert starters("math") != starters("open_qa")


def test_no_starter_asks_a_question_of_the_quickstart() -> None:
    listed = [
        json.loads(line)["question"]
        for split in ("train", "validation", "test")
        for line in (files("runs") / "benchmarks" / "quickstart" / f"{split}.jsonl").read_text("utf-8").splitlines()
    ]
    assert {worked.question for worked in starters("open_qa")}.isdisjoint(listed)
