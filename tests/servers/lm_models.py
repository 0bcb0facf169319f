"""What a scripted model says: fixed replies, rules, and a small model that behaves as Search-o1 asks."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Reply = Callable[[str, dict[str, Any]], str | Awaitable[str]]
Rules = Sequence[tuple[str, str]]

_ANSWER_START = "<|im_start|>assistant\n"
_RESULT = re.compile(r"<\|begin_search_result\|>(.*?)<\|end_search_result\|>", re.DOTALL)
_PAGE = re.compile(r"<\|begin_full_page\|>(.*?)<\|end_full_page\|>", re.DOTALL)
_REFINE_QUERY = re.compile(r"\*\*(?:Current Search Query|当前检索查询)[:\uff1a]\*\*\s*(.*?)\n\s*\n", re.DOTALL)
_PAGES_HEADING = re.compile(r"\*\*(?:Searched Web Pages|检索到的网页)[:\uff1a]\*\*")
_QUESTION = re.compile(r"(?:Question|问题)[:\uff1a]")
_THOUGHT = re.compile(r"\n(?:Thought|Reasoning|思考)[:\uff1a]|\n\n")


def as_reply(reply: Reply | Rules) -> Reply:
    """Return rules as a function; a function is returned as it is."""
    if callable(reply):
        return reply
    rules = list(reply)

    def by_rule(prompt: str, _: dict[str, Any]) -> str:
        for part, text in rules:
            if part in prompt:
                return text
        raise LookupError(f"No rule fits the prompt that ends in {prompt[-200:]!r}")

    return by_rule


def scripted(*replies: str) -> Reply:
    """Return a reply function that says these texts in turn, one a call, and fails when they are used up."""
    left = list(replies)

    def next_reply(prompt: str, _: dict[str, Any]) -> str:
        if not left:
            raise LookupError(f"All {len(replies)} replies are used up; the prompt ends in {prompt[-200:]!r}")
        return left.pop(0)

    return next_reply


def searching_model(facts: Mapping[str, str]) -> Reply:
    """Return a model that knows nothing and searches well.

    Asked a question it searches once for the entity in it; after a result (or a page it fetched, where only an address
    was given) it boxes the answer found there. A prompt that offers documents but no search is answered from them, one
    that offers neither with a guess. Refine prompts are answered from their pages. It never stops at a marker by
    itself: left to run on, it invents a result and an answer, as real models do.

    Args:
        facts: Entity to answer; a text holds the answer only if the answer stands in it word for word.

    Returns:
        The reply function.
    """

    def reply(prompt: str, _: dict[str, Any]) -> str:
        task, chain = _split(prompt)
        if query := _REFINE_QUERY.search(task):
            return _refine(query.group(1), _PAGES_HEADING.split(task)[-1], facts)
        entity = _entity(_last_question(task), facts)
        blocks = _RESULT.findall(chain) + _PAGE.findall(chain)
        if entity is not None and any(facts[entity] in block for block in blocks):
            return f"The result answers it.\n\n\\boxed{{{facts[entity]}}}"
        address = re.search(r'"url": "([^"]+)"', "".join(blocks))
        if address and "<|begin_url|>" in task and not _PAGE.search(chain):
            return f"I want the page.\n\n<|begin_url|>{address.group(1)}<|end_url|>\n\nIt says \\boxed{{invented}}"
        if blocks or entity is None:
            return "Nothing helpful was found.\n\n\\boxed{unknown}"
        if "<|begin_search_query|>" in task:
            return (
                f"I need to know about {entity}.\n\n<|begin_search_query|>{entity}<|end_search_query|>\n\n"
                "<|begin_search_result|>invented<|end_search_result|>\n\nSo it is \\boxed{invented}"
            )
        return f"\\boxed{{{facts[entity] if facts[entity] in task else 'a guess'}}}"

    return reply


def _split(prompt: str) -> tuple[str, str]:
    """Cut a prompt into the last user message and the chain so far."""
    before, start, chain = prompt.rpartition(_ANSWER_START)
    if start:
        return before.rpartition("<|im_start|>user\n")[2], chain
    questions = list(_QUESTION.finditer(prompt))
    if not questions:
        return prompt, ""
    head = prompt[questions[-1].start() :]
    # In a raw completion the chain follows the question's own line or paragraph.
    end = _THOUGHT.search(head)
    cut = questions[-1].start() + (end.start() if end else len(head))
    return prompt[:cut], prompt[cut:]


def _last_question(task: str) -> str:
    questions = list(_QUESTION.finditer(task))
    return task[questions[-1].end() :] if questions else task


def _entity(text: str, facts: Mapping[str, str]) -> str | None:
    return max((entity for entity in facts if entity in text), key=len, default=None)


def _refine(query: str, pages: str, facts: Mapping[str, str]) -> str:
    entity = _entity(query, facts)
    if entity is None or facts[entity] not in pages:
        return "**Final Information**\n\nNo helpful information found."
    return f"The pages speak of {entity}.\n\n**Final Information**\n\nAbout {entity}: {facts[entity]}."
