"""The models beside the one that is optimised for: the teacher that demos come from, and the one that proposes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import dspy

from runs.assembly import assemble_model
from runs.home import Home
from runs.models.factory import Model
from runs.optimizing.settings import OptimizeSettings
from runs.retrieval_setup import Say, cache_policy
from signatures.errors import OptionError

_SHARE_OF_CONTEXT = 4
_MOST_TOKENS = 4_096


class ProposingLM(dspy.LM):  # type: ignore[misc]
    """An LM on one of our engines whose samples can be repeated.

    DSPy tells samples of one prompt apart by rollout id and by number, neither of which reaches an engine. Each sample
    gets a seed made of both and of the prompt, so that the engine's cache keeps it.

    Args:
        model: Name for journals.
        run_seed: Seed of the optimisation.
        **options: As for `dspy.LM`.
    """

    def __init__(self, model: str, run_seed: int, **options: Any) -> None:
        super().__init__(model, **options)
        self.run_seed = run_seed

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer as `dspy.LM` does, with a seed for each sample."""
        if prompt is not None and not isinstance(prompt, str):
            return super().__call__(prompt, messages=messages, **kwargs)
        return [
            output
            for sample in range(self._samples(kwargs))
            for output in super(ProposingLM, self).__call__(
                prompt, messages=messages, **self._seeded(prompt, messages, kwargs, sample)
            )
        ]

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer on the running event loop as `__call__` does."""
        if prompt is not None and not isinstance(prompt, str):
            return await super().acall(prompt, messages=messages, **kwargs)
        outputs: list[Any] = []
        for sample in range(self._samples(kwargs)):
            seeded = self._seeded(prompt, messages, kwargs, sample)
            outputs += await super().acall(prompt, messages=messages, **seeded)
        return outputs

    def _samples(self, kwargs: dict[str, Any]) -> int:
        return int(kwargs.get("n") or self.kwargs.get("n") or 1)

    def _seeded(self, prompt: Any, messages: Any, kwargs: dict[str, Any], sample: int) -> dict[str, Any]:
        rollout = kwargs.get("rollout_id", self.kwargs.get("rollout_id"))
        asked = json.dumps([prompt, messages], ensure_ascii=False, sort_keys=True, default=str)
        digest = hashlib.sha256(
            f"{self.run_seed}\x1f{rollout}\x1f{sample}\x1f{asked}".encode("utf-8", "replace")
        ).digest()
        return {**kwargs, "n": 1, "seed": int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF}


def teaching_lm(settings: OptimizeSettings, home: Home, say: Say) -> Any | None:
    """Return the LM of `--teacher`.

    Args:
        settings: `teacher` and what else says how models are reached.
        home: Home folder.
        say: Called with a line for the user.

    Returns:
        The LM, or None when there is no teacher.

    Raises:
        OptionError: The text names no model.
        ModelError: Weights or server are missing.
    """
    if settings.teacher is None:
        return None
    return _model_of(settings.teacher, "--teacher", settings, home, say).lm


def proposing_lm(settings: OptimizeSettings, home: Home, model: Model, say: Say) -> Any:
    """Return the LM that proposes instructions: that of `--reflection`, else the model itself.

    Args:
        settings: `reflection` and what else says how models are reached.
        home: Home folder.
        model: The model that is optimised for.
        say: Called with a line for the user.

    Returns:
        An LM whose replies are kept in the cache, so that a second start asks for none of them again.

    Raises:
        OptionError: The text names no model.
        ModelError: Weights or server are missing.
    """
    named = settings.reflection
    found = model if named is None else _model_of(named, "--reflection", settings, home, say)
    if found.core is None:
        return found.lm
    most = min(_MOST_TOKENS, (found.core.context_length or found.profile.context_length) // _SHARE_OF_CONTEXT)
    return ProposingLM(
        found.lm.model,
        settings.seed,
        engine=found.lm._engine_spec,
        async_engine=found.lm._async_engine_spec,
        cache=False,
        num_retries=0,
        max_tokens=most,
    )


def parse_role(text: str, flag: str) -> tuple[str, str | None]:
    """Read how a second model is named.

    Args:
        text: `NAME`, an address, or `NAME@ADDRESS`.
        flag: The option, for errors.

    Returns:
        (model name, address or None); an address alone takes the first model that its server serves.

    Raises:
        OptionError: There is no name and no address.
    """
    text = text.strip()
    if text.startswith(("http://", "https://")):
        return "hosted_vllm/", text
    name, at, address = text.partition("@http")
    if not name.strip() or (at and not address.strip(":/s")):
        raise OptionError(f"{flag} {text!r}: give a model name, an address ending in /v1, or NAME@ADDRESS.")
    return name.strip(), f"http{address}" if at else None


def _model_of(text: str, flag: str, settings: OptimizeSettings, home: Home, say: Say) -> Model:
    name, address = parse_role(text, flag)
    changed = {"model": name, "base_url": address, "context_length": None, "revision": "", "temperature": None}
    asked = settings.model_copy(update={**changed, "profile": {}})
    return assemble_model(asked, home, say, policy=cache_policy(settings))
