"""Whether a candidate's prompts still follow the protocol; those that do not are rejected before they cost a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from programs.base import Program
from programs.language_model import ChainModel
from runs.models.factory import Model
from runs.optimizing.demos import predictors_of
from runs.optimizing.whole_demos import is_complete, is_whole
from signatures.layout import Layout
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_URL, END_SEARCH_QUERY, END_URL, MARKERS, neutralise

MOST_CHARS = 8_000
"""Characters of instructions; a longer proposal has copied its inputs. Smaller for a short context."""

_WANTED: dict[str, tuple[str, ...]] = {
    "search_o1": (BEGIN_SEARCH_QUERY, END_SEARCH_QUERY, "{max_search_limit}"),
    "rag_agent": (
        BEGIN_SEARCH_QUERY,
        END_SEARCH_QUERY,
        "{max_search_limit}",
        BEGIN_URL,
        END_URL,
        "{max_url_fetch}",
    ),
}
_NOT_ANSWERED: dict[str, tuple[str, ...]] = {
    "direct": (BEGIN_SEARCH_QUERY, BEGIN_URL),
    "standard_rag": (BEGIN_SEARCH_QUERY, BEGIN_URL),
    "search_o1": (BEGIN_URL,),
}
"""Requests that the program of a method does not stop for."""

_FIXED_SLOTS = frozenset(
    {"max_search_limit", "max_url_fetch", "think"}
    | {"example_question", "example_need", "example_query", "example_url"}
)
_QUESTION_SLOTS: dict[str, frozenset[str]] = {
    "direct": frozenset({"question"}),
    "standard_rag": frozenset({"question", "documents"}),
    "rag_agent": frozenset({"question"}),
    "search_o1": frozenset({"question"}),
    "refine_docs": frozenset({"prev_reasoning", "search_query", "document"}),
}
# `\boxed{answer}` and `x^{max}` hold no slot.
_SLOT = re.compile(r"(?<![\\\w}^$])\{([a-z]+(?:_[a-z]+)*)\}")
_HEADING = re.compile(r"Final Information|最终信息", re.IGNORECASE)
_TOKEN = re.compile(r"[<\[][^>\]]{0,62}[>\]]")
_THINK = re.compile(r"</?think>")


class ProtocolGate:
    """Tells candidates that lost the protocol from those that may run.

    A predictor that is as the start left it passes: what the start lacks cannot be lost.

    Args:
        start: The program that is improved.
        model: The model that will be asked; its context bounds the length of instructions.
    """

    def __init__(self, start: Program, model: Model) -> None:
        asked = ChainModel(model.lm, start.options.profile, start.options.context_length)
        self._start = {name: (p.signature.instructions, list(p.demos)) for name, p in predictors_of(start)}
        longest = max((len(text) for text, _ in self._start.values()), default=0)
        self._most_chars = max(min(MOST_CHARS, asked.context_length), 2 * longest)
        # Raw completion shows the instructions once, before all questions.
        self._inline = asked.profile.style == "completion"

    def check(self, program: Program) -> str:
        """Check a candidate.

        Args:
            program: The candidate's program.

        Returns:
            The first reason why it would not work, or an empty text.
        """
        for name, predictor in predictors_of(program):
            text, demos = predictor.signature.instructions, list(predictor.demos)
            old_text, old_demos = self._start[name]
            if text != old_text:
                reason = self._instructions(predictor.layout, text, old_text)
                if reason:
                    return f"{name}: {reason}"
            if text != old_text or demos != old_demos:
                reason = self._shown(predictor.layout, text, demos)
                if reason:
                    return f"{name}: {reason}"
        return ""

    def _instructions(self, layout: Layout, text: str, old: str) -> str:
        method = layout.method
        if not text.strip():
            return "the instructions are empty"
        if len(text) > self._most_chars:
            return f"the instructions have {len(text):,} characters, more than {self._most_chars:,}"
        lost = [part for part in _WANTED.get(method, ()) if part in old and part not in text]
        if lost:
            return f"the instructions lost {_names(lost)}"
        alien = [marker for marker in _NOT_ANSWERED.get(method, ()) if marker in text and marker not in old]
        if alien:
            return f"the instructions ask for {_names(alien)}, which {method} does not answer"
        if token := _special_token(text):
            return f"the instructions hold {token}, which is no marker of this protocol"
        slots = self._slots(layout)
        unknown = [slot for slot in _SLOT.findall(text) if slot not in slots and f"{{{slot}}}" not in old]
        if unknown:
            return f"the instructions hold {_names(f'{{{slot}}}' for slot in unknown)}, which nothing fills"
        return ""

    def _slots(self, layout: Layout) -> frozenset[str]:
        """Return the slots that are filled; raw completion drops paragraphs of standard RAG that hold a question's."""
        if self._inline and layout.method != "standard_rag":
            return _FIXED_SLOTS
        return _FIXED_SLOTS | _QUESTION_SLOTS[layout.method] | ({"question_title"} if layout.task == "code" else set())

    def _shown(self, layout: Layout, text: str, demos: list[Mapping[str, Any]]) -> str:
        complete = [demo for demo in demos if is_complete(demo, layout.method)]
        if layout.method == "refine_docs":
            # Every demo is shown with its heading.
            if not complete and not _HEADING.search(text):
                return "neither the instructions nor a demo show the heading **Final Information**"
            return ""
        if complete and not any(is_whole(demo, layout.method, layout.task) for demo in complete):
            ending = "a Python code block" if layout.task == "code" else "an answer in \\boxed{...}"
            return f"none of its {len(complete)} demos is a whole chain that ends in {ending}"
        return ""


def _special_token(text: str) -> str:
    """Return the first special token that is no marker of the protocol, or empty; think tags do no harm in a prompt."""
    for marker in MARKERS:
        text = text.replace(marker, " ")
    text = _THINK.sub(" ", text)
    harmless = neutralise(text)
    if harmless == text:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(text, harmless, strict=False)) if a != b), 0)
    # Of `<|name|>` the bar is the first character that changes.
    rest = text[at - 1 :] if text[at] in "|｜" else text[at:]
    shown = _TOKEN.match(rest)
    return repr(shown.group() if shown is not None else rest[:1])


def _names(parts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(parts))
