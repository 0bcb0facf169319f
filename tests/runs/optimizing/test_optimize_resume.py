"""Killed and interrupted optimisations: the same command goes on, and nothing is paid for twice."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import Any

from programs.saving import read_compiled
from tests.runs.world import interrupt, wait_until


def asked(calls: list[Any]) -> Counter[tuple[str, int | None]]:
    return Counter((call.prompt, call.body.get("seed")) for call in calls)


def test_a_killed_optimisation_goes_on_and_repeats_no_model_call(workshop) -> None:
    here = workshop(latency=0.05)
    process = here.start()
    wait_until(lambda: here.ledger_lines() >= 40)
    process.kill()
    process.communicate()
    before = asked(here.server.calls)
    here.server.latency = 0.0
    done = here.optimize(concurrency=2)
    total = asked(here.server.calls)
    assert sum(before.values()) < sum(total.values())
    twice = {what for what, count in total.items() if count > 1}
    # Only what was in flight at the kill, or written down a moment too late, is asked again.
    assert len(twice) <= 4
    assert (done.before.mean, done.after.mean, done.interrupted) == (0.0, 1.0, False)
    calls = here.generations()
    assert len(list(here.home.root.glob("optimizations/*"))) == 1
    again = here.optimize(concurrency=2)
    assert here.generations() == calls
    assert (again.id, again.after, again.spent) == (done.id, done.after, done.spent)
    assert read_compiled(again.file).digest == read_compiled(done.file).digest


def test_ctrl_c_stops_soon_keeps_the_best_so_far_and_says_how_to_go_on(workshop) -> None:
    here = workshop(latency=0.2)
    process = here.start()
    wait_until(lambda: '"score": 1.0' in _ledger(here))
    seconds = interrupt(process)
    out, err = process.communicate()
    assert seconds < 30  # a loaded machine is slow; the stop itself takes about two seconds
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    assert "this is the best so far. The same command goes on from here." in out
    (file,) = here.home.programs.glob("*.json")
    assert read_compiled(file).metadata["interrupted"] is True
    here.server.latency = 0.0
    calls = asked(here.server.calls)
    done = here.optimize(concurrency=2)
    assert (done.file, done.interrupted, done.after.mean) == (file, False, 1.0)
    assert read_compiled(file).metadata["interrupted"] is False
    assert sum(count > 1 for count in (asked(here.server.calls) - calls + calls).values()) <= 4


def test_ctrl_c_twice_changes_nothing(workshop) -> None:
    here = workshop(latency=0.2)
    process = here.start()
    wait_until(lambda: '"part": "train"' in _ledger(here) or here.ledger_lines() > 30)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    (file,) = here.home.programs.glob("*.json")
    assert read_compiled(file).metadata["interrupted"] is True


def test_ctrl_c_before_anything_is_known_writes_nothing(workshop) -> None:
    here = workshop(latency=20.0)
    process = here.start()
    wait_until(lambda: here.server.running > 0)
    assert interrupt(process) < 30
    process.communicate()
    assert process.returncode != 0
    assert not list(here.home.programs.glob("*.json"))


def _ledger(here: Any) -> str:
    return "".join(path.read_text() for path in here.home.root.glob("optimizations/*/ledger.jsonl"))
