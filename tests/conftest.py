"""Settings of the whole test session: a home folder of its own, DSPy's cache beside it, patient hypothesis."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import settings

from runs.home import Home

_SCRATCH = tempfile.mkdtemp(prefix="search-o1-tests-")
# Weights are large and never written by a test, so the user's own model folder is shared.
os.environ.setdefault("SEARCH_O1_MODELS", str(Home().models))
os.environ["SEARCH_O1_HOME"] = os.path.join(_SCRATCH, "home")
os.environ["DSPY_CACHEDIR"] = os.path.join(_SCRATCH, "dspy")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
for name in ("VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "MLFLOW_TRACKING_URI", "BING_ENDPOINT", "BING_KEY"):
    os.environ.pop(name, None)

# A busy machine must not fail a test that is right: the first call of a property may import scipy.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)
