"""What optimizers compile: a program in a wrapper that checks it, accounts for it, and survives its failures."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dspy

from programs.base import Program
from retrieval.caching.replay import asking_for
from runs.benchmarks.question import Question
from runs.contamination import watching
from runs.optimizing.accounts import FIRST
from runs.optimizing.session import Session
from signatures.errors import SearchO1Error

REJECTED = "rejected"
"""Finish reason of a candidate that made no model call because it lost its protocol."""

_SHOWN = ("reasoning", "answer", "finish", "error", "rejection")
_NOTHING: dict[str, Any] = {
    "answer": "", "reasoning": "", "searches": [], "events": [], "usage": {}, "turns": 0, "malformed": 0, "error": "",
    "error_kind": "",
}  # fmt: skip


class CandidatePrediction(dspy.Prediction):  # type: ignore[misc]
    """A prediction that shows optimizers the chain, not its accounts.

    They write `dict(prediction)` into prompts, and events hold times: the prompt would be another one each time. All
    fields are there as attributes, by name, and in `toDict()`.
    """

    def keys(self, include_dspy: bool = False) -> list[str]:
        """Return the names of the fields shown."""
        return [name for name in super().keys(include_dspy) if name in _SHOWN]

    def values(self, include_dspy: bool = False) -> list[Any]:
        """Return the values of the fields shown."""
        return [self[name] for name in self.keys(include_dspy)]

    def items(self, include_dspy: bool = False) -> list[tuple[str, Any]]:
        """Return the fields shown."""
        return [(name, self[name]) for name in self.keys(include_dspy)]

    def __iter__(self) -> Any:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"CandidatePrediction({dict(self.items())!r})"


@dataclass(frozen=True)
class _Call:
    """One question put to a candidate: what it is known by in cache and ledger."""

    digest: str
    rejection: str
    question: Question
    round: str
    lm: Any


class Candidate(dspy.Module):  # type: ignore[misc]
    """A program as optimizers get it: its predictors are `program.reason` and `program.refine`.

    A question that fails is an answer like any other, with finish `error`; a candidate that lost the protocol makes no
    model call and answers with finish `rejected`. Each question is sampled under its own rollout id, joined with the
    round that the optimizer asks for, so that the same command finds every reply in the cache.

    Args:
        program: One of the four methods.
        session: The optimisation it belongs to.
    """

    def __init__(self, program: Program, session: Session) -> None:
        super().__init__()
        self.program = program
        self.session = session
        self.lm: Any = None

    def forward(self, **inputs: Any) -> CandidatePrediction:
        """Answer a question with a blocking call.

        Args:
            **inputs: `question`; for code also `question_title` and `starter_code`.

        Returns:
            The program's prediction with `candidate` (digest), `question_id`, `rollout`, `rejection` and
            `contamination` (flags of what was found) beside its own fields.

        Raises:
            Stopped: The optimisation was told to stop.
        """
        with self._failing():
            call = self._begin(inputs)
            with self.session.alone(call.digest, call.question.id, call.round, str(call.lm.kwargs.get("temperature"))):
                return self.session.run(self._answer(call, inputs))

    async def aforward(self, **inputs: Any) -> CandidatePrediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        with self._failing():
            return await self._answer(await asyncio.to_thread(self._begin, inputs), inputs)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """End the optimisation with an error that no answer is to blame for, such as a full disk."""
        try:
            yield
        except SearchO1Error as error:
            raise self.session.fail(error) from error

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return the predictors that are improved; a frozen one is hidden from every optimizer."""
        only = self.session.only
        found: list[tuple[str, Any]] = super().named_parameters()
        return [(name, value) for name, value in found if only is None or name == f"program.{only}"]

    def set_lm(self, lm: Any) -> None:
        """Set the language model of this copy, also for predictors that are not improved.

        A temperature that it names comes before that of the program's options: samples at temperature 0 never differ.
        """
        self.lm = lm
        asked = getattr(lm, "kwargs", {}).get("temperature")
        for name in ("reason", "refine"):
            predictor = getattr(self.program, name, None)
            if predictor is not None:
                kept = {field: value for field, value in predictor.config.items() if field != "temperature"}
                predictor.config = kept if asked is None else {**kept, "temperature": asked}

    def get_lm(self) -> Any:
        """Return the language model of this copy, or None."""
        return self.lm

    def __deepcopy__(self, memo: dict[int, Any]) -> Candidate:
        twin = type(self).__new__(type(self))
        # A language model is a connection.
        memo |= {id(self): twin, id(self.lm): self.lm}
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin

    def _begin(self, inputs: Mapping[str, Any]) -> _Call:
        session = self.session
        session.check()
        digest, rejection = session.admit(self.program)
        lm = self.lm or dspy.settings.lm
        return _Call(digest, rejection, session.question_of(inputs), str(lm.kwargs.get("rollout_id") or 0), lm)

    async def _answer(self, call: _Call, inputs: Mapping[str, Any]) -> CandidatePrediction:
        session, flags = self.session, []
        if call.rejection:
            found = {**_NOTHING, "finish": REJECTED}
        else:
            with watching(call.question) as watch:
                found = await self._ask(call, inputs)
            flags = watch.flags()
        own = session.model in ("", call.lm.model)
        sampled = self._sampled(call) if own else f"{call.lm.model}/{call.round}"
        if not call.rejection:
            usage, finish = found["usage"] or {}, str(found["finish"])
            session.ledger.add(call.digest, call.question.id, usage=usage, finish=finish, rollout=sampled)
        for listener in session.on_answer:
            listener(call.digest)
        return CandidatePrediction(
            **found,
            candidate=call.digest,
            question_id=call.question.id,
            rollout=sampled,
            rejection=call.rejection,
            contamination=flags,
        )

    def _sampled(self, call: _Call) -> str:
        """Name the round of sampling: the first one at another temperature than usual is no score of the candidate."""
        asked, usual = call.lm.kwargs.get("temperature"), dspy.settings.lm.kwargs.get("temperature")
        plain = self.lm is None or call.round != FIRST or asked in (None, usual)
        return call.round if plain else f"{FIRST}@{asked:g}"

    def _sampling_program(self, call: _Call) -> Program:
        """Return the program to run: in a further round a copy that samples as the optimizer wants.

        BootstrapFewShot asks for further samples through the language model, whose temperature the program's own
        options would come before.
        """
        temperature = call.lm.kwargs.get("temperature")
        if self.lm is not None or call.round == FIRST or temperature is None:
            return self.program
        twin = Candidate(self.program.deepcopy(), self.session)
        twin.set_lm(call.lm)
        return twin.program

    async def _ask(self, call: _Call, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the program under its rollout id; a failure becomes the fields of an answer."""
        outer = dspy.settings.trace
        trace: list[Any] | None = None if outer is None else []
        rollout = f"{self.session.seed}/{call.question.id}/{call.round}"
        program = self._sampling_program(call)
        try:
            with (
                asking_for(f"{program.method}/{rollout}"),
                dspy.context(
                    lm=call.lm.copy(rollout_id=rollout), trace=trace, disable_history=True, usage_tracker=None
                ),
            ):
                found: dict[str, Any] = (await program.acall(**inputs)).toDict()
        except Exception as error:
            kind = error.kind if isinstance(error, SearchO1Error) else "unexpected"
            text = str(error) if isinstance(error, SearchO1Error) else f"{type(error).__name__}: {error}"
            return {**_NOTHING, "finish": "error", "error": text, "error_kind": kind}
        if outer is not None and trace:
            # Optimizers look up every predictor of the trace among those they improve.
            asked = {id(value): name for name, value in Candidate(program, self.session).named_parameters()}
            improved = dict(self.named_parameters())
            outer.extend((improved[asked[id(entry[0])]], *entry[1:]) for entry in trace if id(entry[0]) in asked)
        return found
