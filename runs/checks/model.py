"""The language model: weights, what the server serves, the length of its context, the key of a provider."""

from __future__ import annotations

import os

from runs.checks.check import Check, guarded
from runs.home import Home
from runs.models.factory import is_local
from runs.models.vllm import server_facts
from runs.models.weights import QWEN, SMOLLM2, find_weights, is_present, sha256_of
from signatures.profiles import profile_for

DEFAULT_VLLM = "http://127.0.0.1:8000/v1"


def check_model(model: str, base_url: str | None, home: Home) -> list[Check]:
    """Look at the language model of a run.

    Args:
        model: As for `--model`.
        base_url: As for `--base-url`.
        home: Home folder.

    Returns:
        Findings on the model, and on its context where a server tells.
    """
    if is_local(model):
        return [guarded("model", lambda: _weights(model, home), "check the network, or --model")]
    if model.startswith("hosted_vllm/") or (base_url and "/" not in model):
        return _served(model.removeprefix("hosted_vllm/"), base_url)
    return [guarded("model", lambda: _provider(model), "see LiteLLM's documentation of the provider")]


def _weights(model: str, home: Home) -> Check:
    if not is_present(model, home.models):
        return Check("model", "off", f"the weights of {model} are fetched into {home.models} by the first run")
    path = find_weights(model, home.models)
    known = {SMOLLM2.file: SMOLLM2.sha256, QWEN.file: QWEN.sha256}.get(path.name, "")
    if known and sha256_of(path) != known:
        return Check(
            "model", "wrong", f"{path} is damaged (its SHA-256 is another)", f"remove {path}: it is fetched again"
        )
    return Check("model", "ok", f"{path.name}, {path.stat().st_size / 1e6:.0f} MB{', checksum right' if known else ''}")


def _served(model: str, base_url: str | None) -> list[Check]:
    url = base_url or os.environ.get("HOSTED_VLLM_API_BASE") or DEFAULT_VLLM
    told: list[Check] = []

    def look() -> Check:
        served, context, _ = server_facts(url, model, os.environ.get("VLLM_API_KEY", ""))
        wanted = profile_for(served).context_length
        if context is None:
            told.append(Check("context", "ok", f"the server does not tell; {wanted:,} tokens are assumed"))
        elif context < wanted:
            text = f"the server was started with {context:,} tokens, {served} is meant for {wanted:,}"
            told.append(Check("context", "wrong", text, f"search-o1 serve {served} --context-length {wanted}"))
        else:
            told.append(Check("context", "ok", f"{context:,} tokens"))
        return Check("model", "ok", f"{served} at {url}")

    return [guarded("model", look), *told]


def _provider(model: str) -> Check:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    found = litellm.validate_environment(model)
    missing = found.get("missing_keys") or []
    if missing:
        return Check("model", "wrong", f"{model}: not set: {', '.join(missing)}", f"export {missing[0]}=...")
    return Check("model", "ok", f"{model}: the keys its provider needs are set (no call was made)")
