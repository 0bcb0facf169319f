"""The DSPy signatures of the four methods: one question in, one chain with its answer out.

One signature a method, and one trace entry a question: the whole chain, however often it was paused, is the value of
`reasoning`. `signature.instructions` is the method's template and the only part that optimizers edit.
"""

from __future__ import annotations

from typing import Any

import dspy

from signatures.templates import Language, Method, Task, instructions_for


class Reasoning(dspy.Signature):  # type: ignore[misc]
    """Answer the question."""

    question: str = dspy.InputField(desc="the question, problem statement or task")
    reasoning: str = dspy.OutputField(
        desc="the whole chain of thought, with queries and their results where there are any"
    )
    answer: str = dspy.OutputField(desc="the final answer as it stands in the box or the code block")


class RefineDocs(dspy.Signature):  # type: ignore[misc]
    """Extract from web pages what helps the current search query and the reasoning so far."""

    prev_reasoning: str = dspy.InputField(desc="the reasoning steps before the search")
    search_query: str = dspy.InputField(desc="the current search query")
    document: str = dspy.InputField(desc="the searched web pages")
    final_information: str = dspy.OutputField(desc="the helpful information, or the sentence that there is none")


def reasoning_signature(method: Method, task: Task = "open_qa", language: Language = "en") -> Any:
    """Build the signature of a method.

    Args:
        method: `direct`, `standard_rag`, `rag_agent` or `search_o1`.
        task: Task kind; `code` has the further inputs `question_title` and `starter_code`.
        language: `en` or `zh`.

    Returns:
        A `dspy.Signature` class with inputs `question` (and `documents` for standard RAG) and outputs `reasoning`,
        `answer`.
    """
    signature: Any = Reasoning
    if task == "code":
        signature = signature.append("question_title", dspy.InputField(default=""), str)
        signature = signature.append("starter_code", dspy.InputField(default=""), str)
    if method == "standard_rag":
        signature = signature.append("documents", dspy.InputField(desc="the retrieved documents"), str)
    return signature.with_instructions(instructions_for(method, language))


def refine_signature(language: Language = "en") -> Any:
    """Build the signature of Reason-in-Documents (appendix A.1) with its instructions in the given language."""
    return RefineDocs.with_instructions(instructions_for("refine_docs", language))
