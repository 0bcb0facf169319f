"""The engine's LM under DSPy's own predictors, and the reply cache."""

from __future__ import annotations

import dspy

from programs import DirectReasoning
from retrieval.cache import Cache
from tests.programs.world import ANSWER, QUESTION, model_of, query, say, search_o1

REPLY = "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"


def test_a_plain_predictor_keeps_its_system_message_sampling_and_room(serve) -> None:
    server = serve(lambda prompt, body: REPLY)
    with dspy.context(lm=model_of(server).lm):
        assert dspy.Predict("question -> answer")(question=QUESTION).answer == "Paris"
    (call,) = server.calls
    assert call.prompt.startswith("<|im_start|>system\nYour input fields are")
    assert (call.body["top_k"], call.body["repetition_penalty"], call.body["temperature"]) == (20, 1.05, 0.7)
    assert call.body["max_tokens"] == server.max_model_len - len(call.prompt_ids)


def test_a_plain_predictors_own_sampling_wins(serve) -> None:
    server = serve(lambda prompt, body: REPLY)
    with dspy.context(lm=model_of(server, top_k=3).lm):
        dspy.Predict("question -> answer", temperature=0.1, max_tokens=50)(question=QUESTION)
    assert [server.calls[0].body[name] for name in ("top_k", "temperature", "max_tokens")] == [3, 0.1, 50]


def cached(serve, tmp_path, reply):
    server = serve(reply)
    return server, model_of(server, cache=Cache(tmp_path / "cache.sqlite"))


def test_a_repeated_chain_is_answered_from_the_cache_and_says_so(serve, tmp_path) -> None:
    server, model = cached(serve, tmp_path, say(query("a"), ANSWER))
    with dspy.context(lm=model.lm):
        first, second = search_o1()(question=QUESTION), search_o1()(question=QUESTION)
    assert second.reasoning == first.reasoning
    assert (first.usage["from_cache"], second.usage["from_cache"]) == (0, 3)
    assert len(server.calls) == 3
    assert second.usage["retokenised"] == 0


def test_samples_of_one_question_do_not_share_a_reply(serve, tmp_path) -> None:
    _server, model = cached(serve, tmp_path, lambda prompt, body: f"\\boxed{{{body.get('seed')}}}")
    for temperature in (0.7, None):
        answers = set()
        for rollout in ("q/0", "q/1", "q/0"):
            with dspy.context(lm=model.lm.copy(rollout_id=rollout, temperature=temperature)):
                answers.add(DirectReasoning()(question=QUESTION).answer)
        assert len(answers) == 2


def test_unseeded_samples_of_a_plain_predictor_are_not_kept(serve, tmp_path) -> None:
    server, model = cached(serve, tmp_path, lambda prompt, body: REPLY)
    with dspy.context(lm=model.lm):
        for _ in range(2):
            dspy.Predict("question -> answer")(question=QUESTION)
    assert len(server.calls) == 2


def test_greedy_replies_of_a_plain_predictor_are_kept(serve, tmp_path) -> None:
    server, model = cached(serve, tmp_path, lambda prompt, body: REPLY)
    with dspy.context(lm=model.lm):
        for _ in range(2):
            dspy.Predict("question -> answer", temperature=0.0)(question=QUESTION)
    assert len(server.calls) == 1


def test_a_failed_reply_is_not_kept(serve, tmp_path) -> None:
    server, model = cached(serve, tmp_path, say(ANSWER))
    server.fail_next(1, 500)
    with dspy.context(lm=model.lm):
        assert DirectReasoning()(question=QUESTION).answer == "Denis Villeneuve"
