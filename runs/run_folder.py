"""A run as it lies in its folder: what it was asked to do, what it answered, and whether that is all of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from metrics.kinds import HEADLINE
from runs.home import Home
from runs.journal import Journal, Record
from runs.json_file import write_json
from runs.summary import FAMILIES, Summary, summarise
from runs.tracking import read_note
from runs.user_path import user_path
from signatures.errors import DataError, OptionError

_JOURNAL, _FACTS, _PLAN, _SUMMARY = "journal.jsonl", "facts.json", "plan.json", "summary.json"
_NEEDED = ("question", "answers", "groups", "prediction", "finish", *FAMILIES)
_NEAREST = 5


@dataclass(frozen=True)
class RunFolder:
    """A run that was recorded before.

    Attributes:
        id: The run's id, the name of its folder.
        folder: The folder.
        facts: What makes the run what it is (see `runs.identity.run_facts`); empty for one that an earlier version of
            this package was stopped in.
        records: One a (question, sample), sample by sample; questions in their order where it was noted, else as they
            finished.
        missing: Samples that were asked for and are not recorded; None when it was stopped and nobody noted how many
            there should be. Questions that failed are recorded, and not missing.
        mlflow_run: MLflow's run id, or empty.
    """

    id: str
    folder: Path
    facts: dict[str, Any]
    records: list[Record] = field(repr=False)
    missing: int | None = 0
    mlflow_run: str = ""

    @property
    def journal(self) -> Path:
        """The file of its records."""
        return self.folder / _JOURNAL

    @property
    def complete(self) -> bool:
        """Whether everything asked for is recorded."""
        return self.missing == 0

    @property
    def headline(self) -> str:
        """The headline metric of its task; `em` where the task is not known."""
        return HEADLINE.get(str(self.facts.get("options", {}).get("task", "")), "em")

    @cached_property
    def by_question(self) -> dict[str, list[Record]]:
        """The records of each question, by its id, sample by sample."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record["id"], []).append(record)
        return found

    @cached_property
    def summary(self) -> Summary:
        """Its scores, made anew from the records."""
        return summarise(self.records, self.headline)


def note_start(folder: Path, facts: Mapping[str, Any], wanted: Iterable[tuple[str, int]], *, fresh: bool) -> None:
    """Note in a run's folder what it is and which answers are asked for, so that a stopped run is known as such.

    Args:
        folder: The run's folder; made if need be.
        facts: Made by `runs.identity.run_facts`.
        wanted: (question id, sample) of every answer asked for, in question order. What earlier starts asked for stays.
        fresh: Whether the run starts anew, so that earlier starts do not count.

    Raises:
        DataError: The folder cannot be written to.
    """
    plan = {} if fresh else _read_json(folder / _PLAN)
    for question_id, sample in wanted:
        plan[question_id] = max(plan.get(question_id, 0), sample + 1)
    write_json(folder / _FACTS, dict(facts))
    write_json(folder / _PLAN, plan)


def load_run(name: str | Path, home: Home | None = None) -> RunFolder:
    """Load a run.

    Args:
        name: The run's folder or its journal; or its id, the beginning of it, or another part of it (its hash), as long
            as only one run has it.
        home: Home folder whose runs are meant; by default the user's.

    Returns:
        The run, finished or not.

    Raises:
        OptionError: No run, or several, have this name; the text lists the nearest.
        DataError: Its files are damaged, or an id stands for two questions.
    """
    folder = _find(str(name), (home or Home()).runs)
    journal = Journal(folder / _JOURNAL)
    done = journal.read()
    _check(done, journal.path)
    plan = _read_json(folder / _PLAN)
    wanted = [(question_id, sample) for question_id, count in plan.items() for sample in range(count)]
    places = {question_id: place for place, question_id in enumerate(dict.fromkeys([*plan, *(i for i, _ in done)]))}
    records = sorted(done.values(), key=lambda record: (places[record["id"]], record["sample"]))
    missing: int | None = sum(key not in done for key in wanted)
    if not plan:
        # Earlier versions noted only the end of a run: how many questions it then had.
        summary = folder / _SUMMARY
        questions = int(_read_json(summary).get("questions", 0))
        missing = max(0, questions - len({i for i, _ in done})) if summary.is_file() else None
    return RunFolder(folder.name, folder, _read_json(folder / _FACTS), records, missing, read_note(folder)[0])


def _find(name: str, runs: Path) -> Path:
    """Return the folder that a name means."""
    path = user_path(name)
    if name and path.is_file() and path.name == _JOURNAL:
        return path.resolve().parent
    if name and (path / _JOURNAL).is_file():
        return path.resolve()
    known = sorted(entry.parent.name for entry in runs.glob(f"*/{_JOURNAL}"))
    if not known:
        raise OptionError(f"No run {name!r}: there is none in {runs}. Make one with: search-o1 evaluate")
    if name in known:
        return runs / name
    for found in ([i for i in known if i.startswith(name)], [i for i in known if name in i]):
        if len(found) == 1 and name:
            return runs / found[0]
        if found and name:
            listed = "".join(f"\n  {i}" for i in found[:20])
            raise OptionError(f"{name!r} may mean {len(found)} runs; give more of the name, or its hash:{listed}")
    nearest = difflib.get_close_matches(name, known, _NEAREST, 0.0)
    raise OptionError(f"No run {name!r} in {runs}. The nearest of {len(known)}:" + "".join(f"\n  {i}" for i in nearest))


def _check(done: Mapping[tuple[str, int], Record], path: Path) -> None:
    """Refuse records that no evaluation wrote, and ids that stand for two questions."""
    asked: dict[str, tuple[str, list[str]]] = {}
    for (question_id, sample), record in done.items():
        lacking = [name for name in _NEEDED if name not in record]
        if lacking:
            raise DataError(
                f"{path}: the record of {question_id!r}, sample {sample}, has no {', '.join(lacking)}; "
                "this is no journal of `search-o1 evaluate`."
            )
        now = record["question"], record["answers"]
        if asked.setdefault(question_id, now) != now:
            raise DataError(f"{path}: the id {question_id!r} stands for two questions; give each an id of its own.")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{path} is damaged; the run's own command writes it again.")
    return found
