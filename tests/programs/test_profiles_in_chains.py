"""A raw-completion profile and models that DSPy reaches by itself, through whole chains."""

from __future__ import annotations

import dspy
import pytest

from programs import SearchO1, StandardRAG
from programs.turn import end_of_box
from retrieval.readers.web import WebReader
from tests.programs.world import (
    ANSWER,
    BR,
    EQ,
    ER,
    INFORMATION,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    model_of,
    query,
    say,
    search_o1,
)

BOXED = ANSWER.removesuffix(".")
"""Where a raw completion ends."""

DEMO = {"question": "Demo?", "reasoning": f"{query('demo')}\n\n{BR}fact{ER}\n\n\\boxed{{demo}}", "answer": "demo"}


def with_demo(**options) -> SearchO1:
    program = search_o1(**options)
    program.reason.demos = [DEMO]
    return program


@pytest.mark.parametrize("bos", [False, True])
def test_a_raw_completion_goes_without_chat_template_and_with_one_bos(serve, bos) -> None:
    server = serve(say(f"I search. {query('a')}", ANSWER), bos=bos)
    prediction = ask(server, with_demo(), profile={"style": "completion", "reasoning": False})
    assert prediction.reasoning == f"I search. {query('a')}\n\n{BR}{INFORMATION}{ER}{BOXED}"
    for call in server.calls:
        assert "<|im_start|>" not in call.prompt
        assert call.prompt.count("<s>") == int(bos)
    first, _, second = server.calls
    assert f"Question:\nDemo?\nReasoning:\n{DEMO['reasoning']}\n\nQuestion:\n{QUESTION}\nReasoning:" in first.prompt
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids
    assert first.body["stop"] == [EQ, BR, "\nQuestion:"]


@pytest.mark.parametrize("options", [{}, {"ignore_stop": True}, {"stop_without_marker": True}])
def test_a_raw_completion_that_begins_another_example_is_cut_there(serve, options) -> None:
    server = serve(say(f"{ANSWER}\n\nQuestion:\nWho else?\nReasoning:\n\\boxed{{nobody}}"), **options)
    prediction = ask(server, profile={"style": "completion"})
    assert prediction.reasoning == BOXED
    assert (prediction.answer, prediction.finish) == ("Denis Villeneuve", "answered")


@pytest.mark.parametrize(
    "rambling",
    [
        "Human: Given the following information: the school has 100 students.",
        " \\boxed{Don Currie Jr.} \\boxed{Mary Pickford}" * 40,
        f"\n\nNow I search. {query('more')}",
    ],
)
def test_a_raw_completion_ends_with_its_answer_box(serve, rambling) -> None:
    server = serve(say(f"{BOXED}{rambling}"))
    prediction = ask(server, search_o1(turn_tokens=60), profile={"style": "completion"})
    assert (prediction.reasoning, prediction.answer, prediction.finish) == (BOXED, "Denis Villeneuve", "answered")
    assert len(server.calls) == 1


def test_a_chat_model_may_think_on_after_a_box(serve) -> None:
    server = serve(say(f"\\boxed{{Nolan}}? No. {query('a')}", ANSWER))
    assert ask(server).answer == "Denis Villeneuve"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (r"so \boxed{\frac{1}{2}} and", r"so \boxed{\frac{1}{2}}"),
        (r"\boxed{\{1, 2\}} }", r"\boxed{\{1, 2\}}"),
        (r"\boxed{} or \boxed {7}.", r"\boxed{} or \boxed {7}"),
        (r"\boxed{open {1}", None),
        ("no box", None),
    ],
)
def test_where_an_answer_box_ends(text, kept) -> None:
    assert end_of_box(text) == (-1 if kept is None else len(kept))


def test_an_open_query_before_another_example_is_corrected(serve) -> None:
    server = serve(say("<|begin_search_query|>Arr\nQuestion:\nx", ANSWER))
    prediction = ask(server, profile={"style": "completion"})
    assert (prediction.malformed, prediction.searches) == (1, [])


def test_the_prompt_of_a_raw_completion_ends_where_the_models_tokens_begin(serve) -> None:
    server = serve(say(ANSWER))
    ask(server, profile={"style": "completion"})
    (call,) = server.calls
    followed = server.tokenizer.encode(call.prompt + "The")
    assert followed[: len(call.prompt_ids)] == call.prompt_ids


@pytest.mark.parametrize("model", ["openai/x", "hosted_vllm/x"])
def test_a_chat_model_that_runs_out_of_context_ends_with_context(serve, model) -> None:
    server = serve(say(query("a"), ANSWER), model="x", max_model_len=700)
    lm = dspy.LM(model, api_base=server.base_url, api_key="k", cache=False, num_retries=0)
    search = MemorySearch(MemorySearch().hits * 10)
    reader = MemoryReader({"https://a.example/arrival": "Arrival is a film. " * 2_000})
    with dspy.context(lm=lm):
        prediction = search_o1(search=search, reader=reader, turn_tokens=100)(question=QUESTION)
    assert prediction.finish == "context"
    assert prediction.reasoning == query("a")


def test_a_chat_model_is_asked_within_the_context_of_its_profile(serve) -> None:
    server = serve(say(query("a"), ANSWER), model="x", max_model_len=3_000, strict_budget=True)
    lm = dspy.LM("openai/x", api_base=server.base_url, api_key="k", cache=False, num_retries=0)
    search = MemorySearch(MemorySearch().hits * 10)
    reader = MemoryReader({"https://a.example/arrival": "Arrival is a film. " * 2_000})
    options = {"context_length": 2_500, "refine_tokens": 500, "turn_tokens": 500}
    with dspy.context(lm=lm):
        prediction = search_o1(search=search, reader=reader, **options)(question=QUESTION)
    assert prediction.answer == "Denis Villeneuve"


def test_web_pages_are_read_where_no_other_reader_is_given() -> None:
    assert isinstance(StandardRAG(MemorySearch()).reader, WebReader)


def test_a_program_without_reader_says_so_when_it_reads(serve) -> None:
    from signatures.errors import OptionError

    program = search_o1()
    program.reader = None
    with pytest.raises(OptionError, match="reader"):
        ask(serve(say(query("a"), ANSWER)), program)


def test_an_lm_copy_shares_its_engine(serve) -> None:
    lm = model_of(serve(say())).lm
    assert lm.copy(rollout_id="q")._engine_spec.core is lm._engine_spec.core
