"""The ledger of an optimisation: every candidate, what each call cost, what each answer was worth.

An append-only JSONL file beside one JSON file a candidate. It survives being killed in the middle of a line, and a
second start of the same optimisation adds nothing twice.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from programs.saving import state_digest
from runs.optimizing.accounts import FAILED, FIRST, Account, Part, Spent, Trial
from runs.optimizing.ledger_files import CandidateFiles, LedgerFile, lean_state


class Ledger:
    """Accounts for one optimisation; may be used from any thread.

    Args:
        folder: The optimisation's folder; what an earlier start left there is read.
        val: Ids of the validation questions.

    Raises:
        DataError: The file is damaged or cannot be written.
    """

    def __init__(self, folder: Path, val: Iterable[str]) -> None:
        self.folder = folder
        self._file = LedgerFile(folder / "ledger.jsonl")
        self._candidates = CandidateFiles(folder / "candidates")
        self.val = frozenset(val)
        self._spent = Spent()
        self._entries: dict[str, Account] = {}
        self._finalists: list[str] | None = None
        self._failed: set[tuple[str, str, str]] = set()
        self._proposed: Counter[str] = Counter()
        self._proposing: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._read()

    def begin(self) -> None:
        """Note that a start of the optimisation begins now."""
        with self._lock:
            self._file.append({"kind": "start"})

    @property
    def seconds(self) -> float:
        """Wall time of all starts, each from its beginning to its last entry."""
        with self._lock:
            return self._file.seconds

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
                self._candidates.write(digest, number, origin, state)
                self._entries[digest] = Account(number, origin)
                self._file.append({"kind": "candidate", "candidate": digest, "origin": origin})
        return digest

    def reject(self, digest: str, reason: str) -> None:
        """Note why a candidate makes no model call."""
        with self._lock:
            entry = self._entries[digest]
            if entry.rejected != reason:
                entry.rejected = reason
                self._file.append({"kind": "rejected", "candidate": digest, "reason": reason})

    def add(
        self,
        digest: str,
        question_id: str,
        part: Part | Literal[""] = "",
        score: float | None = None,
        usage: Mapping[str, Any] | None = None,
        finish: str = "",
        *,
        rollout: str = FIRST,
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
            if usage is not None:
                (self._failed.add if finish == FAILED else self._failed.discard)((digest, question_id, rollout))
            if self._count(row):
                self._file.append(row)

    def propose(self, model: str, usage: Mapping[str, Any]) -> None:
        """Note what a proposal cost, once: a later start repeats the same proposals from the cache.

        Args:
            model: The model that was asked.
            usage: `prompt_tokens`, `completion_tokens`, `cost`.

        Raises:
            DataError: The file cannot be written.
        """
        row = {"kind": "proposal", "model": model, "usage": dict(usage)}
        key = _proposal_key(row)
        with self._lock:
            self._proposing[key] += 1
            if self._proposing[key] > self._proposed[key]:
                self._take(row)
                self._file.append(row)

    def failures(self) -> int:
        """Return how many answers of this start failed, of all candidates and rounds."""
        with self._lock:
            return len(self._failed)

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
            return {question: score for (question, rollout), score in entry.scores[part].items() if rollout == FIRST}

    def is_whole(self, digest: str) -> bool:
        """Say whether a candidate met every validation question."""
        return self.val <= self.scores(digest).keys()

    def best(self) -> tuple[str, float, int] | None:
        """Return the best candidate by its mean validation score.

        Candidates that met every validation question come before others, rejected ones never. Of equals the one of
        which more chains ended in an answer comes first, then the earlier.

        Returns:
            (digest, mean score, number of validation questions it met), or None when no candidate met any.
        """
        with self._lock:
            ranked = [
                (
                    len(scores) >= len(self.val),
                    sum(scores.values()) / len(scores),
                    entry.answered(scores) / len(scores),
                    -entry.number,
                    digest,
                    len(scores),
                )
                for digest, entry in self._entries.items()
                if not entry.rejected and (scores := self._on_val(digest))
            ]
        if not ranked:
            return None
        _, mean, _, _, digest, n = max(ranked)
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
                self._file.append({"kind": "finalists", "candidates": self._finalists})
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
        return self._candidates.state(digest)

    def _on_val(self, digest: str) -> dict[str, float]:
        return {question: score for question, score in self.scores(digest).items() if question in self.val}

    def _trial(self, digest: str, entry: Account) -> Trial:
        scores = list(self._on_val(digest).values())
        mean = sum(scores) / len(scores) if scores else 0.0
        return Trial(entry.number, digest, mean, len(scores), entry.rejected, entry.origin, entry.spent.tokens)

    def _count(self, row: Mapping[str, Any]) -> bool:
        """Take a row into account; returns whether it said anything new."""
        entry = self._entries[row["candidate"]]
        key = row["question"], row["rollout"]
        new = "usage" in row and entry.add(key, row["finish"], row["usage"], self._spent)
        if "score" in row:
            scores = entry.scores[row["part"]]
            new = new or scores.get(key) != row["score"]
            scores[key] = row["score"]
        return new

    def _take(self, row: Mapping[str, Any]) -> None:
        match row["kind"]:
            case "candidate":
                self._entries.setdefault(row["candidate"], Account(len(self._entries), row["origin"]))
            case "rejected":
                self._entries[row["candidate"]].rejected = row["reason"]
            case "finalists":
                self._finalists = list(row["candidates"])
            case "answer":
                self._count(row)
            case "proposal":
                self._proposed[_proposal_key(row)] += 1
                self._spent.propose(row["usage"])

    def _read(self) -> None:
        for number, row in enumerate(self._file.rows(), 1):
            try:
                self._take(row)
            except (KeyError, TypeError, AttributeError):
                raise self._file.damaged(number) from None


def _proposal_key(row: Mapping[str, Any]) -> str:
    return json.dumps([row["model"], row["usage"]], sort_keys=True)
