"""`--model local`: the real small model in this process, as chains and DSPy use it."""

from __future__ import annotations

import asyncio
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, ContextLengthError, Message, Request

from programs.language_model import EXTENSION
from retrieval.cache import Cache
from runs.home import Home
from runs.models.factory import Model, is_local, make_model
from runs.models.pipeline import PrefixAccount
from runs.models.weights import find_weights
from signatures.errors import ModelError

STORY = "The lighthouse keeper wrote in his log every evening. "
PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def local() -> Model:
    find_weights("local", Home().models)
    return make_model("local")


def request(*texts: str, tokens: int = 24, chain: str = "", raw: bool = True, **config: Any) -> Request:
    """Build a request: the prompt, and after it the chain so far if there is one."""
    messages = [Message.user(texts[0]), *(Message.assistant(t) for t in texts[1:])]
    extensions = {EXTENSION: {"chain": chain, "raw": raw}, **config.pop("extensions", {})}
    given = {"temperature": 0.0, "max_tokens": tokens, **config}
    return Request(
        model="local/SmolLM2-135M-Instruct", messages=tuple(messages), config=Config(**given, extensions=extensions)
    )


def complete(model: Model, wanted: Request) -> Any:
    return asyncio.run(model.core.complete(wanted))


def finish(response: Any) -> tuple[str, str | None]:
    choice = response.provider_data["choices"][0]
    return choice["finish_reason"], choice["stop_reason"]


def test_greedy_replies_are_the_same_each_time_blocking_or_not(local) -> None:
    first = complete(local, request(PROMPT))
    assert "Paris" in first.text
    assert complete(local, request(PROMPT)).text == first.text
    assert local.lm(request(PROMPT)).text == first.text
    assert asyncio.run(local.lm.acall(request(PROMPT))).text == first.text


def test_a_stop_string_ends_the_reply_and_stays_in_it(local) -> None:
    response = complete(local, request("Count: one, two, three,", tokens=40, stop=("five", "six")))
    assert response.text.endswith("five")
    assert finish(response) == ("stop", "five")
    assert response.finish_reason == "stop"


def test_a_reply_out_of_tokens_says_length(local) -> None:
    response = complete(local, request("Count: one, two, three,", tokens=5))
    assert finish(response) == ("length", None)
    assert (response.finish_reason, response.usage.output_tokens) == ("length", 5)


def test_token_counts_are_the_tokenizers(local) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    counted = asyncio.run(local.core.count_tokens(messages, "", True))
    response = complete(local, request(PROMPT))
    assert response.usage.input_tokens == counted == len(asyncio.run(local.core.tokenise(PROMPT)))
    through_template = asyncio.run(local.core.count_tokens(messages, "", False))
    assert through_template > counted
    assert asyncio.run(local.core.detokenise(asyncio.run(local.core.tokenise("Zürich, 東京 🙂")))) == "Zürich, 東京 🙂"
    assert asyncio.run(local.core.tokenise("")) == []


def test_the_token_boundary_rule_holds_a_trailing_blank_line_back(local) -> None:
    assert asyncio.run(local.core.hold_back("<|end_search_result|>\n\n")) == "<|end_search_result|>"
    assert asyncio.run(local.core.hold_back("no white space")) == "no white space"


def test_sampling_follows_its_seed(local) -> None:
    def sample(seed: int) -> str:
        wanted = request(
            "Once upon a time", tokens=12, temperature=1.0, top_p=0.95, seed=seed, extensions={"top_k": 50}
        )
        return str(complete(local, wanted).text)

    texts = [sample(seed) for seed in (1, 2)]
    assert len(set(texts)) > 1
    assert sample(1) == texts[0]


def test_a_repetition_penalty_reaches_the_model(local) -> None:
    plain = complete(local, request("na na na na na na na", tokens=16))
    fined = complete(local, request("na na na na na na na", tokens=16, extensions={"repetition_penalty": 1.8}))
    assert plain.text != fined.text


def test_a_chain_continued_by_its_ids_says_what_one_prompt_would(local) -> None:
    prompt = STORY * 3 + "Then"
    first = complete(local, request(prompt, tokens=12, chain="continued"))
    second = complete(local, request(prompt, first.text, tokens=12, chain="continued"))
    whole = complete(local, request(prompt, tokens=24))
    assert first.text + second.text == whole.text
    assert second.provider_data[EXTENSION]["retokenised"] is False
    injected = first.text + "\n\n<|begin_search_result|>It was raining.<|end_search_result|>"
    third = complete(local, request(prompt, injected, tokens=8, chain="continued"))
    single = complete(local, request(prompt + injected, tokens=8))
    assert third.text == single.text


def test_a_continued_chain_finds_its_full_blocks_in_the_cache(local) -> None:
    prompt = "".join(f"On day {i} the keeper of the lighthouse saw {i * 7} ships. " for i in range(20))
    first = complete(local, request(prompt, tokens=1, chain="long"))
    assert first.usage.cache_read_tokens < 64
    second = complete(local, request(prompt, first.text + " And then he wrote", tokens=1, chain="long"))
    assert second.usage.cache_read_tokens == first.usage.input_tokens // 32 * 32 > 200


def test_sixteen_requests_at_once_are_answered_as_they_are_alone(local) -> None:
    prompts = [f"The number after {i} is" for i in range(16)]
    alone = [complete(local, request(p, tokens=6)).text for p in prompts[:3]]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(local.core.complete(request(p, tokens=6)) for p in prompts))

    together = asyncio.run(all_of_them())
    assert len(together) == 16
    assert all(r.usage.output_tokens <= 6 and r.text for r in together)
    assert [r.text for r in together[:3]] == alone


def test_a_cached_reply_needs_no_generation(local, tmp_path) -> None:
    model = make_model("local", cache=Cache(tmp_path / "cache.sqlite"))
    first = complete(model, request(PROMPT))
    again = complete(model, request(PROMPT))
    assert (first.text, model.core.model_calls) == (again.text, 1)
    assert [r.provider_data[EXTENSION]["from_cache"] for r in (first, again)] == [False, True]
    assert again.usage == first.usage
    complete(model, request(PROMPT, tokens=25))
    assert model.core.model_calls == 2
    # Another process, another engine: the file is what remembers.
    other = make_model("local", cache=Cache(tmp_path / "cache.sqlite"))
    complete(other, request(PROMPT))
    assert other.core.model_calls == 0


def test_a_sample_without_a_seed_is_never_taken_from_the_cache(local, tmp_path) -> None:
    model = make_model("local", cache=Cache(tmp_path / "cache.sqlite"))
    for _ in range(2):
        complete(model, request(PROMPT, tokens=2, temperature=0.7))
    assert model.core.model_calls == 2


def test_a_prompt_beyond_the_context_is_a_typed_error(local) -> None:
    small = make_model("local", context_length=64)
    with pytest.raises(
        ContextLengthError, match=r"\d+ prompt tokens and 24 output tokens exceed the context of 64 tokens"
    ):
        complete(small, request(STORY * 8))
    assert complete(small, request(PROMPT)).text


def test_plain_dspy_predictors_work_on_it(local) -> None:
    with dspy.context(lm=local.lm):
        (text,) = local.lm("The capital of France is", max_tokens=8)
    assert isinstance(text if isinstance(text, str) else text["text"], str)


def test_cancelled_requests_leave_the_engine_working(local) -> None:
    async def cancelled() -> None:
        tasks = [asyncio.create_task(local.core.complete(request(STORY + str(i), tokens=200))) for i in range(4)]
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(r, asyncio.CancelledError) for r in results)

    asyncio.run(cancelled())
    assert "Paris" in complete(local, request(PROMPT)).text


def test_prompts_begun_together_read_what_they_share_once(local) -> None:
    shared = "The harbour master counted the ships again. " * 60

    async def together() -> list[Any]:
        return await asyncio.gather(
            *(local.core.complete(request(f"{shared}Ship number {i} was", tokens=4)) for i in range(4))
        )

    cached = sorted(response.usage.cache_read_tokens or 0 for response in asyncio.run(together()))
    assert cached[0] < 64
    assert cached[1] >= 400


def test_a_file_that_is_no_model_is_refused_with_a_way_out(tmp_path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\x00" * 64)
    with pytest.raises(ModelError, match=r"OpenVINO cannot load .*broken\.gguf.*Use another GGUF file"):
        complete(make_model(str(path)), request(PROMPT))


def test_names_and_identity_of_local_models(local, tmp_path) -> None:
    assert local.name == "local/SmolLM2-135M-Instruct"
    assert (local.profile.name, local.profile.style) == ("smollm2-135m", "completion")
    assert local.identity.startswith("openvino-genai ")
    assert ":SmolLM2-135M-Instruct.Q4_1.gguf:" in local.identity
    assert [is_local(n) for n in ("local", "local:1.5b", "a/b.gguf", "hosted_vllm/local", "openai/gpt")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_account_counts_full_blocks_of_a_prefix_and_forgets_the_oldest() -> None:
    account = PrefixAccount(blocks=4, block_tokens=4)
    ids = list(range(18))
    assert account.cached(ids) == 0
    account.add(ids)
    assert account.cached(ids) == 16
    # The last token is computed anew in any case.
    assert account.cached(ids[:16]) == 15
    assert account.cached([*ids[:8], 99, 98, 97, 96, 95]) == 8
    assert account.cached([99, *ids[1:]]) == 0
    # Two new blocks push out the two that were used least recently.
    account.add(list(range(100, 108)))
    assert account.cached(ids) == 8
    account.add(list(range(200, 216)))
    assert account.cached(ids) == 0
    assert account.cached([]) == 0
