"""The one adapter: a signature and its inputs as the user message, demos before it, the chain as prefix to continue.

Chat profiles get the paper's layout: user message = method template, blank line, task template; demos are earlier
turns. Raw-completion profiles get one text: the instructions once, then every demo and the question as the same short
block, so that a small model sees nothing but worked chains before its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from signatures.layout import Layout
from signatures.nearest import nearest_demos
from signatures.profiles import ModelProfile
from signatures.templates import (
    DIRECT_INSTRUCTIONS,
    fill,
    split_refine,
    split_task,
    task_template,
)

CHAIN = "chain"
"""Input key under which the chain so far is passed to `ChainAdapter.format`."""

_REFINE_HEADING = {"en": "**Final Information**", "zh": "**最终信息**"}
_CONTINUE = {
    "en": "This is your reasoning so far. Go on from exactly where it stops and do not repeat any of it:\n\n",
    "zh": "以下是你目前的推理。请从它停下的地方继续，不要重复其中的内容:\n\n",
}
_DOCUMENT_SLOT = "{documents}"
_OPTIONAL_INPUTS = ("question_title", "documents")
"""Inputs that a demo may lack; their slots are then empty."""


class ChainAdapter(dspy.Adapter):  # type: ignore[misc]
    """Renders prompts for the chain predictors and for Reason-in-Documents.

    Args:
        layout: Method, task, language and slots.
        profile: How the model wants to be asked.
    """

    def __init__(self, layout: Layout, profile: ModelProfile) -> None:
        super().__init__()
        self.layout = layout
        self.profile = profile

    def format(
        self, signature: Any, demos: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]
    ) -> list[dict[str, str]]:
        """Render the messages of one call.

        Args:
            signature: The predictor's signature; its instructions are the method text.
            demos: Worked examples; those without a full output are left out.
            inputs: The signature's inputs, and optionally `chain`, the text to continue.

        Returns:
            Messages with `role` and `content`; a last one of role `assistant` is the prefix to continue. Never a system
            message.
        """
        complete = self._shown(demos, inputs)
        if self.profile.style == "completion":
            messages = [{"role": "user", "content": self._inline(signature, complete, inputs)}]
        else:
            messages = []
            for demo in complete:
                messages.append({"role": "user", "content": self.user_message(signature, demo)})
                messages.append({"role": "assistant", "content": self.demo_output(demo)})
            messages.append({"role": "user", "content": self.user_message(signature, inputs)})
        chain = str(inputs.get(CHAIN) or "")
        if not chain:
            return messages
        if self.profile.continuation == "user":
            return [*messages, {"role": "user", "content": _CONTINUE[self.layout.language] + chain}]
        return [*messages, {"role": "assistant", "content": chain}]

    def user_message(self, signature: Any, inputs: Mapping[str, Any]) -> str:
        """Render the user message of the paper's layout.

        Args:
            signature: The predictor's signature.
            inputs: The signature's inputs.

        Returns:
            Method template, blank line, task template; the task template alone for `direct`; the whole template with
            its input block for Reason-in-Documents.
        """
        slots = self._slots(inputs)
        instructions = signature.instructions
        if self.layout.method == "refine_docs":
            return f"{fill(instructions, slots)}\n\n{fill(split_refine(self.layout.language)[1], slots)}"
        task = fill(task_template(self.layout.task, self.layout.language), slots) + self._starter_code(inputs)
        if self.layout.method == "direct" and instructions == DIRECT_INSTRUCTIONS:
            return task
        return f"{self._method_text(instructions, slots)}\n\n{task}"

    def demo_output(self, demo: Mapping[str, Any]) -> str:
        """Return what the model is shown to have written for a demo: its whole chain, or its refined information."""
        if self.layout.method != "refine_docs":
            return str(demo["reasoning"]).strip()
        heading = _REFINE_HEADING[self.layout.language]
        text = str(demo["final_information"]).strip()
        return text if heading in text else f"{heading}\n\n{text}"

    def stop(self) -> tuple[str, ...]:
        """Return the stop strings that the layout itself needs: where a raw completion would begin another example."""
        if self.profile.style != "completion":
            return ()
        block = self._example_block().lstrip("\n")
        first_line = block.split("\n", 1)[0].split("{", 1)[0].rstrip()
        if self.layout.method != "refine_docs":
            return ("\n" + first_line,)
        # A small model begins its next example at any of the three headings.
        return tuple("\n" + line for line in block.split("\n") if line.startswith("- **"))

    @property
    def ends_at_box(self) -> bool:
        """Whether a chain ends with its answer box: a raw completion has no end of turn, and code has no box."""
        return self.profile.style == "completion" and self.layout.task != "code"

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Return the first output field filled with the completion; used when DSPy itself calls the adapter."""
        outputs = list(signature.output_fields)
        return {name: (completion if i == 0 else "") for i, name in enumerate(outputs)}

    def _shown(self, demos: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        complete = [demo for demo in demos if self._is_complete(demo)]
        if self.layout.method != "refine_docs":
            # A demo of the very question would tell the answer.
            complete = [demo for demo in complete if demo["question"] != inputs.get("question")]
        most = self.profile.nearest_demos
        if most is None or len(complete) <= most:
            return complete
        key = "search_query" if self.layout.method == "refine_docs" else "question"
        return nearest_demos(complete, str(inputs.get(key) or ""), key, most)

    def _is_complete(self, demo: Mapping[str, Any]) -> bool:
        needed = (
            ("prev_reasoning", "search_query", "document", "final_information")
            if self.layout.method == "refine_docs"
            else ("question", "reasoning")
        )
        return all(demo.get(name) for name in needed)

    def _slots(self, inputs: Mapping[str, Any]) -> dict[str, str]:
        fixed = self.layout.slots(reasoning_model=self.profile.reasoning)
        return {
            **dict.fromkeys(_OPTIONAL_INPUTS, ""),
            **fixed,
            **{name: str(value) for name, value in inputs.items() if name != CHAIN and value is not None},
        }

    def _method_text(self, instructions: str, slots: Mapping[str, str]) -> str:
        text = fill(instructions, slots)
        if self.layout.method == "standard_rag" and _DOCUMENT_SLOT not in instructions:
            text += f"\n\n{self.layout.label('documents')}\n{slots.get('documents', '')}"
        return text

    def _starter_code(self, inputs: Mapping[str, Any]) -> str:
        code = str(inputs.get("starter_code") or "").strip()
        if not code or not self.layout.show_starter_code or self.layout.task != "code":
            return ""
        return f"\n\n{self.layout.label('starter')}\n```python\n{code}\n```"

    def _inline(self, signature: Any, demos: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> str:
        blocks = [self._inline_head(signature.instructions)]
        blocks += [f"{self._inline_block(demo)}\n{self.demo_output(demo)}" for demo in demos]
        blocks.append(self._inline_block(inputs))
        return "\n\n".join(block for block in blocks if block) + "\n"

    def _inline_head(self, instructions: str) -> str:
        slots = self.layout.slots(reasoning_model=self.profile.reasoning)
        if self.layout.method == "refine_docs":
            return fill(instructions, slots)
        request = fill(split_task(self.layout.task, self.layout.language)[0], slots)
        if self.layout.method == "direct" and instructions == DIRECT_INSTRUCTIONS:
            return request
        kept = "\n\n".join(
            paragraph
            for paragraph in instructions.split("\n\n")
            if not (self.layout.method == "standard_rag" and ("{question}" in paragraph or _DOCUMENT_SLOT in paragraph))
        )
        return f"{fill(kept, slots)}\n\n{request}"

    def _example_block(self) -> str:
        if self.layout.method == "refine_docs":
            block = split_refine(self.layout.language)[1]
            inputs = block[block.index("\n") + 1 :].rsplit("\n\n", 1)[0]
            return inputs.split("\n\n", 1)[1] if self.profile.compact else inputs
        question = split_task(self.layout.task, self.layout.language)[1]
        if self.layout.method == "standard_rag":
            return f"{self.layout.label('documents')}\n{_DOCUMENT_SLOT}\n\n{question}"
        return question

    def _inline_block(self, inputs: Mapping[str, Any]) -> str:
        label = self.layout.label("analysis" if self.layout.method == "refine_docs" else "reasoning")
        return f"{fill(self._example_block(), self._slots(inputs)).rstrip()}{self._starter_code(inputs)}\n{label}"
