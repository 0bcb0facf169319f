"""A scripted model that rewards one thing only, and the settings of an optimisation against it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from runs.optimizing import optimize as optimizing
from runs.optimizing.result import Optimised
from signatures.templates import instructions_for
from tests.runs.world import Films, facts, write_lines
from tests.servers.lm import searching_model

MAGIC = "Think like a magpie."
"""What an instruction must hold to be rewarded."""

TRAIN, VAL = range(0, 6), range(6, 10)
FILMS = facts(10)


class Rewarding:
    """The reply function: right answers for what is rewarded, guesses else, and instructions for proposers.

    Args:
        rewarded: `demo` (a worked chain on a film stands in the prompt; while learning any worked chain will do),
            `instruction` (its own instruction holds `MAGIC`), `advice` (likewise, and while learning every other sample
            is right, so that samples of one question disagree).
        method: Method whose instructions are proposed.
    """

    def __init__(self, rewarded: str, method: str = "search_o1") -> None:
        self.rewarded = rewarded
        self.method = method
        self.proposals = 0
        self.bad_calls: list[str] = []
        self._inner = searching_model(FILMS)

    def __call__(self, prompt: str, body: Mapping[str, Any]) -> str:
        if "proposed_instruction" in prompt:
            return self._propose(prompt)
        if "[[ ## " in prompt:
            self.proposals += 1
            return _filled(prompt, self._instruction(prompt))
        if "LOST" in prompt:
            self.bad_calls.append(prompt)
        return (
            self._inner(prompt, dict(body))
            if self._right(prompt, int(body.get("seed") or 0))
            else "I guess.\n\n\\boxed{a guess}"
        )

    def _right(self, prompt: str, seed: int) -> bool:
        if "**Searched Web Pages:**" in prompt.rpartition("<|im_start|>user")[2]:
            return True
        before, _, asked = prompt.rpartition("<|im_start|>user")
        learning = any(film in asked for film in list(FILMS)[: TRAIN.stop])
        if self.rewarded != "demo":
            begun = "<|begin_search_result|>" in asked.rpartition("<|im_start|>assistant")[2]
            return MAGIC in prompt or begun or (self.rewarded == "advice" and learning and seed % 2 == 1)
        return ("Roger Federer" in before) if learning else any(film in before for film in FILMS)

    def _propose(self, prompt: str) -> str:
        self.proposals += 1
        kind = self.proposals % 3
        text = self._instruction(prompt)
        if kind == 1:
            text = "LOST: just answer."
        elif kind == 2:
            text = text.replace(MAGIC, "Think like a mole.")
        return (
            f"[[ ## proposed_instruction ## ]]\n{text}\n\n[[ ## proposed_prefix_for_output_field ## ]]\nChain:\n\n"
            "[[ ## completed ## ]]"
        )

    def _instruction(self, prompt: str) -> str:
        refine = "**Analyze the Searched Web Pages:**" in prompt
        name = "refine_docs" if refine and self.method == "search_o1" else self.method
        return f"{instructions_for(name, 'en')}\n\n{MAGIC}"  # type: ignore[arg-type]


def _filled(prompt: str, instruction: str) -> str:
    """Fill every output field that a prompt asks for, in the form that it asks for."""
    if "Respond with a JSON object" in prompt:
        named = re.findall(r"`(\w+)`", prompt.rpartition("Respond with a JSON object")[2])
        return json.dumps(dict.fromkeys(named, instruction))
    wanted = prompt.rpartition("Respond with the corresponding output fields")[2]
    fields = re.findall(r"\[\[ ## (\w+) ## \]\]", wanted) or ["answer"]
    values = {"module_advice": json.dumps({"program.reason": MAGIC}), "new_instruction": instruction}
    named = [name for name in dict.fromkeys(fields) if name != "completed"]
    return "\n\n".join(f"[[ ## {name} ## ]]\n{values.get(name, 'well')}" for name in named)


def run(films: Films, **changes: Any) -> Optimised:
    """Optimise on the films: six to learn from, four to choose by."""
    rows = [
        {"id": f"q{i}", "question": f"Who directed {film}?", "answers": [director], "gold_titles": [film]}
        for i, (film, director) in enumerate(FILMS.items())
    ]
    given: dict[str, Any] = {
        "train": write_lines(films.folder / "train.jsonl", [rows[i] for i in TRAIN]),
        "val": write_lines(films.folder / "val.jsonl", [rows[i] for i in VAL]),
        "corpus": films.corpus,
        "model": f"hosted_vllm/{films.server.model}",
        "base_url": films.server.base_url,
        "track": False,
        "progress": False,
        "budget": 4,
        "concurrency": 4,
        **changes,
    }
    return optimizing.optimize("films", home=films.home, **given)


def generations(films: Films) -> list[str]:
    """Return the prompts that were generated from."""
    return list(films.server.prompts)
