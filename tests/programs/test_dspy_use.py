"""Plain DSPy use: no factory, no command line, nothing but `dspy` and a program."""

from __future__ import annotations

import asyncio

import dspy
import pytest
from dspy.utils import DummyLM

from programs import DirectReasoning, SearchO1, StandardRAG
from retrieval.base import Hit
from tests.programs.world import (
    ANSWER,
    BR,
    ER,
    INFORMATION,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    ask_async,
    every_program,
    model_of,
    query,
    say,
    search_o1,
)
from tests.servers.lm import searching_model

FACTS = {"Arrival": "Denis Villeneuve", "Dune": "Frank Herbert", "Emma": "Jane Austen", "Ulysses": "James Joyce"}
TRAINSET = [
    dspy.Example(question=f"Who made {work}?", answer=person).with_inputs("question") for work, person in FACTS.items()
]


def metric(example, prediction, trace=None) -> bool:
    return example.answer == prediction.answer


def knowing_program(**options) -> SearchO1:
    hits = {work: [Hit(work, f"https://a.example/{work}", f"{work} is a work")] for work in FACTS}
    pages = {f"https://a.example/{work}": f"{work} is by {person}." for work, person in FACTS.items()}
    return SearchO1(MemorySearch(hits), MemoryReader(pages), **options)


def test_a_configured_model_is_all_a_program_needs(serve) -> None:
    server = serve(searching_model(FACTS))
    dspy.configure(lm=model_of(server).lm)
    try:
        prediction = knowing_program()(question="Who made Dune?")
    finally:
        dspy.configure(lm=None)
    assert prediction.answer == "Frank Herbert"
    assert prediction.finish == "answered"
    assert set(prediction.toDict()) >= {"answer", "reasoning", "searches", "finish", "usage", "events"}


@pytest.mark.parametrize("index", range(5))
def test_asyncio_gives_what_the_blocking_call_gives(serve, index) -> None:
    results = []
    for asker in (ask, ask_async):
        server = serve(
            lambda prompt, body: (
                say("", refined="**Final Information**\n\nX")(prompt, body)
                if "Searched Web Pages" in prompt
                else (ANSWER if ER in prompt.split("assistant\n")[-1] else query("a"))
            )
        )
        prediction = asker(server, every_program()[index])
        results.append(
            (
                prediction.reasoning,
                prediction.answer,
                prediction.finish,
                prediction.usage,
                [event["type"] for event in prediction.events],
                [call.body for call in server.calls],
            )
        )
    assert results[0] == results[1]


def test_one_trace_entry_a_question_and_one_a_refinement(serve) -> None:
    server = serve(say(query("a"), query("b"), ANSWER))
    with dspy.context(lm=model_of(server).lm, trace=[]):
        program = search_o1()
        prediction = program(question=QUESTION)
        trace = list(dspy.settings.trace)
    assert [entry[0] for entry in trace] == [program.refine, program.refine, program.reason]
    assert trace[-1][1] == {"question": QUESTION}
    assert trace[-1][2].toDict() == {"reasoning": prediction.reasoning, "answer": "Denis Villeneuve"}
    assert set(trace[0][1]) == {"prev_reasoning", "search_query", "document"}
    assert trace[0][2].toDict() == {"final_information": INFORMATION}


def test_traced_pages_are_short(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    reader = MemoryReader({"https://a.example/arrival": "page " * 3_000})
    rag = serve(say(ANSWER))
    for running, program, name in (
        (server, search_o1(reader=reader), "document"),
        (rag, StandardRAG(MemorySearch(), reader), "documents"),
    ):
        with dspy.context(lm=model_of(running).lm, trace=[]):
            program(question=QUESTION)
            assert len(dspy.settings.trace[0][1][name]) == 2_000


def test_no_trace_is_written_where_none_is_wanted(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    with dspy.context(lm=model_of(server).lm, trace=None):
        assert search_o1()(question=QUESTION).answer == "Denis Villeneuve"


def test_evaluate_scores_a_program_in_threads(serve) -> None:
    server = serve(searching_model(FACTS))
    with dspy.context(lm=model_of(server).lm):
        evaluate = dspy.Evaluate(devset=TRAINSET, metric=metric, num_threads=4, display_progress=False)
        assert evaluate(knowing_program()).score == 100.0
        assert evaluate(DirectReasoning()).score == 0.0


def test_bootstrapped_demos_are_whole_chains_and_reach_the_prompt(serve) -> None:
    server = serve(searching_model(FACTS))
    with dspy.context(lm=model_of(server).lm):
        optimizer = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=2, max_labeled_demos=0)
        compiled = optimizer.compile(knowing_program(), trainset=TRAINSET[:2])
        for demo in compiled.reason.demos:
            assert query("Arrival") in demo["reasoning"] or query("Dune") in demo["reasoning"]
            assert demo["reasoning"].endswith("}")
            assert BR in demo["reasoning"]
        server.calls.clear()
        compiled(question="Who made Emma?")
    assert len(compiled.reason.demos) == len(compiled.refine.demos) == 2
    assert server.calls[0].prompt.count("<|im_start|>assistant") == 3
    assert (
        "Who made Arrival?<|im_end|>\n<|im_start|>assistant\n"
        f"I need to know about Arrival.\n\n{query('Arrival')}\n\n{BR}" in (server.calls[0].prompt)
    )


def test_labelled_demos_without_a_chain_are_left_out_of_the_prompt(serve) -> None:
    server = serve(searching_model(FACTS))
    with dspy.context(lm=model_of(server).lm):
        compiled = dspy.LabeledFewShot(k=3).compile(knowing_program(), trainset=TRAINSET)
        assert compiled(question="Who made Emma?").answer == "Jane Austen"
    assert server.calls[0].prompt.count("<|im_start|>assistant") == 1


def test_mipro_optimises_search_o1_and_edits_its_instructions(serve) -> None:
    search = searching_model(FACTS)

    def model(prompt: str, body: dict) -> str:
        if "proposed_instruction" not in prompt:
            return str(search(prompt, body))
        proposed = "Ask with <|begin_search_query|> q <|end_search_query|>."
        return f"[[ ## proposed_instruction ## ]]\n{proposed}\n\n[[ ## completed ## ]]"

    server = serve(model)
    lm = model_of(server).lm
    with dspy.context(lm=lm):
        optimizer = dspy.MIPROv2(
            metric=metric,
            prompt_model=lm,
            task_model=lm,
            auto=None,
            num_candidates=2,
            max_bootstrapped_demos=1,
            max_labeled_demos=0,
            num_threads=2,
            verbose=False,
        )
        compiled = optimizer.compile(
            knowing_program(),
            trainset=TRAINSET,
            valset=TRAINSET[:2],
            num_trials=2,
            minibatch=False,
            program_aware_proposer=False,
            data_aware_proposer=False,
            tip_aware_proposer=False,
        )
        assert isinstance(compiled, SearchO1)
        assert compiled(question="Who made Emma?").answer == "Jane Austen"
    assert any(
        "Ask with <|begin_search_query|>" in call.prompt.split("Please answer")[0]
        for call in server.calls
        if "Question:\nWho made" in call.prompt
    )


def test_two_predictors_are_named() -> None:
    assert [name for name, _ in search_o1().named_predictors()] == ["reason", "refine"]
    assert [name for name, _ in DirectReasoning().named_predictors()] == ["reason"]


@pytest.mark.parametrize("model", ["openai/x", "hosted_vllm/QwQ"])
@pytest.mark.parametrize("asker", ["sync", "async"])
def test_a_stock_lm_works_through_chat(serve, model, asker) -> None:
    found = "About Dune: Frank Herbert."
    server = serve(
        lambda prompt, _: (
            f"**Final Information**\n\n{found}"
            if "Searched Web Pages" in prompt
            else "So \\boxed{Frank Herbert}"
            if found in prompt
            else f"I search. {query('Dune')}\n\n{BR}made up{ER}"
        ),
        model=model.split("/")[1],
    )
    lm = dspy.LM(model, api_base=server.base_url, api_key="k", cache=False, temperature=0.5, max_tokens=500)
    program = knowing_program()
    with dspy.context(lm=lm):
        if asker == "sync":
            prediction = program(question="Who made Dune?")
        else:
            prediction = asyncio.run(program.acall(question="Who made Dune?"))
    assert prediction.answer == "Frank Herbert"
    assert [record["query"] for record in prediction.searches] == ["Dune"]
    last = [r for r in server.requests if r.path.endswith("/chat/completions")][-1]
    assert last.body["messages"][-1]["content"].endswith(ER) or last.body["messages"][-1]["content"].endswith(
        f"{ER}\n\n"
    )
    assert last.body["messages"][-1]["role"] == ("user" if model == "openai/x" else "assistant")


def test_a_dummy_lm_answers() -> None:
    with dspy.context(
        lm=DummyLM(
            [{"reasoning": f"Hm. {query('a')}", "answer": ""}, {"final_information": "x"}, {"answer": "\\boxed{b}"}]
        )
    ):
        prediction = search_o1()(question=QUESTION)
    assert prediction.answer == "b"
    assert len(prediction.searches) == 1
