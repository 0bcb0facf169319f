"""Compiled programs on the screen. Whatever a model or a page wrote is shown as text, never obeyed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from runs.program_diff import ChangedDemo, PredictorDiff, ProgramDiff, Segment, demo_key
from runs.program_listing import Demo, ListedProgram, ShownProgram, flat_metadata, scores_of
from runs.terminal_text import visible

_ORIGINS = {"home": "your own", "package": "comes with the package", "file": "a file"}
_STYLES = {"same": "", "a": "bold red strike", "b": "bold green"}
_MARKS = {"same": ("", ""), "a": ("[-", "-]"), "b": ("{+", "+}")}


def list_line(program: ListedProgram) -> str:
    """Return the line that lists a program."""
    own = " (your own)" if program.origin == "home" else ""
    if program.damage:
        return visible(f"{program.name}.json{own}: DAMAGED: {program.damage}")
    language = "" if program.language == "en" else f", {program.language}"
    before, after = scores_of(program.metadata)
    scores = f"{before or '-'} before, {after} after" if after else ""
    told = [program.metadata.get(name) for name in ("made", "date")]
    words = [str(word) for word in told if isinstance(word, str)]
    return visible(
        f"{program.name}.json{own}: {program.method}, {program.task}{language}, for {program.model}; "
        f"demos {_counts(program)}; {', '.join(part for part in (*words, scores) if part)}"
    )


def print_program(console: Console, shown: ShownProgram, *, demos: int = 1) -> None:
    """Print a program: what it is, how it came about, and the prompt text and demos of each predictor.

    Args:
        console: Where to print.
        shown: The program.
        demos: How many demos of each predictor; 0 for all.
    """
    _head(console, "", shown.program)
    _say(console, f"    prompts and demos {shown.program.digest[:12]}, in {shown.program.file}")
    for name, text in flat_metadata(shown.program.metadata).items():
        _say(console, f"    {name}: {text}")
    for predictor in shown.predictors:
        _say(console, f"\n{predictor.name}: instructions")
        _say(console, _indented(predictor.instructions))
        _print_demos(console, f"{predictor.name}: demos", predictor.demos, demos)


def print_diff(console: Console, diff: ProgramDiff, *, demos: int = 3) -> None:
    """Print two programs beside each other: columns on a terminal, marked words (`[-A-]{+B+}`) elsewhere.

    Args:
        console: Where to print.
        diff: The programs.
        demos: How many demos of each group to show; 0 for all.
    """
    _head(console, "A  ", diff.a)
    _head(console, "B  ", diff.b)
    if diff.same_prompts:
        _say(console, "Both send the same prompts and demos.")
    if diff.metadata:
        table = Table("", "A", "B", box=SIMPLE_HEAD, pad_edge=False)
        for name, (a, b) in diff.metadata.items():
            table.add_row(*(Text(visible(text) or "-") for text in (name, a, b)))
            if not console.is_terminal:
                _say(console, f"    {name}: {_marked([Segment('a', a), Segment('b', b)])}")
        if console.is_terminal:
            console.print(table)
    for predictor in diff.predictors:
        _print_predictor(console, predictor, demos)


def _print_predictor(console: Console, diff: PredictorDiff, demos: int) -> None:
    if diff.only:
        _say(console, f"\n{diff.name}: only in {diff.only.upper()}")
    same = " (the same in both)" if diff.same_instructions else ""
    _say(console, f"\n{diff.name}: instructions{same}")
    _print_segments(console, diff.instructions)
    _say(
        console,
        f"\n{diff.name}: {diff.same_demos} demos are the same, {len(diff.changed)} differ, {len(diff.only_a)} only in "
        f"A, {len(diff.only_b)} only in B",
    )
    for changed in diff.changed[: demos or None]:
        _print_changed(console, changed)
    _more(console, len(diff.changed), demos)
    for letter, group in (("A", diff.only_a), ("B", diff.only_b)):
        if group:
            _print_demos(console, f"{diff.name}: only in {letter}", group, demos)


def _print_changed(console: Console, changed: ChangedDemo) -> None:
    _say(console, f"  {changed.key}")
    for name, segments in changed.fields.items():
        _say(console, f"    {name}")
        _print_segments(console, segments)


def _print_segments(console: Console, segments: Sequence[Segment]) -> None:
    if not console.is_terminal or all(segment.kind == "same" for segment in segments):
        _say(console, _indented(_marked(segments)))
        return
    table = Table("A", "B", box=SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_row(*(_coloured(segments, side) for side in ("a", "b")))
    console.print(table)


def _coloured(segments: Sequence[Segment], side: str) -> Text:
    shown = Text()
    for segment in segments:
        if segment.kind in ("same", side):
            shown.append(visible(segment.text), _STYLES[segment.kind])
    return shown


def _marked(segments: Sequence[Segment]) -> str:
    marks = [(*_MARKS[segment.kind], segment.text) for segment in segments if segment.text]
    return "".join(f"{before}{text}{after}" for before, after, text in marks)


def _print_demos(console: Console, title: str, demos: Sequence[Demo], limit: int) -> None:
    _say(console, f"\n{title} ({len(demos)})")
    for demo in demos[: limit or None]:
        _say(console, f"  {demo_key(demo)}")
        for name, value in demo.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if text != demo_key(demo):
                _say(console, f"    {name}\n{_indented(text)}")
    _more(console, len(demos), limit)


def _more(console: Console, count: int, limit: int) -> None:
    if limit and count > limit:
        _say(console, f"  ... {count - limit} more (all: --demos 0)")


def _head(console: Console, letter: str, program: ListedProgram) -> None:
    before, after = scores_of(program.metadata)
    score = f" · {before or '-'} before, {after} after" if after else ""
    _say(console, f"{letter}{program.name}  ({_ORIGINS[program.origin]}){score}")
    _say(
        console,
        f"    for {program.method}, {program.task}, {program.language}, {program.model}; demos {_counts(program)}",
    )


def _counts(program: ListedProgram) -> str:
    return ", ".join(f"{name} {count}" for name, count in program.demos.items())


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.split("\n"))


def _say(console: Console, line: Any) -> None:
    # As a `Text`, for a plain string rich would turn `:smile:` into a picture.
    console.print(Text(visible(line)), highlight=False, soft_wrap=True)
