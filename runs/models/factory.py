"""One small factory: `--model` and `--base-url` become a DSPy LM.

`local` and GGUF paths run in this process; `hosted_vllm/NAME` speaks vLLM's completions; anything else is handed to
DSPy and LiteLLM through chat.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from programs.language_model import CANONICAL
from retrieval.cache import Cache
from runs.home import Home
from runs.models.engine import AsyncEngine, EngineCore, SyncEngine
from runs.models.replies import server_facts_through
from runs.models.weights import QWEN, SMOLLM2, find_weights, is_present
from signatures.errors import ModelError
from signatures.profiles import ModelProfile, profile_for


@dataclass(frozen=True)
class Model:
    """A language model ready for chains.

    Attributes:
        lm: DSPy's LM.
        profile: How the model wants to be asked.
        core: Our engine, or None for models that DSPy reaches itself.
        name: Name for journals and reports.
        identity: What changes its replies.
    """

    lm: Any
    profile: ModelProfile
    core: EngineCore | None
    name: str
    identity: str


def is_local(model: str) -> bool:
    """Say whether a model name means the embedded engine."""
    return model == "local" or model.startswith("local:") or model.endswith(".gguf")


def make_model(
    model: str = "local",
    base_url: str | None = None,
    *,
    cache: Cache | None = None,
    home: Home | None = None,
    context_length: int | None = None,
    revision: str = "",
    profile: dict[str, Any] | None = None,
    retry_seconds: float = 600.0,
    **sampling: Any,
) -> Model:
    """Build a language model from its name.

    Args:
        model: `local`, `local:1.5b`, a GGUF path, `hosted_vllm/NAME`, or any name LiteLLM knows.
        base_url: Address of an OpenAI-compatible API, ending in `/v1`. With a name that has no provider, vLLM is
            assumed.
        cache: Where model replies are kept, or None to keep none; its policy says whether this is a replay, which asks
            no server.
        home: Home folder; by default the user's.
        context_length: Context in tokens; None asks the server or the profile.
        revision: Model revision, for the identity of cached replies.
        profile: Fields of the model profile to override.
        retry_seconds: How long a failing vLLM server is tried again.
        **sampling: Sampling fields (temperature, top_p, ...); None values are left out.

    Returns:
        The model.

    Raises:
        ModelError: Weights or server are missing, or in a replay what the server told; the text says the way out.
    """
    given = {name: value for name, value in sampling.items() if value is not None}
    replay = cache is not None and cache.policy.replay
    if is_local(model):
        from runs.models.local import LocalCore

        folder = (home or Home()).models
        if replay and not is_present(model, folder):
            raise ModelError(
                f"Replay: the weights of {model!r} are not in {folder}, and a replay fetches nothing; run the model "
                "once without --replay."
            )
        path = find_weights(model, folder)
        found = _with_sampling(profile_for(path.stem, **(profile or {})), given)
        local = LocalCore(path, found, cache, context_length)
        label = {"local": SMOLLM2.name, "local:1.5b": QWEN.name}.get(model, Path(path).stem)
        return _own(f"local/{label}", local, found)
    if model.startswith("hosted_vllm/") or (base_url and "/" not in model):
        from runs.models.vllm import VLLMCore, server_facts

        url = base_url or os.environ.get("HOSTED_VLLM_API_BASE") or "http://127.0.0.1:8000/v1"
        wanted = model.removeprefix("hosted_vllm/")
        served, told, weights = server_facts_through(
            cache, url, wanted, lambda: server_facts(url, wanted, os.environ.get("VLLM_API_KEY", ""))
        )
        found = _with_sampling(profile_for(served, **(profile or {})), given)
        vllm = VLLMCore(
            url,
            served,
            found,
            cache,
            context_length=context_length or told,
            revision=revision or weights,
            retry_seconds=retry_seconds,
        )
        return _own(f"hosted_vllm/{served}", vllm, found)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    found = profile_for(model, **{"context_length": context_length, **(profile or {})})
    extra: dict[str, Any] = {"api_base": base_url} if base_url else {}
    options = {**found.sampling, **given, **extra}
    if cache is None:
        return Model(dspy.LM(model, cache=False, **options), found, None, model, f"litellm:{model}:{revision}")
    from runs.models.cached_lm import CachedLM

    lm = CachedLM(model, cache, revision, cache=True, **options)
    return Model(lm, found, None, model, f"litellm:{model}:{revision}")


def _with_sampling(profile: ModelProfile, given: dict[str, Any]) -> ModelProfile:
    return profile.override(sampling={**profile.sampling, **given})


def _own(name: str, core: EngineCore, profile: ModelProfile) -> Model:
    # DSPy's own predictors refuse fields that their request lacks; the core adds those from the profile.
    known = {field: value for field, value in profile.sampling.items() if field in CANONICAL}
    # Retries and caching live in the core; DSPy's own would repeat a long chain or miss the server's identity.
    lm = dspy.LM(name, engine=SyncEngine(core), async_engine=AsyncEngine(core), cache=False, num_retries=0, **known)
    return Model(lm, profile, core, name, core.identity())
