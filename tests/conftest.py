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
_SETTINGS = (
    "VLLM_API_KEY HOSTED_VLLM_API_BASE MLFLOW_TRACKING_URI BING_ENDPOINT BING_KEY SERPER_API_KEY SERPER_URL "
    "BRAVE_API_KEY BRAVE_URL TAVILY_API_KEY TAVILY_URL SEARXNG_URL DDGS_PROXY LITELLM_SEARCH_BASE_URL "
    "RETRIEVER_URL JINA_API_KEY JINA_URL HF_TOKEN HF_ENDPOINT HF_HUB_CACHE EMBEDDINGS_URL EMBEDDINGS_API_KEY "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY"
)
for name in _SETTINGS.split():
    os.environ.pop(name, None)
    os.environ.pop(name.lower(), None)

# A busy machine must not fail a test that is right: the first call of a property may import scipy.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)
