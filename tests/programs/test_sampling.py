"""What reaches the wire: sampling fields exactly, seeds that differ where they should, nothing of our own."""

from __future__ import annotations

import dspy
import pytest

from programs import DirectReasoning, paper_options
from programs.language_model import sampling_seed
from programs.options import ChainOptions, make_options
from signatures.errors import OptionError
from signatures.profiles import profile_for
from tests.programs.world import ANSWER, QUESTION, ask, model_of, query, reasoning_calls, refine_calls, say, search_o1

QWQ = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05}
KNOWN_FIELDS = {
    "model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "repetition_penalty", "seed", "stop",
    "include_stop_str_in_output", "add_special_tokens", "return_token_ids",
}  # fmt: skip


def seeds(server) -> list[int]:
    return [call.body["seed"] for call in server.calls]


def test_the_profiles_sampling_reaches_the_wire_exactly(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    ask(server)
    for call in server.calls:
        assert {name: call.body[name] for name in QWQ} == QWQ
        assert set(call.body) <= KNOWN_FIELDS


def test_the_prompt_goes_out_as_token_ids(serve) -> None:
    server = serve(say(ANSWER))
    ask(server)
    assert server.calls[0].body["prompt"] == server.calls[0].prompt_ids


def test_sampling_of_the_model_overrides_the_profile_and_options_override_both(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    program = search_o1(sampling={"top_k": 7}, refine_sampling={"top_k": 9, "min_p": 0.1})
    ask(server, program, temperature=0.3)
    assert {call.body["temperature"] for call in server.calls} == {0.3}
    assert {call.body["top_k"] for call in reasoning_calls(server)} == {7}
    assert [(call.body["top_k"], call.body["min_p"]) for call in refine_calls(server)] == [(9, 0.1)]


def test_seeds_differ_by_turn_and_kind_and_repeat_with_the_run(serve) -> None:
    runs = []
    for _ in range(2):
        server = serve(say(query("a"), query("b"), ANSWER))
        ask(server)
        runs.append(seeds(server))
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 5
    assert runs[0][0] == sampling_seed(0, "", 1, "reason")
    assert runs[0][1] == sampling_seed(0, "", 1, "refine")


def test_seeds_differ_by_sample_and_by_run_seed(serve) -> None:
    server = serve(lambda prompt, body: ANSWER)
    lm = model_of(server).lm
    for rollout, seed in (("q1/0", 0), ("q1/1", 0), ("q2/0", 0), ("q1/0", 1)):
        with dspy.context(lm=lm.copy(rollout_id=rollout)):
            DirectReasoning(seed=seed)(question=QUESTION)
    assert len(set(seeds(server))) == 4
    assert all(0 <= seed < 2**31 for seed in seeds(server))
    assert all("rollout_id" not in call.body for call in server.calls)


def test_a_seed_is_a_known_number_on_every_machine() -> None:
    assert sampling_seed(1, "nq-3/0", 2, "reason") == 174020245


def test_a_greedy_call_sends_no_seed(serve) -> None:
    server = serve(say(ANSWER))
    ask(server, temperature=0.0)
    assert "seed" not in server.calls[0].body


def test_a_seed_of_the_users_own_is_kept(serve) -> None:
    server = serve(say(ANSWER))
    ask(server, search_o1(sampling={"seed": 11}))
    assert seeds(server) == [11]


def test_fields_of_extra_body_reach_the_wire(serve) -> None:
    server = serve(say(ANSWER))
    ask(server, extra_body={"min_p": 0.05})
    assert server.calls[0].body["min_p"] == 0.05
    assert "extra_body" not in server.calls[0].body


@pytest.mark.parametrize(
    ("method", "model", "task", "benchmark", "multi_hop", "expected"),
    [
        ("search_o1", "qwq-32b", "open_qa", "hotpotqa", True, (10, 15, 10, 20_480, 1.05)),
        ("search_o1", "qwq-32b", "open_qa", "nq", False, (5, 15, 10, 20_480, 1.05)),
        ("search_o1", "qwq-32b", "math", "aime24", True, (5, 10, 10, 32_768, 1.05)),
        ("search_o1", "qwq-32b", "multiple_choice", "gpqa", True, (5, 10, 10, 20_480, 1.05)),
        ("search_o1", "qwen2.5-7b", "open_qa", "nq", False, (5, 15, 10, 8_192, 1.0)),
        ("rag_agent", "qwq-32b", "open_qa", "nq", False, (5, 10, 5, 20_480, 1.05)),
        ("rag_agent", "qwq-32b", "code", "livecodebench", True, (5, 10, 10, 32_768, 1.05)),
        ("direct", "qwq-32b", "math", "aime24", True, (5, 10, 10, 32_768, 1.05)),
        ("standard_rag", "qwen2.5-7b", "open_qa", "nq", False, (5, 15, 10, 32_768, 1.0)),
    ],
)
def test_the_papers_settings(method, model, task, benchmark, multi_hop, expected) -> None:
    options = paper_options(method, profile_for(model), task, benchmark=benchmark, multi_hop=multi_hop)
    penalty = options.sampling["repetition_penalty"]
    assert (options.max_searches, options.turns, options.top_k, options.turn_tokens, penalty) == expected
    assert options.refine_sampling["repetition_penalty"] == 1.05
    assert (options.page_chars, options.context_chars, options.max_fetches) == (8_000, 3_000, 5)
    assert not (options.stop_loops)
    assert not (options.force_answer)
    assert not (options.show_starter_code)
    assert not (options.chain_tokens)


def test_options_refuse_unknown_names_and_impossible_values() -> None:
    with pytest.raises(OptionError, match=r"Unknown option 'max_serches'; known options: .*max_searches"):
        search_o1(max_serches=3)
    with pytest.raises(OptionError, match="max_searches = -1"):
        search_o1(max_searches=-1)
    with pytest.raises(OptionError, match="language = 'fr'"):
        make_options(ChainOptions(), language="fr")


def test_changes_stand_on_top_of_given_options() -> None:
    assert make_options(ChainOptions(top_k=3, max_searches=2), top_k=4) == ChainOptions(top_k=4, max_searches=2)
