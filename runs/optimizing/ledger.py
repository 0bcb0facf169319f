"""The ledger of an optimisation: every candidate, what each call cost, what each answer was worth.

An append-only JSONL file beside one JSON file a candidate. It survives being killed in the middle of a line, and a
second start of the same optimisation adds nothing twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from programs.saving import state_digest
from signatures.errors import DataError, ProgramError

Part = Literal["train", "val"]
_FAILED = "error"
_FIRST = "0"
_NAMED = 16
"""Characters of a digest that name a candidate's file."""


@dataclass(frozen=True)
class Trial:
    """A candidate that met validation questions.

    Attributes:
        number: Its number, in the order candidates were first seen; the start is 0.
        digest: SHA-256 of its state.
        score: Mean score on the validation questions it met, 0 to 1.
        n: How many it met.
        rejected: Why it made no model call, or empty.
        origin: Where it came from.
        tokens: Prompt and completion tokens of its chains, also those that the cache answered.
    """

    number: int
    digest: str
    score: float
    n: int
    rejected: str
    origin: str
    tokens: int


@dataclass
class Spent:
    """What the chains of an optimisation used; proposals of instructions are not among it.

    Attributes:
        questions: Questions put to a program.
        calls: Model calls.
        from_cache: Those of them that the cache answered when they were first counted.
        prompt_tokens: Tokens of their prompts.
        completion_tokens: Tokens generated.
        cost: US dollars, or None if no call told a price.
    """

    questions: int = 0
    calls: int = 0
    from_cache: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, usage: Mapping[str, Any], sign: int = 1) -> None:
        """Count a question's usage; `sign` -1 takes it off again."""
        self.questions += sign
        for name in ("calls", "from_cache", "prompt_tokens", "completion_tokens"):
            setattr(self, name, getattr(self, name) + sign * int(usage.get(name) or 0))
        if usage.get("cost") is not None:
            self.cost = (self.cost or 0.0) + sign * float(usage["cost"])


@dataclass
class _Entry:
    number: int
    origin: str
    rejected: str = ""
    calls: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    scores: dict[str, dict[tuple[str, str], float]] = field(default_factory=lambda: {"train": {}, "val": {}})
    spent: Spent = field(default_factory=Spent)


class Ledger:
    """Accounts for one optimisation; may be used from any thread.

    Args:
        folder: The optimisation's folder; what an earlier start left there is read.
        val: Ids of the validation questions.

    Raises:
        DataError: The file is damaged or cannot be written.
    """

    def __init__(self, folder: Path, val: Iterable[str]) -> None:
        self.path = folder / "ledger.jsonl"
        self.folder = folder / "candidates"
        self.val = frozenset(val)
        self._spent = Spent()
        self._entries: dict[str, _Entry] = {}
        self._starts: list[tuple[float, float]] = []
        self._finalists: list[str] | None = None
        self._lock = threading.RLock()
        self._read()

    def begin(self) -> None:
        """Note that a start of the optimisation begins now."""
        with self._lock:
            self._append({"kind": "start"})

    @property
    def seconds(self) -> float:
        """Wall time of all starts, each from its beginning to its last entry."""
        with self._lock:
            return sum(last - first for first, last in self._starts)

    def candidate(self, program: Any, origin: str = "") -> str:
        """Return the digest of a program's state; at first sight the state is stored with its origin.

        Args:
            program: One of the four methods.
            origin: Where it came from, for people.

        Returns:
            The SHA-256 of its state.

        Raises:
            DataError: The folder cannot be written.
        """
        state = lean_state(program)
        digest = state_digest(state)
        with self._lock:
            if digest not in self._entries:
                number = len(self._entries)
                content = {"digest": digest, "number": number, "origin": origin, "state": state}
                self._write(self._file(digest), json.dumps(content, ensure_ascii=False, indent=1))
                self._entries[digest] = _Entry(number, origin)
                self._append({"kind": "candidate", "candidate": digest, "origin": origin})
        return digest

    def reject(self, digest: str, reason: str) -> None:
        """Note why a candidate makes no model call."""
        with self._lock:
            entry = self._entries[digest]
            if entry.rejected != reason:
                entry.rejected = reason
                self._append({"kind": "rejected", "candidate": digest, "reason": reason})

    def add(
        self,
        digest: str,
        question_id: str,
        part: Part | Literal[""] = "",
        score: float | None = None,
        usage: Mapping[str, Any] | None = None,
        finish: str = "",
        *,
        rollout: str = _FIRST,
    ) -> None:
        """Note a chain's usage, its score, or both. What was noted before stays, unless that chain had failed.

        Args:
            digest: The candidate.
            question_id: The question.
            part: Where the question belongs; needed with a score.
            score: Score, 0 to 1, or None if it is not judged yet.
            usage: `calls`, `from_cache`, `prompt_tokens`, `completion_tokens`, `cost`; None if only the score is noted.
            finish: How the chain ended; needed with a usage.
            rollout: Round of sampling that the optimizer asked for; `0` is the one that counts. For answers of another
                model than the one optimised for, its name and a slash come first.

        Raises:
            DataError: The file cannot be written.
        """
        row: dict[str, Any] = {"kind": "answer", "candidate": digest, "question": question_id, "rollout": rollout}
        if usage is not None:
            row |= {"finish": finish, "usage": dict(usage)}
        if score is not None:
            row |= {"part": part, "score": float(score)}
        with self._lock:
            if self._count(row):
                self._append(row)

    @property
    def spent(self) -> Spent:
        """What has been used so far, earlier starts included."""
        with self._lock:
            return Spent(**vars(self._spent))

    def scores(self, digest: str, part: Part = "val") -> dict[str, float]:
        """Return a candidate's scores by question id, of its first round of sampling."""
        with self._lock:
            entry = self._entries.get(digest)
            if entry is None:
                return {}
            return {question: score for (question, rollout), score in entry.scores[part].items() if rollout == _FIRST}

    def failed(self, digest: str) -> int:
        """Return how many of a candidate's answers failed, of its first round of sampling."""
        with self._lock:
            calls = self._entries[digest].calls
            return sum(call["finish"] == _FAILED for (_, rollout), call in calls.items() if rollout == _FIRST)

    def is_whole(self, digest: str) -> bool:
        """Say whether a candidate met every validation question."""
        return self.val <= self.scores(digest).keys()

    def best(self) -> tuple[str, float, int] | None:
        """Return the best candidate by its mean validation score.

        Candidates that met every validation question come before others, rejected ones never; of equals the earlier.

        Returns:
            (digest, mean score, number of validation questions it met), or None when no candidate met any.
        """
        with self._lock:
            ranked = [
                (len(scores) >= len(self.val), sum(scores.values()) / len(scores), -entry.number, digest, len(scores))
                for digest, entry in self._entries.items()
                if not entry.rejected and (scores := self._on_val(digest))
            ]
        if not ranked:
            return None
        _, mean, _, digest, n = max(ranked)
        return digest, mean, n

    def promising(self, most: int) -> list[str]:
        """Return candidates that have not met every validation question yet and are worth it.

        Args:
            most: How many at most from each list: the best by the validation questions they met, and of those that met
                none the best by all the training questions they met.

        Returns:
            Their digests, the best first.
        """
        with self._lock:
            partly: list[tuple[float, int, str]] = []
            unseen: list[tuple[float, int, str]] = []
            for digest, entry in self._entries.items():
                if entry.rejected or self.is_whole(digest):
                    continue
                on_val = self._on_val(digest)
                own = [score for (_, rollout), score in entry.scores["train"].items() if "/" not in rollout]
                scores = list(on_val.values()) or own
                if scores:
                    (partly if on_val else unseen).append((sum(scores) / len(scores), -entry.number, digest))
        chosen = [*sorted(partly, reverse=True)[:most], *sorted(unseen, reverse=True)[:most]]
        return [digest for _, _, digest in chosen]

    def finalists(self, most: int) -> list[str]:
        """Return the candidates to measure on all of validation, chosen once: a later start measures the same ones.

        Args:
            most: As for `promising`.

        Returns:
            Their digests, the best first.
        """
        with self._lock:
            if self._finalists is None:
                self._finalists = self.promising(most)
                self._append({"kind": "finalists", "candidates": self._finalists})
            return list(self._finalists)

    def trials(self) -> list[Trial]:
        """Return the candidates that met validation questions, or were rejected, in the order they were first seen."""
        with self._lock:
            return [
                self._trial(digest, entry)
                for digest, entry in self._entries.items()
                if entry.rejected or self._on_val(digest)
            ]

    def trial(self, digest: str) -> Trial:
        """Return one candidate's trial; its score is 0 while it met no validation question."""
        with self._lock:
            return self._trial(digest, self._entries[digest])

    def state(self, digest: str) -> dict[str, Any]:
        """Return a candidate's state as it was stored.

        Raises:
            ProgramError: Its file is gone or damaged.
        """
        path = self._file(digest)
        try:
            state: dict[str, Any] = json.loads(path.read_bytes())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            state = {}
        if state_digest(state) != digest:
            raise ProgramError(f"{path} is gone or damaged; remove {path.parent.parent} and start again.")
        return state

    def _on_val(self, digest: str) -> dict[str, float]:
        return {question: score for question, score in self.scores(digest).items() if question in self.val}

    def _trial(self, digest: str, entry: _Entry) -> Trial:
        scores = list(self._on_val(digest).values())
        mean = sum(scores) / len(scores) if scores else 0.0
        return Trial(entry.number, digest, mean, len(scores), entry.rejected, entry.origin, entry.spent.tokens)

    def _file(self, digest: str) -> Path:
        return self.folder / f"{digest[:_NAMED]}.json"

    def _count(self, row: Mapping[str, Any]) -> bool:
        """Take a row into account; returns whether it said anything new."""
        entry = self._entries[row["candidate"]]
        key, new = (row["question"], row["rollout"]), False
        if "usage" in row:
            known = entry.calls.get(key)
            new = known is None or (known["finish"] == _FAILED and row["finish"] != _FAILED)
            if new:
                for spent in (entry.spent, self._spent):
                    if known is not None:
                        spent.add(known["usage"], -1)
                    spent.add(row["usage"])
                entry.calls[key] = {"finish": row["finish"], "usage": row["usage"]}
        if "score" in row:
            scores = entry.scores[row["part"]]
            new = new or scores.get(key) != row["score"]
            scores[key] = row["score"]
        return new

    def _read(self) -> None:
        if not self.path.is_file():
            return
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
                self._clock(row)
                if row["kind"] == "candidate":
                    self._entries.setdefault(row["candidate"], _Entry(len(self._entries), row["origin"]))
                elif row["kind"] == "rejected":
                    self._entries[row["candidate"]].rejected = row["reason"]
                elif row["kind"] == "finalists":
                    self._finalists = row["candidates"]
                elif row["kind"] == "answer":
                    self._count(row)
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    f"{self.path}, line {number}: damaged; remove that line, or the folder {self.path.parent} to start "
                    "anew (model replies stay in the cache)."
                ) from None
        if len(whole) < len(content):
            # The next line must not be written onto one that a crash cut off.
            os.truncate(self.path, len(whole))

    def _clock(self, row: Mapping[str, Any]) -> None:
        if row["kind"] == "start" or not self._starts:
            self._starts.append((row["time"], row["time"]))
        self._starts[-1] = (self._starts[-1][0], max(self._starts[-1][1], row["time"]))

    def _append(self, row: dict[str, Any]) -> None:
        row["time"] = round(time.time(), 1)
        self._clock(row)
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(line)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _write(self, path: Path, text: str) -> None:
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(text.encode("utf-8", "surrogatepass"))
            draft.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error


def lean_state(program: Any) -> dict[str, Any]:
    """Return a program's state with what its prompts are made of, and nothing that an optimizer left behind."""
    return {
        name: {**predictor, "traces": [], "train": [], "lm": None} for name, predictor in program.dump_state().items()
    }


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be written: {error.strerror}. Make room and start again.")
