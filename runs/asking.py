"""One question, one answer: `search-o1 ask` and `runs.ask`."""

from __future__ import annotations

import logging
from typing import Any

import dspy

from retrieval.sync import run_blocking
from runs.assembly import assemble_model, assemble_options, assemble_program
from runs.benchmarks.registry import BENCHMARKS
from runs.home import Home
from runs.retrieval_setup import assemble_retrieval, cache_policy
from runs.settings import ModelSettings, RetrievalSettings, make_settings
from signatures.errors import OptionError


def ask(
    question: str,
    *,
    method: str = "search_o1",
    program: str = "auto",
    options: dict[str, Any] | None = None,
    home: Home | None = None,
    say: Any = None,
    tracking_uri: str | None = None,
    **settings: Any,
) -> dspy.Prediction:
    """Answer one question.

    Args:
        question: The question.
        method: `direct`, `standard_rag`, `rag_agent` or `search_o1`.
        program: `auto` takes the compiled program that fits model, method and task, `none` takes none; else the name
            of one, its JSON file, or a registered one (`models:/search-o1/champion`).
        options: Chain options by name.
        home: Home folder; by default the user's.
        say: Called with a line for the user when something takes time or was chosen.
        tracking_uri: MLflow store of registered programs; by default the home folder's.
        **settings: Fields of `ModelSettings` and `RetrievalSettings`.

    Returns:
        The prediction: `answer`, `reasoning`, `searches`, `finish`, `usage`, `events`.

    Raises:
        SearchO1Error: A setting is wrong, or model, corpus or server are missing.
    """
    if not question.strip():
        raise OptionError("The question is empty; write what you want to know.")
    logging.getLogger("dspy.clients.lm").setLevel(logging.ERROR)
    where = home or Home()
    tell = say or (lambda line: None)
    model_fields = {k: v for k, v in settings.items() if k in ModelSettings.model_fields}
    rest = {k: v for k, v in settings.items() if k not in ModelSettings.model_fields}
    model_settings = make_settings(ModelSettings, model_fields)
    retrieval_settings = make_settings(RetrievalSettings, rest)
    model = assemble_model(model_settings, where, tell, policy=cache_policy(retrieval_settings))
    quickstart = BENCHMARKS["quickstart"]
    own = retrieval_settings.corpus or retrieval_settings.index or retrieval_settings.search != "local"
    retrieval = None
    if method != "direct":
        retrieval = assemble_retrieval(retrieval_settings, where, tell, None if own else quickstart)
        if not own:
            tell("No --corpus, --index or --search given: searching the quickstart's 360 articles.")
    chosen = assemble_options(
        method, model, None, dict(options or {}), paper=False, seed=0, name="", temperature=model_settings.temperature
    )
    built, _ = assemble_program(method, chosen, retrieval, model, program, where, say=tell, tracking_uri=tracking_uri)

    async def answer() -> dspy.Prediction:
        with dspy.context(lm=model.lm, trace=None, disable_history=True):
            return await built.acall(question=question)

    return run_blocking(answer())
