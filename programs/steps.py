"""What passes between the chain and Reason-in-Documents: the reasoning before a search, the information after it.

Source: Search-o1 (arXiv 2501.05366) section 3.4 and the authors' scripts; design section 2 says where this differs.
"""

from __future__ import annotations

import re
from typing import Literal

from programs.messages import MESSAGES
from signatures.errors import OptionError
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_SEARCH_RESULT, segments
from signatures.templates import LANGUAGES, Language

_HEADING = r"(?:Final Information|最终信息)"
_HEADING_LINE = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]*)?[*_]*[ \t]*{_HEADING}[ \t]*[:：]?[ \t]*[*_]*[ \t]*[:：]?[ \t]*$", re.M | re.I
)
_HEADING_BOLD = re.compile(rf"\*\*[ \t]*{_HEADING}[ \t]*[:：]?[ \t]*\*\*[ \t]*[:：]?", re.I)
_FENCE_LINE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*$\n?", re.M)
_KEPT_MARKERS = (BEGIN_SEARCH_QUERY, BEGIN_SEARCH_RESULT)

Outcome = Literal["found", "said_none", "no_heading"]


def chain_steps(chain: str) -> list[str]:
    """Cut a chain into steps.

    Args:
        chain: A chain, model text and injected blocks.

    Returns:
        One string a non-empty line of model text, and one an injected block with its line breaks folded to spaces.
    """
    steps: list[str] = []
    for segment in segments(chain):
        if segment.kind == "injected":
            steps.append(" ".join(line.strip() for line in segment.text.splitlines() if line.strip()))
        else:
            steps.extend(line.strip() for line in segment.text.split("\n") if line.strip())
    return steps


def previous_reasoning(chain: str) -> str:
    """Return the reasoning that Reason-in-Documents is shown.

    Up to 4 steps: all of them. More: the first, the last 3, and every step that holds a begin-query or begin-result
    marker; each gap becomes one `...`.

    Args:
        chain: The chain up to and including the current query.

    Returns:
        Steps written `Step i: …` with their original positions, joined by blank lines; empty for an empty chain.
    """
    steps = chain_steps(chain)
    last = len(steps) - 1
    kept: list[str] = []
    for i, step in enumerate(steps):
        if len(steps) <= 4 or i == 0 or i > last - 3 or any(marker in step for marker in _KEPT_MARKERS):
            kept.append(f"Step {i + 1}: {step}")
        elif kept[-1] != "...":
            kept.append("...")
    return "\n\n".join(kept)


def read_refinement(text: str, language: Language = "en") -> tuple[str, Outcome]:
    """Take the final information out of a reply of Reason-in-Documents, and say how it was found.

    Args:
        text: The whole reply.
        language: Language of the sentence that stands for nothing found.

    Returns:
        (information, outcome): `found`; `said_none` when the reply itself says that nothing helps, in either language;
        `no_heading` when the reply has no heading or nothing under it.

    Raises:
        OptionError: The language is unknown.
    """
    if language not in LANGUAGES:
        raise OptionError(f"Unknown language {language!r}; known languages: {', '.join(LANGUAGES)}.")
    after_thought = text.rsplit("</think>", 1)[-1]
    matches = list(_HEADING_LINE.finditer(after_thought)) or list(_HEADING_BOLD.finditer(after_thought))
    information = _FENCE_LINE.sub("", after_thought[matches[-1].end() :]).strip().strip("`").strip() if matches else ""
    if not information:
        return MESSAGES[language].no_information, "no_heading"
    none_found = any(information.startswith(m.no_information.rstrip(".。")) for m in MESSAGES.values())
    return information, "said_none" if none_found else "found"


def final_information(text: str, language: Language = "en") -> str:
    """Return what Reason-in-Documents puts into the chain.

    After the last `</think>` if there is one: what follows the last line that is only the heading (`**Final
    Information**`, `# Final Information:`, plain), else what follows the last bold heading anywhere. Code fences are
    stripped, line breaks kept.

    Args:
        text: The whole reply of Reason-in-Documents.
        language: `en` or `zh`.

    Returns:
        The information, or `No helpful information found.` (`未找到有用信息。`) when there is none.

    Raises:
        OptionError: The language is unknown.
    """
    return read_refinement(text, language)[0]
