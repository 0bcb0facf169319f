"""`--model` and `--base-url` become a language model."""

from __future__ import annotations

import pytest

from retrieval.cache import Cache
from runs.models.factory import make_model
from signatures.errors import ModelError, OptionError
from tests.servers.lm import LMServer
from tests.servers.lm_client import echo


def test_a_served_model_tells_its_name_and_context() -> None:
    with LMServer(echo, max_model_len=4_096) as server:
        found = make_model("hosted_vllm/QwQ", server.base_url)
        assert (found.name, found.core.context_length, found.identity) == (
            "hosted_vllm/QwQ",
            4_096,
            "vllm:QwQ:models/QwQ",
        )
        assert make_model("QwQ", server.base_url).name == "hosted_vllm/QwQ"
        assert make_model("hosted_vllm/", server.base_url).name == "hosted_vllm/QwQ"
        assert make_model("hosted_vllm/QwQ", server.base_url, context_length=512).core.context_length == 512
        assert make_model("hosted_vllm/QwQ", server.base_url, revision="r1").identity == "vllm:QwQ:r1"
        with pytest.raises(ModelError, match="does not serve 'Other'; it serves: QwQ"):
            make_model("hosted_vllm/Other", server.base_url)


def test_a_server_that_wants_a_key_gets_it_and_a_missing_one_is_said(monkeypatch) -> None:
    with LMServer(echo, api_key="k-123") as server:
        with pytest.raises(ModelError, match="refused the key; set VLLM_API_KEY") as refused:
            make_model("hosted_vllm/QwQ", server.base_url)
        monkeypatch.setenv("VLLM_API_KEY", "k-wrong")
        with pytest.raises(ModelError) as refused:
            make_model("hosted_vllm/QwQ", server.base_url)
        assert "k-wrong" not in str(refused.value)
        with pytest.raises(ModelError) as refused:
            make_model("hosted_vllm/QwQ", server.base_url.replace("://", "://user:s3cret@"))
        assert "s3cret" not in str(refused.value)
        monkeypatch.setenv("VLLM_API_KEY", "k-123")
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base_url)
        assert make_model("hosted_vllm/QwQ").lm("Hi", max_tokens=4)


def test_sampling_given_goes_over_the_profiles() -> None:
    with LMServer(echo) as server:
        found = make_model("hosted_vllm/QwQ", server.base_url, temperature=0.1, top_p=None)
        assert (found.profile.sampling["temperature"], found.profile.sampling["top_p"]) == (0.1, 0.8)
        found.lm("Hi", max_tokens=4)
        body = server.calls[0].body
        assert (body["temperature"], body["top_p"], body["top_k"], body["repetition_penalty"]) == (0.1, 0.8, 20, 1.05)


def test_any_other_name_goes_to_dspy_with_its_profile(tmp_path) -> None:
    found = make_model(
        "openai/gpt-test", "http://127.0.0.1:9/v1", cache=Cache(tmp_path / "c"), context_length=999, temperature=0.5
    )
    assert (found.core, found.profile.name, found.profile.context_length) == (None, "gpt", 999)
    assert (found.lm.kwargs["api_base"], found.lm.kwargs["temperature"], found.lm.cache) == (
        "http://127.0.0.1:9/v1",
        0.5,
        True,
    )
    assert make_model("openai/gpt-test").lm.cache is False


def test_profile_fields_can_be_overridden_and_unknown_ones_are_refused() -> None:
    assert make_model("openai/gpt-test", profile={"continuation": "prefix"}).profile.continuation == "prefix"
    with pytest.raises(OptionError, match="Unknown profile field 'colour'"):
        make_model("openai/gpt-test", profile={"colour": "red"})
