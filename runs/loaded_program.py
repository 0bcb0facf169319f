"""A compiled program that answers questions by itself: what a model registered in MLflow does when it is asked."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from programs.registry import make_program
from programs.saving import load_program, read_compiled
from retrieval.sync import run_blocking
from runs.assembly import assemble_model, assemble_options
from runs.benchmarks.registry import BENCHMARKS
from runs.home import Home
from runs.models.factory import Model
from runs.retrieval_setup import assemble_retrieval, cache_policy
from runs.settings import ModelSettings, RetrievalSettings, make_settings
from signatures.errors import OptionError

_log = logging.getLogger(__name__)

SETTINGS = ("model", "base_url", "search", "index", "corpus", "options", "concurrency")
"""What can be set by parameter, or by an environment variable such as SEARCH_O1_BASE_URL."""

_INPUTS = ("question", "question_title", "starter_code")
_MODEL = ("model", "base_url")
_RETRIEVAL = ("search", "index", "corpus")


class LoadedProgram:
    """A compiled program read from its file, put to a model that is only known when questions come.

    Args:
        path: The compiled program's JSON file.

    Raises:
        ProgramError: The file is bad.
    """

    def __init__(self, path: Path) -> None:
        self.compiled = read_compiled(path)
        self._assembled: dict[tuple[tuple[str, str], ...], tuple[Any, Model]] = {}

    def answer(self, questions: Sequence[Any], given: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Answer questions, several at once.

        Args:
            questions: Texts, or mappings with `question`, and for code `question_title` and `starter_code`.
            given: Settings by name, see `SETTINGS`; what is empty is taken from the environment. `options` is a JSON
                object of chain options.

        Returns:
            One mapping a question: `answer`, `reasoning`, `searches` (the queries), `finish` and `error`. A question
            that failed has finish `error` and does not take the others with it.

        Raises:
            SearchO1Error: A setting is wrong, a question is missing, or model, corpus or server are missing.
        """
        inputs = [_inputs(question, place) for place, question in enumerate(questions, 1)]
        settings = chosen_settings(given or {})
        concurrency = _count(settings.pop("concurrency", "8"))
        key = tuple(sorted(settings.items()))
        if key not in self._assembled:
            self._assembled[key] = self._assemble(settings)
        program, model = self._assembled[key]
        return run_blocking(_answer_all(program, model, inputs, concurrency))

    def _assemble(self, settings: Mapping[str, str]) -> tuple[Any, Model]:
        compiled, home = self.compiled, Home()
        logging.getLogger("dspy.clients.lm").setLevel(logging.ERROR)
        model_settings = make_settings(ModelSettings, {k: settings[k] for k in _MODEL if k in settings})
        chosen = make_settings(RetrievalSettings, {k: settings[k] for k in _RETRIEVAL if k in settings})
        model = assemble_model(model_settings, home, _log.info, policy=cache_policy(chosen))
        retrieval = None
        if compiled.method != "direct":
            own = chosen.corpus or chosen.index or chosen.search != "local"
            retrieval = assemble_retrieval(chosen, home, _log.info, None if own else BENCHMARKS["quickstart"])
        changes = {**_options(settings), "task": compiled.task, "language": compiled.language}
        options = assemble_options(compiled.method, model, None, changes, paper=False, seed=0, name="")
        search, reader = (retrieval.search, retrieval.reader) if retrieval else (None, None)
        return load_program(make_program(compiled.method, search, reader, options), compiled), model


def rows_of(given: Any) -> list[Any]:
    """Return the questions in whatever MLflow hands over.

    Args:
        given: A table (pandas), a text or a mapping for one question, a mapping of columns, or a sequence of texts or
            mappings.

    Returns:
        One text or mapping a question.
    """
    if hasattr(given, "to_dict"):
        found: list[Any] = given.to_dict("records")
        return found
    if isinstance(given, Mapping):
        if isinstance(given.get("question"), str) or not given:
            return [given]
        return [dict(zip(given, cells, strict=False)) for cells in zip(*given.values(), strict=True)]
    return [given] if isinstance(given, str) else list(given)


def chosen_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that are set: by parameter, else by environment variable.

    Args:
        given: Parameters by name; an empty one counts as not given.

    Returns:
        Setting to value, those that are not set left out.
    """
    found = {name: str(given.get(name) or os.environ.get(f"SEARCH_O1_{name.upper()}") or "") for name in SETTINGS}
    return {name: value for name, value in found.items() if value}


async def _answer_all(
    program: Any, model: Model, inputs: Sequence[dict[str, str]], concurrency: int
) -> list[dict[str, Any]]:
    room = asyncio.Semaphore(concurrency)
    asked: Counter[str] = Counter()

    async def one(fields: dict[str, str]) -> dict[str, Any]:
        again = asked[fields["question"]]
        asked[fields["question"]] += 1
        async with room:
            try:
                # A question that stands there twice is sampled twice, wherever it stands.
                lm = model.lm.copy(rollout_id=f"registered/{again}/{fields['question']}")
                with dspy.context(lm=lm, trace=None, disable_history=True):
                    found = (await program.acall(**fields)).toDict()
            except Exception as error:
                found = {"finish": "error", "error": f"{type(error).__name__}: {error}"}
        return {
            "answer": found.get("answer") or "",
            "reasoning": found.get("reasoning") or "",
            "searches": [search["query"] for search in found.get("searches") or []],
            "finish": found["finish"],
            "error": found.get("error") or "",
        }

    return list(await asyncio.gather(*(one(fields) for fields in inputs)))


def _inputs(question: Any, place: int) -> dict[str, str]:
    fields = {"question": question} if isinstance(question, str) else question
    asked = fields.get("question") if isinstance(fields, Mapping) else None
    if not isinstance(asked, str) or not asked.strip():
        raise OptionError(f"Input {place} holds no question; give texts, or rows with a column `question`.")
    # Cells of a table that are empty come as None or NaN.
    return {name: fields[name] for name in _INPUTS if isinstance(fields.get(name), str)}


def _count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise OptionError(f"concurrency = {value!r}: give a whole number of 1 or more.")
    return int(value)


def _options(settings: Mapping[str, str]) -> dict[str, Any]:
    text = settings.get("options", "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionError(f"options = {text!r}: give a JSON object of chain options, such as " + '{"top_k": 3}.')
    return found
