from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.engine import BLOCK_SIZE, generate
from tests.servers.lm import LMServer, scripted
from tests.servers.lm_client import complete, echo, error, events, post
from tests.servers.tokenizer import BOS, IM_END, Tokenizer


@pytest.fixture
def server() -> Iterator[LMServer]:
    with LMServer(echo, max_model_len=200) as running:
        yield running


def test_a_second_bos_shows() -> None:
    with LMServer(echo, bos=True) as server:
        rendered = post(server, "/tokenize", messages=[{"role": "user", "content": "Hi"}]).json()["tokens"]
        text = post(server, "/detokenize", tokens=rendered).json()["prompt"]
        assert text == "<s><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        complete(server, text)
        complete(server, text, add_special_tokens=False)
        assert [call.prompt_ids.count(BOS) for call in server.calls] == [2, 1]


# Stop strings, budgets, token ids


def test_a_stop_string_is_cut_inside_its_token_and_the_token_stays_whole(server: LMServer) -> None:
    asked = {"stop": ["capi"], "return_token_ids": True}
    choice = complete(server, "x", include_stop_str_in_output=True, **asked)["choices"][0]
    assert choice["text"] == "Paris is the capi"
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "capi")
    assert server.tokenizer.decode(choice["token_ids"]) == "Paris is the capit"
    assert complete(server, "x", **asked)["choices"][0]["text"] == "Paris is the "


@given(
    st.text("ab <|>.\n", max_size=60), st.lists(st.text("ab <|>.", min_size=1, max_size=4), max_size=3), st.booleans()
)
def test_the_stop_string_completed_first_ends_the_text(reply: str, stop: list[str], include: bool) -> None:
    output = generate(Tokenizer(), reply, 1000, stop, include_stop=include)
    ends = [reply.index(s) + len(s) for s in stop if s in reply]
    assert (output.stop_reason is not None) == bool(ends)
    assert "".join(text for _, text in output.steps) == output.text
    if ends and output.stop_reason is not None:
        assert reply.startswith(output.text + ("" if include else output.stop_reason))
        # Stop strings are looked for once a token, so one that ends later in the same token never wins.
        assert len(output.text) + (0 if include else len(output.stop_reason)) == min(ends)
    else:
        assert output.text == reply
        assert output.token_ids[-1] == IM_END


def test_max_tokens_ends_with_length_and_the_end_token_with_stop(server: LMServer) -> None:
    short = complete(server, "x", max_tokens=2)
    assert short["choices"][0] | {"text": ""} == short["choices"][0] | {"text": "", "finish_reason": "length"}
    assert short["usage"]["completion_tokens"] == 2
    whole = complete(server, "x", return_token_ids=True)["choices"][0]
    assert (whole["finish_reason"], whole["stop_reason"], whole["token_ids"][-1]) == ("stop", None, IM_END)
    assert whole["text"] == echo("", {})


def test_token_ids_come_only_when_asked_for(server: LMServer) -> None:
    choice = complete(server, "x")["choices"][0]
    assert choice["token_ids"] is choice["prompt_token_ids"] is None
    server.no_token_ids = True
    assert complete(server, "x", return_token_ids=True)["choices"][0]["token_ids"] is None


@pytest.mark.parametrize(
    ("option", "text"), [("ignore_stop", "Paris is the capital of F"), ("stop_without_marker", "Par")]
)
def test_a_server_that_ignores_stop_options(option: str, text: str) -> None:
    with LMServer(echo, **{option: True}) as server:  # type: ignore[arg-type]
        choice = complete(server, "x", stop=["is"], include_stop_str_in_output=True)["choices"][0]
        assert choice["text"].startswith(text)
        assert choice["finish_reason"] == "stop"


# The prefix cache


def test_a_continuation_by_token_ids_finds_every_whole_block_cached(server: LMServer) -> None:
    server.max_model_len = 2000
    prompt = "Fact: water is wet. " * 30
    first = complete(server, prompt, return_token_ids=True)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    choice = first["choices"][0]
    seen = choice["prompt_token_ids"] + choice["token_ids"]
    second = complete(server, seen + server.tokenizer.encode(" And so on."))
    expected = (len(seen) - 1) // BLOCK_SIZE * BLOCK_SIZE
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == expected
    changed = [seen[0] + 1, *seen[1:]]
    assert complete(server, changed)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_the_last_prompt_token_is_never_cached(server: LMServer) -> None:
    ids = server.tokenizer.encode("a " * 200)[: 2 * BLOCK_SIZE]
    complete(server, ids)
    assert complete(server, ids)["usage"]["prompt_tokens_details"]["cached_tokens"] == BLOCK_SIZE


def test_a_restart_keeps_the_port_and_empties_the_cache(server: LMServer) -> None:
    port, ids = server.port, server.tokenizer.encode("word " * 40)
    complete(server, ids)
    server.stop()
    with pytest.raises(requests.ConnectionError):
        complete(server, ids)
    server.restart()
    assert server.port == port
    assert complete(server, ids)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


# The other endpoints


def test_models_version_health_and_metrics(server: LMServer) -> None:
    complete(server, "word " * 40)
    card = requests.get(server.base_url + "/models", timeout=5).json()["data"][0]
    assert (card["id"], card["root"], card["max_model_len"]) == ("QwQ", "models/QwQ", 200)
    assert requests.get(server.root_url + "/version", timeout=5).json() == {"version": "0.32.0"}
    assert requests.get(server.root_url + "/health", timeout=5).text == ""
    page = requests.get(server.root_url + "/metrics", timeout=5).text
    assert f'vllm:prompt_tokens_total{{engine="0",model_name="QwQ"}} {len(server.calls[0].prompt_ids)}.0' in page
    assert 'finished_reason="stop",model_name="QwQ"} 1.0' in page


def test_tokenize_renders_the_template_and_keeps_the_last_message_open() -> None:
    with LMServer(echo, think=True) as server:
        user = {"role": "user", "content": "Hi"}
        ids = post(server, "/tokenize", messages=[user]).json()["tokens"]
        assert server.tokenizer.decode(ids).endswith("<|im_start|>assistant\n<think>\n")
        messages = [user, {"role": "assistant", "content": "I think"}]
        kept = post(server, "/tokenize", messages=messages, continue_final_message=True, add_generation_prompt=False)
        assert server.tokenizer.decode(kept.json()["tokens"]).endswith("<|im_start|>assistant\nI think")
        both = post(server, "/tokenize", messages=messages, continue_final_message=True, add_generation_prompt=True)
        assert both.status_code == 400
        plain = post(server, "/tokenize", prompt="a b").json()
        assert plain == {
            "count": 2,
            "max_model_len": 32768,
            "tokens": server.tokenizer.encode("a b"),
            "token_strs": None,
        }


def test_a_server_without_tokenize() -> None:
    with LMServer(echo, no_tokenize=True) as server:
        assert post(server, "/tokenize", prompt="x").status_code == 404


def test_chat_continues_the_last_message(server: LMServer) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "I think"}]
    body = {"messages": messages, "continue_final_message": True, "add_generation_prompt": False, "stop": [" of"]}
    answer = post(server, "/v1/chat/completions", include_stop_str_in_output=True, **body).json()
    assert answer["choices"][0]["message"]["content"] == "Paris is the capital of"
    assert server.prompts[0].endswith("<|im_start|>assistant\nI think")
    assert post(server, "/v1/chat/completions", messages=messages, continue_final_message=True).status_code == 400


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_streaming_adds_up_to_the_whole_reply(server: LMServer, path: str) -> None:
    chat = "chat" in path
    prompt = {"messages": [{"role": "user", "content": "Hi"}]} if chat else {"prompt": "x"}
    asked = {**prompt, "max_tokens": 60, "stop": ["France"], "return_token_ids": True}
    whole = post(server, path, **asked).json()["choices"][0]
    streamed = events(post(server, path, **asked, stream=True, stream_options={"include_usage": True}))
    choices = [event["choices"][0] for event in streamed[:-1]]
    text = "".join(choice["delta"]["content"] if chat else choice["text"] for choice in choices)
    assert text == (whole["message"]["content"] if chat else whole["text"])
    assert [i for choice in choices for i in choice.get("token_ids") or []] == whole["token_ids"]
    assert (choices[-1]["finish_reason"], choices[-1]["stop_reason"]) == ("stop", "France")
    assert streamed[-1]["usage"]["completion_tokens"] == len(whole["token_ids"])


def test_several_prompts_and_samples_come_back_in_order() -> None:
    with LMServer(lambda prompt, body: f"<{prompt}>") as server:
        answer = post(server, "/v1/completions", prompt=["a", "b"], n=2).json()
        assert [choice["text"] for choice in answer["choices"]] == ["<a>", "<a>", "<b>", "<b>"]
        assert answer["usage"]["prompt_tokens"] == 2


def test_rules_and_scripts() -> None:
    with LMServer([("capital", "Paris"), ("", "No idea")]) as server:
        assert complete(server, "What is the capital?")["choices"][0]["text"] == "Paris"
        assert complete(server, "Well?")["choices"][0]["text"] == "No idea"
    with LMServer(scripted("one", "two")) as server:
        assert [complete(server, "x")["choices"][0]["text"] for _ in range(2)] == ["one", "two"]
        assert "All 2 replies are used up" in error(post(server, "/v1/completions", prompt="x"))[1]
        assert isinstance(server.errors[0], LookupError)
