"""Model profiles: how a language model wants to be asked, one small table matched by name.

A profile says whether a prompt goes through a chat template or as raw text with inline demos, whether the model reasons
by itself, how a chain is continued, and which sampling it was published with. Every field can be overridden by options.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from signatures.errors import OptionError

Style = Literal["chat", "completion"]
Continuation = Literal["prefix", "user"]


@dataclass(frozen=True)
class ModelProfile:
    r"""How one family of models is asked.

    Attributes:
        name: Short name; compiled programs are filed under it.
        pattern: Shell pattern matched against the lower-cased last part of the model's name.
        style: `chat` renders the chat template with demos as earlier turns; `completion` sends raw text with demos
            inline.
        compact: For models too small to read records: documents become `title: text`, and Reason-in-Documents is shown
            query and pages only.
        nearest_demos: Show only this many demos, those most like the question; None shows all.
        reasoning: True for a model that reasons by itself (no think-step-by-step sentence).
        think_prefix: Text the chat template puts before the reasoning (`<think>\\n`); empty when the template has none.
            Informative: the served template decides, and what it ends in is part of the prefix.
        continuation: `prefix` continues the assistant turn from the exact text; `user` gives the chain so far in a user
            turn.
        sampling: Sampling fields used when neither the LM nor an option sets them.
        context_length: Context in tokens when the server does not tell.
        repetition_penalty: What `--paper` uses for reasoning turns (section 4.3 and the authors' scripts).
        turn_tokens: Tokens a turn that `--paper` uses: on long tasks (AIME, AMC, LiveCodeBench) and elsewhere.
    """

    name: str
    pattern: str
    style: Style = "chat"
    compact: bool = False
    nearest_demos: int | None = None
    reasoning: bool = False
    think_prefix: str = ""
    continuation: Continuation = "prefix"
    sampling: dict[str, Any] = field(default_factory=dict)
    context_length: int = 32_768
    repetition_penalty: float = 1.0
    turn_tokens: tuple[int, int] = (8_192, 8_192)

    def override(self, **changes: Any) -> ModelProfile:
        """Return a copy with some fields replaced; None means unchanged.

        Args:
            **changes: Field names and their new values.

        Returns:
            The changed profile.

        Raises:
            OptionError: A name is not a field of the profile, or style or continuation are unknown.
        """
        known = {f.name for f in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise OptionError(f"Unknown profile field {unknown[0]!r}; known fields: {', '.join(sorted(known))}.")
        for name, allowed in (("style", get_args(Style)), ("continuation", get_args(Continuation))):
            if changes.get(name) is not None and changes[name] not in allowed:
                raise OptionError(f"Profile field {name} = {changes[name]!r}: known are {', '.join(allowed)}.")
        return replace(self, **{key: value for key, value in changes.items() if value is not None})


_QWQ_SAMPLING = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05}
_PAPER_SAMPLING = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}

PROFILES: tuple[ModelProfile, ...] = (
    ModelProfile(
        "qwq-32b-preview",
        "qwq-32b-preview*",
        reasoning=True,
        sampling=_QWQ_SAMPLING,
        repetition_penalty=1.05,
        turn_tokens=(32_768, 20_480),
    ),
    ModelProfile(
        "qwq-32b",
        "qwq*",
        reasoning=True,
        think_prefix="<think>\n",
        sampling=_QWQ_SAMPLING,
        context_length=40_960,
        repetition_penalty=1.05,
        turn_tokens=(32_768, 20_480),
    ),
    ModelProfile(
        "deepseek-r1",
        "deepseek-r*",
        reasoning=True,
        think_prefix="<think>\n",
        sampling=_PAPER_SAMPLING,
        context_length=131_072,
    ),
    ModelProfile(
        "smollm2-135m",
        "*smollm2-135m*",
        style="completion",
        compact=True,
        nearest_demos=3,
        sampling={"temperature": 0.0},
        context_length=8_192,
    ),
    ModelProfile("qwen2.5-1.5b", "*qwen2.5*1.5b*", style="completion", sampling={"temperature": 0.0}),
    ModelProfile(
        "qwen3",
        "qwen3*",
        reasoning=True,
        think_prefix="<think>\n",
        sampling={"temperature": 0.6, "top_p": 0.95, "top_k": 20},
    ),
    ModelProfile("qwen2.5", "*qwen2.5*", sampling=_PAPER_SAMPLING),
    ModelProfile("llama-3", "*llama*3*", sampling=_PAPER_SAMPLING, context_length=131_072),
    ModelProfile("o-series", "o[134]*", reasoning=True, continuation="user", context_length=128_000),
    ModelProfile("gpt", "gpt*", continuation="user", context_length=128_000),
    ModelProfile("claude", "claude*", continuation="user", context_length=200_000),
    ModelProfile("gemini", "gemini*", continuation="user", context_length=1_000_000),
)
"""The table; the first pattern that matches wins."""

UNKNOWN = ModelProfile("model", "*", sampling={})
"""Used for a name that no pattern matches: a chat model that does not reason by itself."""


def profile_for(model: str, **overrides: Any) -> ModelProfile:
    """Find the profile of a model by its name.

    Args:
        model: Model name, provider prefix allowed (`hosted_vllm/Qwen/QwQ-32B`, `local`, a path to a GGUF file).
        **overrides: Profile fields to replace; None means unchanged.

    Returns:
        The matching profile with the overrides applied.

    Raises:
        OptionError: An override names no field.
    """
    last = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    found = next((p for p in PROFILES if fnmatch.fnmatchcase(last, p.pattern)), UNKNOWN)
    return found.override(**overrides)
