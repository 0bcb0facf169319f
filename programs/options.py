"""The options of a chain, typed and validated once; unknown keys are refused."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from signatures.errors import OptionError
from signatures.examples import ExampleKind
from signatures.profiles import ModelProfile
from signatures.templates import Language, Method, Task


class ChainOptions(BaseModel):
    """Everything that changes how a chain runs, apart from the language model and the retrieval behind it.

    Attributes:
        task: Task kind: chooses the task template and the answer format.
        language: Language of templates and messages.
        example: Which example the templates show; None means the task's own.
        max_searches: Searches a question (section 3 of the design: 5 single-hop, 10 multi-hop).
        max_turns: Generations a question; None means 15 for open QA and 10 for other tasks.
        max_fetches: Pages the RAG agent may fetch.
        top_k: Hits a search.
        turn_tokens: Most tokens a turn.
        chain_tokens: Most generated tokens a chain; None switches the limit off.
        min_turn_tokens: A turn with less room than this is not begun, and an injected block leaves at least this much.
        refine_tokens: Output that fitting keeps free for Reason-in-Documents; it may use up to `turn_tokens` where
            there is room.
        context_chars: Characters either side of the best sentence of a page; a page without one gives its first twice
            as many.
        page_chars: A page is cut to this many characters before its window is taken; None means the method's own
            default (50,000 for windows, 8,000 for full pages).
        context_length: Context in tokens; None means what the server or the profile says.
        stop_loops: End a turn that repeats a passage of 200 characters four times (ours; off in the paper's setting).
        force_answer: Give a chain that ran out of turns, context or length one short turn for its box (ours; off by
            default).
        show_starter_code: Show a code problem's starter code (ours; off in the paper's setting).
        open_urls: Let the RAG agent fetch addresses that no search returned.
        sampling: Sampling fields for the reasoning turns, over those of the LM.
        refine_sampling: Sampling fields for Reason-in-Documents, over those of the LM.
        profile: Fields of the model profile to override.
        seed: Run seed; enters the sampling seed of every call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: Task = "open_qa"
    language: Language = "en"
    example: ExampleKind | None = None
    max_searches: int = Field(10, ge=0)
    max_turns: int | None = Field(None, ge=1)
    max_fetches: int = Field(5, ge=0)
    top_k: int = Field(10, ge=1, le=100)
    turn_tokens: int = Field(8_192, ge=1)
    chain_tokens: int | None = Field(None, ge=1)
    min_turn_tokens: int = Field(64, ge=1)
    refine_tokens: int = Field(1_024, ge=1)
    context_chars: int = Field(3_000, ge=1)
    page_chars: int | None = Field(None, ge=1)
    context_length: int | None = Field(None, ge=64)
    stop_loops: bool = True
    force_answer: bool = False
    show_starter_code: bool = True
    open_urls: bool = False
    sampling: dict[str, Any] = Field(default_factory=dict)
    refine_sampling: dict[str, Any] = Field(default_factory=dict)
    profile: dict[str, Any] = Field(default_factory=dict)
    seed: int = 0

    @property
    def turns(self) -> int:
        """Generations a question, the task's default filled in."""
        return self.max_turns or (15 if self.task == "open_qa" else 10)


COMPACT_OPTIONS: dict[str, Any] = {
    "top_k": 1,
    "context_chars": 300,
    "max_searches": 3,
    "max_turns": 5,
    "max_fetches": 2,
    "turn_tokens": 80,
    "min_turn_tokens": 16,
    "refine_tokens": 80,
    "page_chars": 600,
    "sampling": {"temperature": 0.0},
    "refine_sampling": {"temperature": 0.0},
}
"""What a compact profile is run with: greedy, one hit a search, short windows, short turns. Not the paper's setting."""

COMPACT_NOTE = "Small-model profile: greedy, top_k 1, short windows, at most 80 tokens a turn. Not the paper's setting."
"""Said before an evaluation with `COMPACT_OPTIONS`."""


def make_options(options: ChainOptions | None = None, **changes: Any) -> ChainOptions:
    """Build options from a base and keyword changes.

    Args:
        options: The base, or None for the defaults.
        **changes: Fields to set.

    Returns:
        Validated options.

    Raises:
        OptionError: A name is unknown or a value impossible; the text names the field, the value and what is allowed.
    """
    merged = {**(options.model_dump(exclude_unset=True) if options else {}), **changes}
    try:
        return ChainOptions(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise OptionError(
                f"Unknown option {name!r}; known options: {', '.join(sorted(ChainOptions.model_fields))}."
            ) from None
        raise OptionError(f"Option {name} = {first.get('input')!r}: {first['msg']}.") from None


_LONG = ("aime24", "amc23", "livecodebench")


def paper_options(
    method: Method,
    profile: ModelProfile,
    task: Task = "open_qa",
    *,
    benchmark: str = "",
    multi_hop: bool = True,
    **changes: Any,
) -> ChainOptions:
    """Return the settings as the authors ran them (section 4.3, their scripts and README; design section 3).

    Args:
        method: The method.
        profile: The model's profile: QwQ gets a repetition penalty of 1.05 and longer turns.
        task: Task kind.
        benchmark: Name of the benchmark; AIME, AMC and LiveCodeBench have longer turns.
        multi_hop: True for multi-hop QA, which has 10 searches instead of 5.
        **changes: Fields to set on top.

    Returns:
        Validated options.

    Raises:
        OptionError: A change has an unknown name or an impossible value.
    """
    paused = method in ("search_o1", "rag_agent")
    turn_tokens = profile.turn_tokens[0 if benchmark in _LONG else 1] if paused else 32_768
    base: dict[str, Any] = {
        "task": task,
        "max_searches": 10 if method == "search_o1" and task == "open_qa" and multi_hop else 5,
        "max_turns": 10 if method == "rag_agent" or task != "open_qa" else 15,
        "max_fetches": 5,
        "top_k": 5 if method == "rag_agent" and task == "open_qa" else 10,
        "turn_tokens": turn_tokens,
        "chain_tokens": None,
        "context_chars": 3_000,
        "page_chars": 8_000,
        "stop_loops": False,
        "force_answer": False,
        "show_starter_code": False,
        "sampling": {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": profile.repetition_penalty},
        "refine_sampling": {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05},
    }
    if task == "open_qa":
        base["example"] = "multi_hop" if multi_hop else "single_hop"
    return make_options(None, **{**base, **changes})
