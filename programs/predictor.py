"""The predictor that pauses and resumes: one `dspy.Predict` a method, one trace entry a question."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import dspy

from metrics.extraction import extract_answer
from programs.by_value import PredictByValue
from programs.chain import ChainLoop, ChainState, Tool
from programs.documents import Record, render_documents
from programs.driver import Driver
from programs.fitting import fit_documents
from programs.language_model import ChainModel
from programs.operations import Steps
from programs.options import ChainOptions
from retrieval.base import Reader, Search
from signatures.adapter import CHAIN, ChainAdapter
from signatures.errors import ContextLengthError
from signatures.layout import Layout
from signatures.reasoning import reasoning_signature
from signatures.templates import Method

_TRACED_CHARS = 2_000


class ChainPredict(PredictByValue):
    """Runs a whole chain behind one signature `question -> reasoning, answer` and writes one trace entry.

    `RAGAgent` and `SearchO1` share it with a tool each; `DirectReasoning` and `StandardRAG` use it without one.

    Args:
        method: Whose templates are used.
        options: The program's options.
    """

    def __init__(self, method: Method, options: ChainOptions) -> None:
        super().__init__(reasoning_signature(method, options.task, options.language))
        self.options = options
        self.layout = Layout(
            method,
            task=options.task,
            language=options.language,
            example=options.example,
            max_search_limit=options.max_searches,
            max_url_fetch=options.max_fetches,
            show_starter_code=options.show_starter_code,
        )

    def _arguments(self) -> tuple[Method, ChainOptions]:
        return self.layout.method, self.options

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Run the chain with blocking calls.

        Args:
            **inputs: The signature's inputs, and optionally `tool`, `search`, `reader` (what the chain can pause for)
                and `records` (documents of standard RAG, which are fitted to the context).

        Returns:
            A prediction: `answer`, `reasoning` (the chain), `searches`, `finish`, `usage`, `events`, `error`.

        Raises:
            OptionError: The program lacks a search backend or a reader.
            SearchO1Error: The first generation failed.
        """
        driver, steps, finish = self._prepare(inputs)
        return finish(driver.run(steps))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Run the chain on the running event loop; arguments, result and errors as in `forward`."""
        driver, steps, finish = self._prepare(inputs)
        return finish(await driver.arun(steps))

    def _prepare(
        self, inputs: dict[str, Any]
    ) -> tuple[Driver, Steps[ChainState], Callable[[ChainState], dspy.Prediction]]:
        tool: Tool | None = inputs.pop("tool", None)
        search: Search | None = inputs.pop("search", None)
        reader: Reader | None = inputs.pop("reader", None)
        records: list[Record] | None = inputs.pop("records", None)
        prior: list[dict[str, Any]] = inputs.pop("prior_events", [])
        lm, config, signature, demos, fields = self._forward_preprocess(**inputs)
        options = self.options
        model = ChainModel(lm, options.profile, options.context_length, options.seed)
        adapter = ChainAdapter(self.layout, model.profile)

        def render(chain: str) -> list[dict[str, str]]:
            return adapter.format(signature, demos, {**fields, CHAIN: chain})

        loop = ChainLoop(
            render,
            options,
            context_length=model.context_length,
            exact=model.exact,
            tool=tool,
            layout_stops=adapter.stop(),
            ends_at_box=adapter.ends_at_box,
            config={**options.sampling, **config},
            chain_id=uuid.uuid4().hex,
        )
        loop.state.events.extend(prior)

        def steps() -> Steps[ChainState]:
            if records is not None:
                try:
                    yield from self._fit(adapter, model, signature, demos, fields, records, loop.state)
                except ContextLengthError as error:
                    loop.state.finish, loop.state.error, loop.state.error_kind = "context", str(error), error.kind
                    return loop.state
            state = yield from loop.steps()
            return state

        def finish(state: ChainState) -> dspy.Prediction:
            answer = extract_answer(state.text, options.task)
            traced = {name: value[:_TRACED_CHARS] if name == "documents" else value for name, value in fields.items()}
            # The trace entry is lean: optimizers make demos from it.
            lean = self._forward_postprocess([{"reasoning": state.text, "answer": answer}], signature, **traced)
            return dspy.Prediction(**lean.toDict(), **facts(state, lm.model))

        return Driver(model, search, reader), steps(), finish

    def _fit(
        self,
        adapter: ChainAdapter,
        model: ChainModel,
        signature: Any,
        demos: list[Any],
        fields: dict[str, Any],
        records: list[Record],
        state: ChainState,
    ) -> Steps[None]:
        compact = model.profile.compact

        def render(kept: list[Record], _reasoning: str) -> list[dict[str, str]]:
            return adapter.format(signature, demos, {**fields, "documents": render_documents(kept, compact=compact)})

        # A quarter of the context at most is kept free for reasoning: a turn of 32,768 tokens never fits beside
        # documents.
        reserve = max(self.options.min_turn_tokens, min(self.options.turn_tokens, model.context_length // 4))
        start = time.time()
        fitted = yield from fit_documents(
            render, records, "", model.context_length - reserve, state.chain_id, exact=model.exact
        )
        fields["documents"] = render_documents(fitted.records, compact=compact)
        for cut in fitted.cuts:
            state.events.append({**cut, "start": start, "end": time.time()})


def facts(state: ChainState, model: str) -> dict[str, Any]:
    """Return what a prediction says of its chain beside reasoning and answer.

    Args:
        state: The finished chain.
        model: Name of the language model.

    Returns:
        `searches`, `finish`, `usage` (tokens, calls, cost over all model calls of the question), `events`, `turns`,
        `malformed`, `error`, `error_kind`, `model`.
    """
    return {
        "searches": state.searches,
        "finish": state.finish,
        "usage": add_usage(state.events),
        "events": state.events,
        "turns": state.turn,
        "malformed": state.malformed,
        "error": state.error,
        "error_kind": state.error_kind,
        "model": model,
    }


def add_usage(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the tokens, calls and cost of all model calls among some events.

    Args:
        events: Events of a chain, refinements included.

    Returns:
        `prompt_tokens`, `completion_tokens`, `cached_tokens`, `calls`, `from_cache` (calls our reply cache answered),
        `retokenised`, and `cost` in US dollars or None when no call told one.
    """
    calls = [event for event in events if event["type"] in ("generate", "refine")]
    costs = [event["cost"] for event in calls if event.get("cost") is not None]
    return {
        "prompt_tokens": sum(event["prompt_tokens"] for event in calls),
        "completion_tokens": sum(event["completion_tokens"] for event in calls),
        "cached_tokens": sum(event["cached_tokens"] for event in calls),
        "calls": len(calls),
        "from_cache": sum(bool(event["from_cache"]) for event in calls),
        "retokenised": sum(bool(event["retokenised"]) for event in calls),
        "cost": sum(costs) if costs else None,
    }
