r"""The paper's instruction templates (appendix A), read from `signatures/templates/{en,zh}/`.

The files hold the wording of the appendix; only the slots in lower-case braces are filled. Every other brace
(`\\boxed{YOUR_ANSWER}`) is literal, which is why nothing here ever calls `str.format`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from signatures.errors import OptionError

Method = Literal["direct", "standard_rag", "rag_agent", "search_o1", "refine_docs"]
Task = Literal["open_qa", "math", "multiple_choice", "code"]
Language = Literal["en", "zh"]

METHODS: tuple[Method, ...] = ("direct", "standard_rag", "rag_agent", "search_o1")
TASKS: tuple[Task, ...] = ("open_qa", "math", "multiple_choice", "code")
LANGUAGES: tuple[Language, ...] = ("en", "zh")

THINK_STEP_BY_STEP = "You should think step by step to solve it. "
"""Added for models that do not reason by themselves; English in both languages (appendix A.5)."""

DIRECT_INSTRUCTIONS = "Answer the question."
"""Stands for the empty method text of `direct`, so that an optimizer has something to edit; it is not rendered."""

_SLOT = re.compile(
    r"\{(max_search_limit|max_url_fetch|example_question|example_need|example_query|example_url"
    r"|question|question_title|documents|think|prev_reasoning|search_query|document)\}"
)

_REFINE_INPUTS = {"en": "**Inputs:**", "zh": "**输入:**"}


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Put values into the slots of a template, in one pass: braces inside a value are never taken for a slot.

    Args:
        template: Text with slots such as `{question}`.
        slots: Value of each slot; a known slot without a value is left as it stands.

    Returns:
        The filled text.
    """
    return _SLOT.sub(lambda match: slots.get(match.group(1), match.group()), template)


def _read(language: str, name: str) -> str:
    if language not in LANGUAGES:
        raise OptionError(f"Unknown prompt language {language!r}; known languages: {', '.join(LANGUAGES)}.")
    return (files("signatures") / "templates" / language / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


@cache
def method_template(method: Method, language: Language = "en") -> str:
    """Return the instruction template of a method (appendix A.1 to A.3).

    Args:
        method: `standard_rag`, `rag_agent`, `search_o1` or `refine_docs`; `direct` has none.
        language: `en` or `zh`.

    Returns:
        The whole template without its last line break; empty for `direct`.

    Raises:
        OptionError: The language is unknown.
    """
    return "" if method == "direct" else _read(language, method)


@cache
def task_template(task: Task, language: Language = "en") -> str:
    """Return the task template (appendix A.4).

    Args:
        task: `open_qa`, `math`, `multiple_choice` or `code`.
        language: `en` or `zh`.

    Returns:
        The template with its slots, no line break at the end.

    Raises:
        OptionError: The task or the language is unknown.
    """
    sections = dict(re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[\w+\]$|\Z)", _read(language, "tasks") + "\n", re.M | re.S))
    if task not in sections:
        raise OptionError(f"Unknown task {task!r}; known tasks: {', '.join(TASKS)}.")
    return str(sections[task]).strip("\n")


@cache
def split_task(task: Task, language: Language = "en") -> tuple[str, str]:
    """Cut a task template into its request and its question block.

    Args:
        task: Task kind.
        language: `en` or `zh`.

    Returns:
        (request, question block): the second begins with the line that announces the question or the problem's title.
    """
    template = task_template(task, language)
    first_slot = "{question_title}" if task == "code" else "{question}"
    before = template[: template.index(first_slot)]
    cut = before.rstrip("\n").rfind("\n\n")
    return template[:cut].strip("\n"), template[cut:].strip("\n")


@cache
def split_refine(language: Language = "en") -> tuple[str, str]:
    """Cut the Reason-in-Documents template into what an optimizer may edit and the input block it may not.

    Args:
        language: `en` or `zh`.

    Returns:
        (instructions, input block): joined by a blank line they are the whole template.
    """
    template = method_template("refine_docs", language)
    cut = template.index(_REFINE_INPUTS[language])
    return template[:cut].rstrip("\n"), template[cut:]


def instructions_for(method: Method, language: Language = "en") -> str:
    """Return the text that becomes `signature.instructions`, the one part that optimizers edit.

    Args:
        method: A method, or `refine_docs`.
        language: `en` or `zh`.

    Returns:
        The method template; for `refine_docs` without its input block; for `direct` a stand-in that is not rendered.
    """
    if method == "direct":
        return DIRECT_INSTRUCTIONS
    if method == "refine_docs":
        return split_refine(language)[0]
    return method_template(method, language)
