"""What must not pass for a hopeless prompt: a dead server, a full disk, a second start, calls that nobody counts."""

from __future__ import annotations

import io
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runs.optimizing.ledger import Ledger
from runs.optimizing.ledger_files import LedgerFile
from runs.optimizing.one_start import the_only_start
from runs.optimizing.optimizers import OPTIMIZERS
from signatures.errors import DataError, ModelError, ProgramError
from tests.runs.optimizing.optimize_world import TRAIN, model_that_must_be_shown, shows_a_chain
from tests.runs.optimizing.optimizer_world import Rewarding, run
from tests.runs.world import Films, facts, write_lines
from tests.servers.lm_requests import ApiError

MakeFilms = Callable[..., Films]


def test_a_server_that_fails_after_the_start_was_measured_ends_the_optimisation_with_its_error(workshop) -> None:
    knowing, broken = model_that_must_be_shown(), [True]

    def reply(prompt: str, body: dict[str, Any]) -> str:
        if broken and shows_a_chain(prompt):
            raise ApiError("the key has expired", status=401)
        return knowing(prompt, body)

    here = workshop(reply)
    with pytest.raises(ModelError, match="Every question failed, so nothing can be learned"):
        here.optimize()
    broken.clear()
    assert here.optimize().after.mean == 1.0


def test_answers_that_failed_are_told_and_asked_again(workshop) -> None:
    knowing, broken = model_that_must_be_shown(), {list(facts(TRAIN + 3))[-1]}

    def reply(prompt: str, body: dict[str, Any]) -> str:
        if any(film in prompt for film in broken):
            raise ApiError("the key has expired", status=401)
        return knowing(prompt, body)

    here = workshop(reply)
    out = io.StringIO()
    done = here.optimize(Console(file=out, width=200))
    assert done.metadata["failed_answers"] >= 2
    assert f"{done.metadata['failed_answers']} of {done.spent.questions} answers failed" in out.getvalue()
    broken.clear()
    assert here.optimize(force=True).metadata["failed_answers"] == 0


def test_an_error_that_no_answer_is_to_blame_for_ends_the_optimisation(workshop) -> None:
    here = workshop()

    class Full(Ledger):
        """A ledger on a disk that is full after the start."""

        def add(self, *args: Any, **kwargs: Any) -> None:
            if len(self._entries) > 1:
                raise DataError("ledger.jsonl cannot be written: No space left on device. Make room and start again.")
            super().add(*args, **kwargs)

    from runs.optimizing import optimize as module

    kept = module.Ledger
    module.Ledger = Full
    try:
        with pytest.raises(DataError, match="No space left on device"):
            here.optimize()
    finally:
        module.Ledger = kept
    assert here.optimize().after.mean == 1.0


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Limit the size of files as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_row_that_no_longer_fits_leaves_the_ledger_readable(tmp_path: Path, small_files) -> None:
    file = LedgerFile(tmp_path / "ledger.jsonl")
    file.append({"kind": "start"})
    whole = file.path.read_bytes()
    small_files(len(whole) + 5)
    with pytest.raises(DataError, match="cannot be written"):
        file.append({"kind": "start", "long": "x" * 100})
    small_files(resource.RLIM_INFINITY)
    assert file.path.read_bytes() == whole
    file.append({"kind": "start"})
    assert len(list(LedgerFile(file.path).rows())) == 2


def test_one_start_at_a_time(tmp_path: Path) -> None:
    refused = pytest.raises(ProgramError, match="is being run by another process")
    with the_only_start(tmp_path / "o"), refused, the_only_start(tmp_path / "o"):
        raise AssertionError("two starts at once")
    with the_only_start(tmp_path / "o"):
        pass


def test_how_many_are_asked_at_a_time_changes_neither_the_calls_nor_the_program(workshop) -> None:
    here = workshop(model_that_must_be_shown(40))
    rows = [json.loads(line) for line in here.train.read_text(encoding="utf-8").splitlines()]
    many = [{**row, "id": f"{row['id']}-{n}", "question": f"{row['question']} ({n})"} for n in range(4) for row in rows]
    train = write_lines(here.folder / "many.jsonl", many)
    one = here.optimize(train=train, concurrency=1, budget=4)
    calls = here.generations()
    eight = here.optimize(train=train, concurrency=8, budget=4)
    assert len(many) == 4 * TRAIN
    # The questions that were under way when enough chains were fit.
    assert here.generations() - calls < 8 * 3
    assert eight.id == one.id
    assert eight.program.dump_state() == one.program.dump_state()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_call_is_accounted_for(films: MakeFilms, optimizer: str) -> None:
    model = Rewarding("demo" if OPTIMIZERS[optimizer].makes_demos else "instruction")
    world = films(10, model)
    done = run(world, optimizer=optimizer, budget=6, seed=1)
    assert done.spent.proposals == model.proposals
    assert done.spent.calls - done.spent.from_cache + done.spent.proposals == len(world.server.calls)
    again = run(world, optimizer=optimizer, budget=6, seed=1)
    assert (again.spent.proposals, again.spent.tokens) == (done.spent.proposals, done.spent.tokens)


def test_further_rounds_of_bootstrapping_sample_also_where_the_options_are_greedy(films: MakeFilms) -> None:
    greedy = {"sampling": {"temperature": 0.0}, "refine_sampling": {"temperature": 0.0}}
    world = films(10, lambda prompt, body: "I guess.\n\n\\boxed{a guess}")
    run(world, optimizer="bootstrap", budget=12, options=greedy)
    assert {call.body["temperature"] for call in world.server.calls} == {0.0, 1.0}


@pytest.mark.parametrize("only", ["reason", "refine"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_other_predictor_stays_as_it_was_in_every_candidate(films: MakeFilms, optimizer: str, only: str) -> None:
    world = films(10, Rewarding("demo" if OPTIMIZERS[optimizer].makes_demos else "instruction"))
    done = run(world, optimizer=optimizer, only=only, budget=2)
    frozen = "refine" if only == "reason" else "reason"
    states = [json.loads(path.read_text())["state"] for path in (done.folder / "candidates").glob("*.json")]
    if (optimizer, only) != ("gepa", "refine"):
        # There the model writes no query before its instruction changes, so there is no refinement to reflect on.
        assert len(states) > 1
    assert len({json.dumps([state[frozen]["demos"], state[frozen]["signature"]]) for state in states}) == 1


def test_a_place_that_cannot_be_written_to_is_refused_before_anything_is_paid_for(workshop) -> None:
    here = workshop()
    with pytest.raises(ProgramError, match=r"cannot be written: .*Choose another place with --output"):
        here.optimize(output=str(here.train / "x.json"))
    assert here.generations() == 0


def test_force_replaces_programs_and_nothing_else(workshop) -> None:
    here = workshop()
    notes = here.folder / "notes.json"
    notes.write_text("{}")
    with pytest.raises(ProgramError, match="no compiled program, so --force does not replace it"):
        here.optimize(output=str(notes), force=True)
    assert notes.read_text() == "{}"
