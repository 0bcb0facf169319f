"""Demos made fit to be shown: whole chains only, pages cut short, and no more of them than the context has room for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from programs.base import Program
from programs.language_model import ChainModel
from programs.operations import CountTokens
from programs.options import ChainOptions
from programs.refine import TRACED_CHARS
from retrieval.sentences import cjk_sentence_spans, sentence_spans
from runs.models.factory import Model
from runs.optimizing.whole_demos import is_whole
from signatures.adapter import ChainAdapter

_DOCUMENT_FIELDS = ("document", "documents")
_LEAST_KEPT = TRACED_CHARS // 2
"""A sentence end before this much of a page is no place to cut it."""
_NO_INPUTS = dict.fromkeys(("question", "prev_reasoning", "search_query", "document", "documents"), "")

Demo = Mapping[str, Any]


@dataclass(frozen=True)
class _Settled:
    demos: list[Any]
    tokens: int


class DemoSettler:
    """Settles the demos of candidates; each predictor's demos once, whoever asks and in whatever thread.

    Counting asks the model's tokenizer, so a coroutine calls `settle` with `asyncio.to_thread`.

    Args:
        model: The model that will be asked. Where its tokenizer cannot be reached, tokens are estimated.
        options: The program's options.
    """

    def __init__(self, model: Model, options: ChainOptions) -> None:
        self._model = ChainModel(model.lm, options.profile, options.context_length, options.seed)
        context = self._model.context_length
        self.most_tokens = (context - min(options.turn_tokens, context // 4)) // 2
        """Tokens that the demos of one prompt may have: half of what the largest output leaves of the context."""
        self._task = options.task
        self._known: dict[str, _Settled] = {}
        self._lock = threading.Lock()

    def settle(self, program: Program) -> None:
        """Make a program's demos fit to be shown; settling a settled program changes nothing.

        Left out are demos that are incomplete, break off in the middle of a query, or end without a valid answer.
        Documents in demos are cut to 2,000 characters at the end of a sentence or line. What does not fit goes from the
        end; of a profile that shows only the nearest few the largest go, until any few that may be shown together fit.

        Args:
            program: The candidate's program; its predictors get new lists of demos.

        Raises:
            ModelError: The tokenizer's server does not answer.
        """
        for _, predictor in predictors_of(program):
            settled = self._settled(predictor)
            if list(predictor.demos) != settled.demos:
                predictor.demos = list(settled.demos)

    def tokens(self, program: Program) -> dict[str, int]:
        """Return the tokens that the demos of each predictor take in one prompt, once settled.

        Args:
            program: A program; it is not changed.

        Returns:
            Predictor name to tokens; of a profile that shows only the nearest few the most they can take.

        Raises:
            ModelError: The tokenizer's server does not answer.
        """
        return {name: self._settled(predictor).tokens for name, predictor in predictors_of(program)}

    def _settled(self, predictor: Any) -> _Settled:
        if not predictor.demos:
            return _Settled([], 0)
        key = self._key(predictor, predictor.demos)
        known = self._known.get(key)
        if known is not None:
            return known
        with self._lock:
            if key not in self._known:
                found = self._fit(predictor)
                self._known[key] = self._known[self._key(predictor, found.demos)] = found
            return self._known[key]

    def _key(self, predictor: Any, demos: Sequence[Demo]) -> str:
        # A chat prompt repeats the instructions with every demo.
        parts = [predictor.layout.method, predictor.signature.instructions, [dict(demo.items()) for demo in demos]]
        text = json.dumps(parts, ensure_ascii=False, default=str, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def _fit(self, predictor: Any) -> _Settled:
        method = predictor.layout.method
        whole = [_shortened(demo) for demo in predictor.demos if is_whole(demo, method, self._task)]
        adapter = ChainAdapter(predictor.layout, self._model.profile)
        shown = self._model.profile.nearest_demos
        bare = self._count(adapter, predictor.signature, [])
        if shown is None or len(whole) <= shown:
            while whole:
                tokens = self._count(adapter, predictor.signature, whole) - bare
                if tokens <= self.most_tokens:
                    return _Settled(whole, tokens)
                whole = whole[:-1]
            return _Settled([], 0)
        sizes = [self._count(adapter, predictor.signature, [demo]) - bare for demo in whole]
        order = sorted(range(len(whole)), key=lambda i: (-sizes[i], -i))
        while order:
            largest = order[:shown]
            if sum(sizes[i] for i in largest) <= self.most_tokens:
                tokens = self._count(adapter, predictor.signature, [whole[i] for i in largest]) - bare
                if tokens <= self.most_tokens:
                    return _Settled([whole[i] for i in sorted(order)], tokens)
            order = order[1:]
        return _Settled([], 0)

    def _count(self, adapter: ChainAdapter, signature: Any, demos: Sequence[Demo]) -> int:
        return self._model.count(CountTokens(adapter.format(signature, demos, _NO_INPUTS)))


def predictors_of(program: Program) -> list[tuple[str, Any]]:
    """Return a program's predictors with their names: `reason`, and `refine` where it has one.

    Args:
        program: One of the four methods. `named_predictors` would leave out one that is hidden from an optimizer.
    """
    return [(name, found) for name in ("reason", "refine") if (found := getattr(program, name, None)) is not None]


def cut_document(text: str) -> str:
    """Cut a document to what a demo shows of it.

    Args:
        text: Rendered pages.

    Returns:
        At most 2,000 characters, ending with a line or a sentence where one ends in the second half of them, else with
        a word. A text of just that length was cut already, in the middle of whatever stood there, and is cut again.
    """
    if len(text) < TRACED_CHARS:
        return text
    start = text[:TRACED_CHARS]
    spans = [*sentence_spans(start)[:-1], *cjk_sentence_spans(start)[:-1]]
    ends = [end for _, end in spans] + [start.rfind("\n")]
    end = max(ends)
    if end < _LEAST_KEPT:
        end = start.rfind(" ")
    return start[:end].rstrip() if end >= _LEAST_KEPT else start


def _shortened(demo: Any) -> Any:
    """Return a demo with its documents cut, of the same type; itself where nothing is to be cut."""
    cut = {
        name: shorter
        for name in _DOCUMENT_FIELDS
        if isinstance(text := demo.get(name), str) and (shorter := cut_document(text)) != text
    }
    if not cut:
        return demo
    return demo.copy(**cut) if hasattr(demo, "toDict") else {**demo, **cut}
