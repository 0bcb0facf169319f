"""Model profiles: which one a name gets, and what it says."""

from __future__ import annotations

import pytest

from signatures.errors import OptionError
from signatures.profiles import PROFILES, profile_for


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("hosted_vllm/Qwen/QwQ-32B", "qwq-32b"),
        ("QwQ-32B-Preview", "qwq-32b-preview"),
        ("QwQ-32B-AWQ", "qwq-32b"),
        ("local/SmolLM2-135M-Instruct", "smollm2-135m"),
        ("C:\\models\\SmolLM2-135M-Instruct-Q8_0.gguf", "smollm2-135m"),
        ("/models/qwen2.5-1.5b-instruct", "qwen2.5-1.5b"),
        ("Qwen/Qwen2.5-32B-Instruct", "qwen2.5"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3"),
        ("openai/gpt-4o-mini", "gpt"),
        ("openai/o3-mini", "o-series"),
        ("anthropic/claude-sonnet-4", "claude"),
        ("something-else", "model"),
    ],
)
def test_a_name_finds_its_profile(model, name) -> None:
    assert profile_for(model).name == name


def test_qwq_reasons_by_itself_and_has_the_papers_sampling() -> None:
    qwq = profile_for("Qwen/QwQ-32B")
    assert (qwq.reasoning, qwq.style, qwq.continuation, qwq.think_prefix) == (True, "chat", "prefix", "<think>\n")
    assert qwq.sampling == {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05}
    assert profile_for("QwQ-32B-Preview").think_prefix == ""


def test_small_local_models_are_raw_completions() -> None:
    assert profile_for("local/SmolLM2-135M-Instruct").style == "completion"


def test_an_unknown_name_is_a_chat_model_that_does_not_reason() -> None:
    unknown = profile_for("x/y")
    assert (unknown.style, unknown.reasoning, unknown.sampling) == ("chat", False, {})


def test_overrides_replace_fields_and_none_leaves_them() -> None:
    assert profile_for("QwQ", style="completion", reasoning=None).reasoning is True
    assert profile_for("QwQ", style="completion").style == "completion"


def test_an_override_of_no_field_is_refused() -> None:
    with pytest.raises(OptionError, match=r"'stile'; known fields: .*style"):
        profile_for("QwQ", stile="chat")


def test_names_in_the_table_are_unique() -> None:
    assert len({profile.name for profile in PROFILES}) == len(PROFILES)
