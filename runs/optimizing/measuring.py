"""Putting a candidate to questions outside an optimizer: before, after, and for those that come into question."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runs.optimizing.accounts import FAILED
from runs.optimizing.candidate import Candidate
from runs.optimizing.session import AccountedMetric
from signatures.errors import ModelError


def measure(candidate: Candidate, examples: Sequence[Any], metric: AccountedMetric, threads: int) -> list[Any]:
    """Put a candidate to questions, several at a time; answers and scores go to the ledger.

    Args:
        candidate: The candidate; its language model is that of the caller's DSPy context.
        examples: The questions.
        metric: The metric.
        threads: Questions at a time.

    Returns:
        The predictions, in order.

    Raises:
        Stopped: The optimisation was told to stop.
        ModelError: Every question failed: an optimizer would take a dead server for a hopeless prompt.
    """

    def one(example: Any) -> Any:
        prediction = candidate(**example.inputs())
        metric(example, prediction)
        return prediction

    with ThreadPoolExecutor(min(threads, max(1, len(examples))), "search-o1-measure") as pool:
        futures = [pool.submit(contextvars.copy_context().run, one, example) for example in examples]
        try:
            predictions = [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    failed = [prediction.error for prediction in predictions if prediction.finish == FAILED]
    if failed and len(failed) == len(predictions):
        raise ModelError(f"Every question failed, so nothing can be learned from them; the first one: {failed[0]}")
    return predictions
