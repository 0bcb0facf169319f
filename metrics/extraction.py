r"""Getting the answer out of what a model wrote: the box, the code block, the choice letter.

Two readings, as in the two metric families. The official one repeats the published scorer: one line at a time, the
whole output, injected pages included. The strict one takes only what the model itself says at the end: braces
matched, text after the last `</think>`, nothing out of a page or out of a search query.

This module is a leaf: it imports the standard library and other leaves only.
Source: the published scorer's extraction step (github.com/sunnynexus/Search-o1, scripts/evaluate.py) for `official`.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata

from signatures.errors import OptionError
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_URL, END_SEARCH_QUERY, END_URL, segments

TASK_KINDS = ("open_qa", "math", "multiple_choice", "code")
"""The task kinds; every extraction and every scorer is named by one of them."""

PLACEHOLDERS = frozenset({"YOUR_ANSWER", "YOUR_CHOICE", "YOUR CODE HERE"})
"""Slot texts of the task templates; a model that repeats one has not answered."""

_THINK_END = "</think>"
_OPENED_BOX = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"\\boxed\s*\{|\\.|\{|\}", re.DOTALL)
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|boxed)\s*\{")
_REQUEST = re.compile(
    "|".join(
        f"{re.escape(begin)}(?:(?!{re.escape(begin)}).)*?{re.escape(end)}"
        for begin, end in ((BEGIN_SEARCH_QUERY, END_SEARCH_QUERY), (BEGIN_URL, END_URL))
    ),
    re.DOTALL,
)
_OFFICIAL_CODE = re.compile(r"```python(.*?)```", re.DOTALL | re.IGNORECASE)
_CODE_FENCE = re.compile(r"`{3,}[ \t]*(?:python3?|py)", re.IGNORECASE)
_END_FENCE = re.compile(r"`{3,}")
_LETTER = re.compile(r"[(\[{]*([A-Z])(?:[)\]}.,:、]*|[)\]}*_]*(?:[.:)](?=[\s*_])|[):、])(?P<text>.+))", re.DOTALL)
_SECOND_LETTER = re.compile(r"\W*(?:and|or)?\W*[A-Z]\W*")
LONGEST_CHOICE = 2_000
"""Characters of the longest box that can still name a choice; more is an essay."""

_MOST_WRAPPERS = 8
"""Wrappers that are taken off one answer; more of them are a model in a loop, and each costs a look at all of it."""

_WRAPPED = re.compile(r"\\(?:text\w*|math(?:rm|bf|sf|tt|it|bb|cal)|boldsymbol|bm|operatorname|boxed)\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\[,;:!> ]|\\q?quad(?![a-zA-Z])|~|\\[()\[\]]")
_BIG_BRACKET = re.compile(r"\\(?:left|right)(?![a-zA-Z])")
_INTRODUCTION = re.compile(
    r"(?:the\s+)?(?:(?:correct|right|final|best)\s+)*(?:option|choice|answer)(?:\s+is)?\s*(?::\s*|\s+|(?=[(\[{]))",
    re.IGNORECASE,
)


def official_box(output: str, task: str) -> str:
    r"""Return the boxed answer as the published scorer reads it.

    Equals the last match of `\\boxed\{(.*)\}` (greedy, one line) in the whole output, injected text included. For
    open questions and choices, the last greedy `\text{…}` inside it, then round brackets stripped at both ends.

    Args:
        output: Everything the chain holds.
        task: Task kind, one of `TASK_KINDS`.

    Returns:
        The answer, white space kept as it is; empty when there is no box.
    """
    for line in reversed(output.split("\n")):
        # On one line the greedy pattern can match once only: from the first opening to the last closing brace.
        boxed = _greedy(line, "\\boxed{")
        if boxed is None:
            continue
        if task not in ("open_qa", "multiple_choice"):
            return boxed
        inner = _greedy(boxed, "\\text{")
        return (boxed if inner is None else inner).strip("()")
    return ""


def strict_box(chain: str) -> str:
    r"""Return the last complete box in the model's own final text.

    Braces are matched, over lines and nested; of nested boxes the outermost counts. Injected blocks, search queries and
    fetch requests are not read; neither is anything before the last `</think>`, if there is one. A box that never
    closes, an empty one and one that repeats the template's slot are passed over. One enclosing `\text{}`, `\mathrm{}`,
    `\textbf{}` … is unwrapped.

    Args:
        chain: The whole chain, injected blocks with their markers.

    Returns:
        The answer without surrounding white space; empty when there is none.
    """
    for stretch in reversed(_final_stretches(chain)):
        for start, end in reversed(_boxes(stretch)):
            answer = _unwrap(stretch[start:end])
            if answer and answer.replace("\\_", "_") not in PLACEHOLDERS:
                return answer
    return ""


def code_block(output: str, *, strict: bool = False) -> str:
    """Return the last closed Python code block.

    Args:
        output: Everything the chain holds.
        strict: Read the model's own text after the last `</think>` only, with fences on lines of their own (so that
            backticks inside a string do not end the program), and unindent the block.

    Returns:
        The code without surrounding white space; empty when no block is closed.
    """
    if not strict:
        blocks = _OFFICIAL_CODE.findall(output)
        return blocks[-1].strip() if blocks else ""
    for stretch in reversed(_final_stretches(output)):
        for block in reversed(_fenced_blocks(stretch)):
            if block.strip() and block.strip() not in PLACEHOLDERS:
                return textwrap.dedent(block).strip()
    return ""


def clean_choice(answer: str) -> str:
    r"""Return the letter that a choice answer names.

    LaTeX wrappers (`\text{B}`, `\mathrm{B}`) and an introduction (`Option B`, `The answer is: B`) are taken off.

    Args:
        answer: A boxed choice such as `B`, `(b)`, `**C**.` or `D) 4.2 m`.

    Returns:
        One capital letter A–Z, or empty when the answer does not come down to a single letter.
    """
    if len(answer) > LONGEST_CHOICE:
        return ""
    plain = plain_choice(answer)
    if _INTRODUCTION.match(plain):
        plain = _INTRODUCTION.sub("", plain, count=1)
    plain = plain.strip(" \t\r\n*_$.:")
    # A lone letter counts in either case; before further text only a capital does.
    match = _LETTER.fullmatch(plain.upper() if len(plain.strip("()[]{}.:,、")) == 1 else plain)
    if match is None or _SECOND_LETTER.fullmatch(match["text"] or ""):
        return ""
    return match.group(1)


def plain_choice(answer: str) -> str:
    """Return a choice without LaTeX wrappers, math delimiters and spacing commands, its white space folded.

    Args:
        answer: Content of a box, or the text of a choice.
    """
    text = (
        _SPACING.sub(" ", _BIG_BRACKET.sub("", unicodedata.normalize("NFKC", answer)))
        .replace("$", "")
        .replace("**", "")
    )
    while (unwrapped := _WRAPPED.sub(r"\1", text)) != text:
        text = unwrapped
    return " ".join(text.split())


def extract_answer(chain: str, task: str) -> str:
    """Return the strict answer of a chain; programs set `prediction.answer` with it.

    Args:
        chain: The whole chain, injected blocks with their markers.
        task: Task kind, one of `TASK_KINDS`.

    Returns:
        The code for `code`; for `multiple_choice` the letter where the box comes down to one, else the box; the box for
        the other kinds. Empty when the model gave no answer.

    Raises:
        OptionError: The task kind is unknown.
    """
    _check_task(task)
    if task == "code":
        return code_block(chain, strict=True)
    answer = strict_box(chain)
    return (clean_choice(answer) or answer) if task == "multiple_choice" else answer


def is_valid(answer: str, task: str) -> bool:
    """Tell whether an extracted answer is one at all, right or wrong.

    Args:
        answer: What `extract_answer` returned.
        task: Task kind, one of `TASK_KINDS`.

    Returns:
        True for a non-empty answer; for a choice only when it comes down to a single letter.

    Raises:
        OptionError: The task kind is unknown.
    """
    _check_task(task)
    if task == "multiple_choice":
        return bool(clean_choice(answer))
    return bool(answer.strip()) and answer.strip() not in PLACEHOLDERS


def _check_task(task: str) -> None:
    if task not in TASK_KINDS:
        raise OptionError(f"unknown task {task!r}; known tasks: {', '.join(TASK_KINDS)}")


def _greedy(line: str, opening: str) -> str | None:
    """Return what stands between the first opening and the last closing brace of a line, or None."""
    start = line.find(opening)
    end = line.rfind("}")
    if start < 0 or end < start + len(opening):
        return None
    return line[start + len(opening) : end]


def _final_stretches(chain: str) -> list[str]:
    """Return the model's own stretches after the last `</think>`, its search and fetch requests taken out.

    They stay apart, so that no box and no code block reaches over an injected block.
    """
    stretches: list[str] = []
    for segment in segments(chain):
        if segment.kind == "injected":
            continue
        text = _REQUEST.sub("\n", segment.text)
        if _THINK_END in text:
            stretches = []
            text = text.rpartition(_THINK_END)[2]
        stretches.append(text)
    return stretches


def _boxes(text: str) -> list[tuple[int, int]]:
    """Return where the contents of all closed boxes begin and end, in the order in which they close.

    One pass with a stack, and no copy: ten thousand boxes, closed or not, one in another or not, cost no more than the
    length of the text.
    """
    if not _OPENED_BOX.search(text):
        return []
    found: list[tuple[int, int]] = []
    opened: list[int | None] = []
    for token in _BRACE.finditer(text):
        if token.group().startswith("\\boxed"):
            opened.append(token.end())
        elif token.group() == "{":
            opened.append(None)
        elif token.group() == "}" and opened:
            start = opened.pop()
            if start is not None:
                found.append((start, token.start()))
    return found


def _unwrap(content: str) -> str:
    r"""Take off `\text{…}` and the like as long as one wraps the whole content."""
    content = content.strip()
    for _ in range(_MOST_WRAPPERS):
        wrapper = _WRAPPER.match(content)
        if wrapper is None or not _wraps_all(content, wrapper.end()):
            break
        content = content[wrapper.end() : -1].strip()
    return content


def _wraps_all(content: str, start: int) -> bool:
    """Tell whether the brace opened just before `start` is closed by the last character and not sooner."""
    depth = 1
    for token in _BRACE.finditer(content, start, len(content) - 1):
        if token.group() == "}":
            depth -= 1
        elif token.group().endswith("{") and token.group() != "\\{":
            depth += 1
        if depth == 0:
            return False
    return content.endswith("}")


def _fenced_blocks(text: str) -> list[str]:
    """Return the contents of all closed Python blocks whose fences stand on lines of their own."""
    blocks = []
    lines: list[str] | None = None
    for line in text.split("\n"):
        fence = line.strip()
        if _CODE_FENCE.fullmatch(fence):
            lines = []
        elif lines is not None and _END_FENCE.fullmatch(fence):
            blocks.append("\n".join(lines))
            lines = None
        elif lines is not None:
            lines.append(line)
    return blocks
