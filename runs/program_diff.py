"""Two compiled programs beside each other: what their prompts say, which demos they share, how they came about."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from programs.saving import CompiledProgram
from runs.home import Home
from runs.program_listing import Demo, ListedProgram, flat_metadata, listed
from runs.program_store import read_program

Kind = Literal["same", "a", "b"]

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_PAIRS = 4_000_000
"""From here on lines are matched instead of words, which would take seconds."""


@dataclass(frozen=True)
class Segment:
    """A stretch of text.

    Attributes:
        kind: `same` for what both have, `a` and `b` for what only one has.
        text: The text.
    """

    kind: Kind
    text: str


@dataclass(frozen=True)
class ChangedDemo:
    """A demo that both programs have for the same question, or the same query, but tell differently.

    Attributes:
        key: The question or query.
        fields: Field to its text in both, for the fields that differ.
    """

    key: str
    fields: dict[str, tuple[Segment, ...]]


@dataclass(frozen=True)
class PredictorDiff:
    """One predictor of two programs.

    Attributes:
        name: The predictor: `reason` or `refine`.
        only: `a` or `b` where only one program has it, else empty.
        instructions: The prompt text of both; one stretch `same` where it is the same.
        same_demos: Number of demos that are the same.
        changed: Demos that differ.
        only_a: Demos of the first program alone.
        only_b: Demos of the second program alone.
    """

    name: str
    only: str
    instructions: tuple[Segment, ...]
    same_demos: int
    changed: tuple[ChangedDemo, ...]
    only_a: tuple[Demo, ...]
    only_b: tuple[Demo, ...]

    @property
    def same_instructions(self) -> bool:
        """Whether both prompt texts are the same."""
        return all(segment.kind == "same" for segment in self.instructions)


@dataclass(frozen=True)
class ProgramDiff:
    """Two compiled programs beside each other.

    Attributes:
        a: The first.
        b: The second.
        same_prompts: Whether both send the same, whatever their metadata say.
        metadata: What differs of what they are and how they came about: name to both texts, empty where one lacks it.
        predictors: Their predictors.
    """

    a: ListedProgram
    b: ListedProgram
    same_prompts: bool
    metadata: dict[str, tuple[str, str]]
    predictors: tuple[PredictorDiff, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain data that JSON can hold."""
        return asdict(self)


def diff_programs(a: str, b: str, *, home: Home | None = None, tracking_uri: str | None = None) -> ProgramDiff:
    """Lay two compiled programs beside each other.

    Args:
        a: The first: its name, its JSON file, or a registered one (`models:/search-o1/champion`).
        b: The second.
        home: Home folder; by default the user's.
        tracking_uri: MLflow store of registered programs; by default the home folder's.

    Returns:
        What differs and what does not.

    Raises:
        OptionError: A name is unknown; the text lists the nearest.
        ProgramError: A file is bad, or MLflow does not have it.
    """
    where = home or Home()
    first, second = (read_program(name, where, tracking_uri) for name in (a, b))
    names = list(dict.fromkeys([*first.state, *second.state]))
    return ProgramDiff(
        a=listed(first, where),
        b=listed(second, where),
        same_prompts=first.digest == second.digest,
        metadata=_metadata(first, second),
        predictors=tuple(_predictor(name, first.state.get(name), second.state.get(name)) for name in names),
    )


def diff_texts(a: str, b: str) -> tuple[Segment, ...]:
    """Match two texts word by word.

    Args:
        a: The first.
        b: The second.

    Returns:
        Stretches: those of `same` and `a` together are the first text, those of `same` and `b` the second.
    """
    if a == b:
        return (Segment("same", a),)
    pieces = [_WORD.findall(text) for text in (a, b)]
    if len(pieces[0]) * len(pieces[1]) > _MOST_PAIRS:
        pieces = [_LINE.findall(text) for text in (a, b)]
    found: list[Segment] = []
    matcher = difflib.SequenceMatcher(None, pieces[0], pieces[1], autojunk=False)
    for what, start_a, end_a, start_b, end_b in matcher.get_opcodes():
        text_a, text_b = "".join(pieces[0][start_a:end_a]), "".join(pieces[1][start_b:end_b])
        stretches: list[Segment] = (
            [Segment("same", text_a)] if what == "equal" else [Segment("a", text_a), Segment("b", text_b)]
        )
        found += [stretch for stretch in stretches if stretch.text]
    return tuple(found)


def demo_key(demo: Demo) -> str:
    """Return what a demo is about: its question, or the query of a refinement."""
    return str(demo.get("question") or demo.get("search_query") or "")


def _metadata(a: CompiledProgram, b: CompiledProgram) -> dict[str, tuple[str, str]]:
    told = [
        {"method": p.method, "model": p.model, "task": p.task, "language": p.language, **flat_metadata(p.metadata)}
        for p in (a, b)
    ]
    both = [(name, (told[0].get(name, ""), told[1].get(name, ""))) for name in dict.fromkeys([*told[0], *told[1]])]
    return {name: pair for name, pair in both if pair[0] != pair[1]}


def _predictor(name: str, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> PredictorDiff:
    texts = [str(state["signature"]["instructions"]) if state is not None else "" for state in (a, b)]
    same, changed, only_a, only_b = _match(*([*state["demos"]] if state is not None else [] for state in (a, b)))
    only = "b" if a is None else "a" if b is None else ""
    return PredictorDiff(name, only, diff_texts(*texts), same, changed, only_a, only_b)


def _match(
    demos_a: Sequence[Demo], demos_b: Sequence[Demo]
) -> tuple[int, tuple[ChangedDemo, ...], tuple[Demo, ...], tuple[Demo, ...]]:
    """Pair demos: first those that are the same, then those about the same in their order."""
    left_b = list(demos_b)
    left_a = []
    for demo in demos_a:
        if demo in left_b:
            left_b.remove(demo)
        else:
            left_a.append(demo)
    same = len(demos_a) - len(left_a)
    waiting: dict[str, list[Demo]] = {}
    for demo in left_b:
        waiting.setdefault(demo_key(demo), []).append(demo)
    changed, only_a = [], []
    for demo in left_a:
        others = waiting.get(demo_key(demo))
        if others:
            changed.append(_changed(demo, others.pop(0)))
        else:
            only_a.append(demo)
    only_b = [demo for demo in left_b if any(demo is other for other in waiting[demo_key(demo)])]
    return same, tuple(changed), tuple(only_a), tuple(only_b)


def _changed(a: Demo, b: Demo) -> ChangedDemo:
    names = [name for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
    return ChangedDemo(demo_key(a), {name: diff_texts(str(a.get(name, "")), str(b.get(name, ""))) for name in names})
