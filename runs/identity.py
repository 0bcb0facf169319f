"""A run's identity: the hash of what changes its results, so that the same command goes on with a killed run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from metrics.version import METRICS_VERSION
from programs.saving import CompiledProgram, state_digest
from runs.models.factory import Model
from runs.retrieval_setup import Retrieval


def run_facts(
    *,
    benchmark: str,
    split: str,
    data_hash: str,
    method: str,
    program: Any,
    model: Model,
    retrieval: Retrieval | None,
    compiled: CompiledProgram | None,
    fallback: str | None,
) -> dict[str, Any]:
    """Collect what changes a run's results; concurrency, tracing, limits and the number of samples are left out.

    Args:
        benchmark: Name of the benchmark or file.
        split: Split.
        data_hash: Hash of all questions of the split.
        method: The method.
        program: Its program.
        model: The language model.
        retrieval: Search and reader, or None.
        compiled: The compiled program loaded, or None.
        fallback: The fallback, or None.

    Returns:
        Plain facts; `run_id` hashes them.
    """
    sampling = {
        key: value for key, value in model.lm.kwargs.items() if key not in ("rollout_id", "api_key", "api_base")
    }
    return {
        "benchmark": benchmark,
        "split": split,
        "data": data_hash,
        "method": method,
        "model": model.identity,
        "profile": model.profile.name,
        "profile_fields": asdict(model.profile),
        "context_length": model.core.context_length if model.core is not None else None,
        "sampling": sampling,
        "options": program.options.model_dump(mode="json"),
        "prompt": state_digest(program.dump_state()),
        "compiled": compiled.path.name if compiled else "",
        "retrieval": retrieval.identity if retrieval and method != "direct" else "",
        "fallback": fallback or "",
        "metrics": METRICS_VERSION,
        "version": version("search-o1"),
    }


def run_id(facts: dict[str, Any]) -> str:
    """Return the id of a run: method, model profile and a hash of its facts.

    Args:
        facts: Made by `run_facts`.

    Returns:
        For example `quickstart-search_o1-smollm2-135m-1f2e3d4c5b6a`; also the name of its folder.
    """
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()[
        :12
    ]
    return f"{facts['benchmark']}-{facts['method']}-{facts['profile']}-{digest}".replace("/", "_")
