"""Measures each optimizer at `light` against the scripted server: `python -m tests.runs.optimizing.measure_optimizers`.

Six training and four validation questions; the model answers at once, so the time is the optimizer's and ours.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from runs.optimizing.optimizers import OPTIMIZERS
from tests.runs.optimizing.optimizer_world import Rewarding, generations, run
from tests.runs.world import Films
from tests.servers.lm import LMServer


def measure(optimizer: str) -> str:
    """Run an optimizer twice and return a row: calls, tokens, seconds, scores, calls of the second start."""
    rewarded = "demo" if OPTIMIZERS[optimizer].makes_demos else "instruction"
    model = Rewarding(rewarded)
    with tempfile.TemporaryDirectory() as scratch, LMServer(model) as server:
        films = Films(Path(scratch), server, 10)
        began = time.monotonic()
        done = run(films, optimizer=optimizer, budget="light")
        seconds, calls = time.monotonic() - began, len(generations(films))
        proposals = model.proposals
        run(films, optimizer=optimizer, budget="light")
        again = len(generations(films)) - calls
    scores = f"{100 * done.before.mean:.0f} → {100 * done.after.mean:.0f}"
    return f"| {optimizer} | {calls} | {proposals} | {done.spent.tokens:,} | {seconds:.1f} | {scores} | {again} |"


if __name__ == "__main__":
    print("| optimizer | calls | of them proposals | tokens of chains | seconds | score | calls of a second start |")
    print("|---|---|---|---|---|---|---|")
    for name in OPTIMIZERS:
        print(measure(name), flush=True)
