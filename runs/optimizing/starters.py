"""Starter demos: questions worked by hand, which show a model that never searches what a chain looks like.

A model that does not know the markers writes no query, so no chain of its own can become a demo. A teacher with
starters writes chains that do search, on the training questions, and its right ones become the demos. The questions are
this project's own and stand in no benchmark.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from programs.base import Program
from programs.documents import Record
from runs.optimizing.worked import WorkedQuestion, WorkedStep, reasoning_demo, refine_demos
from signatures.profiles import ModelProfile
from signatures.templates import Language, Task

_SITE = {"en": "en.wikipedia.org", "zh": "zh.wikipedia.org"}


def starters(task: Task, language: Language = "en") -> tuple[WorkedQuestion, ...]:
    """Return the questions worked by hand.

    Args:
        task: Task kind.
        language: `en` or `zh`.

    Returns:
        The worked questions; those of `open_qa` for a task that has none in this language.
    """
    by_task = _read()[language]
    return by_task.get(task) or by_task["open_qa"]


def with_starters(program: Program, profile: ModelProfile) -> Program:
    """Return a copy of a program that shows the starters before everything else it shows.

    Args:
        program: One of the four methods.
        profile: How the model wants to be asked; a compact one sees documents as short lines.

    Returns:
        The copy; the program itself is unchanged.
    """
    twin: Program = program.deepcopy()
    worked = starters(program.options.task, program.options.language)
    first = [reasoning_demo(program.method, one, compact=profile.compact) for one in worked]
    twin.reason.demos = [*first, *twin.reason.demos]
    refine = getattr(twin, "refine", None)
    if refine is not None:
        refine.demos = [*(d for one in worked for d in refine_demos(one, compact=profile.compact)), *refine.demos]
    return twin


@cache
def _read() -> dict[str, dict[str, tuple[WorkedQuestion, ...]]]:
    text = (files("runs.optimizing") / "starters.json").read_text(encoding="utf-8")
    return {
        language: {task: tuple(_worked(one, language) for one in given) for task, given in by_task.items()}
        for language, by_task in json.loads(text).items()
    }


def _worked(given: dict[str, Any], language: str) -> WorkedQuestion:
    steps = [
        WorkedStep(
            step["thought"],
            step["query"],
            [_record(rank, page, language) for rank, page in enumerate(step["pages"], 1)],
            step["information"],
        )
        for step in given["steps"]
    ]
    inputs = tuple(given.get("inputs", {}).items())
    return WorkedQuestion(given["question"], given["answer"], steps, given["conclusion"], inputs)


def _record(rank: int, page: dict[str, str], language: str) -> Record:
    site = _SITE[language]
    return {
        "id": rank,
        "title": page["title"],
        "url": f"https://{site}/wiki/{quote(page['title'].replace(' ', '_'), safe='()_,')}",
        "site_name": site,
        "date": "",
        "snippet": page["text"],
        "context": page["text"],
    }
