"""Reason-in-Documents: a predictor of its own that distils pages for the paused chain (section 3.4, appendix A.1)."""

from __future__ import annotations

import time
from typing import Any

import dspy

from programs.by_value import PredictByValue
from programs.chain import generation_facts
from programs.documents import Record, render_pages
from programs.driver import Driver
from programs.fitting import count_or_bound, fit_documents
from programs.language_model import ChainModel
from programs.operations import Generate, Generation, Steps
from programs.options import ChainOptions
from programs.steps import read_refinement
from programs.turn import cut_at
from signatures.adapter import ChainAdapter
from signatures.layout import Layout
from signatures.reasoning import refine_signature

TRACED_CHARS = 2_000
"""The trace keeps this much of the pages: optimizers put traced inputs into their prompts."""


class RefinePredict(PredictByValue):
    """Predictor of `RefineDocs`: previous reasoning, query and pages in, final information out.

    Args:
        options: The program's options.
    """

    def __init__(self, options: ChainOptions) -> None:
        super().__init__(refine_signature(options.language))
        self.options = options
        self.layout = Layout("refine_docs", task=options.task, language=options.language)

    def _arguments(self) -> tuple[ChainOptions]:
        return (self.options,)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Refine with blocking calls.

        Args:
            **inputs: `prev_reasoning`, `search_query`, `document` (rendered pages), and optionally `records` (the same
                pages as records, which lets them be fitted), `chain_id` and `turn`.

        Returns:
            A prediction with `final_information`, `outcome` (found, said_none, no_heading) and `events`.

        Raises:
            SearchO1Error: The model failed, or nothing could be made to fit.
        """
        model, steps, finish = self._prepare(inputs)
        return finish(Driver(model).run(steps))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Refine on the running event loop; arguments, result and errors as in `forward`."""
        model, steps, finish = self._prepare(inputs)
        return finish(await Driver(model).arun(steps))

    def _prepare(self, inputs: dict[str, Any]) -> tuple[ChainModel, Any, Any]:
        records: list[Record] | None = inputs.pop("records", None)
        chain_id = str(inputs.pop("chain_id", ""))
        turn = int(inputs.pop("turn", 0))
        lm, config, signature, demos, fields = self._forward_preprocess(**inputs)
        options = self.options
        model = ChainModel(lm, options.profile, options.context_length, options.seed)
        adapter = ChainAdapter(self.layout, model.profile)
        steps = self._steps(
            adapter, model, signature, demos, fields, records, {**options.refine_sampling, **config}, chain_id, turn
        )

        def finish(result: dict[str, Any]) -> dspy.Prediction:
            # The trace entry is lean: demos are made from it, and a page is not a demo.
            lean = self._forward_postprocess(
                [{"final_information": result["final_information"]}],
                signature,
                **{**fields, "document": result["document"][:TRACED_CHARS]},
            )
            return dspy.Prediction(**lean.toDict(), outcome=result["outcome"], events=result["events"])

        return model, steps, finish

    def _steps(
        self,
        adapter: ChainAdapter,
        model: ChainModel,
        signature: Any,
        demos: list[Any],
        fields: dict[str, Any],
        records: list[Record] | None,
        config: dict[str, Any],
        chain_id: str,
        turn: int,
    ) -> Steps[dict[str, Any]]:
        options = self.options
        compact = model.profile.compact
        room = model.context_length - min(options.refine_tokens, options.turn_tokens)

        def render(kept: list[Record], reasoning: str) -> list[dict[str, str]]:
            document = render_pages(kept, compact=compact) if records is not None else kept[0]["context"]
            return adapter.format(signature, demos, {**fields, "prev_reasoning": reasoning, "document": document})

        # A caller without records (a plain DSPy call) has one opaque document, which is fitted as one window.
        pages = records if records is not None else [{"context": str(fields.get("document", ""))}]
        fitted = yield from fit_documents(
            render, pages, str(fields.get("prev_reasoning", "")), room, f"{chain_id}/refine", exact=model.exact
        )
        free = model.context_length - options.turn_tokens
        tokens = fitted.tokens
        if tokens > free:
            tokens = yield from count_or_bound(fitted.messages, free, f"{chain_id}/refine", exact=model.exact)
        most = max(1, min(options.turn_tokens, model.context_length - tokens))
        start = time.time()
        generation: Generation = yield Generate(
            fitted.messages, most, adapter.stop(), "refine", turn, f"{chain_id}/refine", config
        )
        text = cut_at(generation.text, adapter.stop())[0]
        information, outcome = read_refinement(text, options.language)
        event = {
            "type": "refine",
            "start": start,
            "end": time.time(),
            "query": fields.get("search_query", ""),
            "documents": len(fitted.records) if records is not None else 1,
            "chars_in": sum(len(r["context"]) for r in fitted.records),
            "chars_out": len(information),
            "outcome": outcome,
            **generation_facts(generation),
        }
        cuts = [{**cut, "start": start, "end": start} for cut in fitted.cuts]
        return {
            "final_information": information,
            "outcome": outcome,
            "document": render_pages(fitted.records, compact=compact)
            if records is not None
            else fitted.records[0]["context"],
            "events": [*cuts, event],
        }
