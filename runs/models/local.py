"""`--model local`: a real small model in this process, on the CPU, behind DSPy's engine interface."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dspy.lm15 import ContextLengthError, Request, ServerError

from retrieval.cache import Cache
from runs.models.engine import EngineCore, Reply
from runs.models.pipeline import Pipeline
from runs.models.weights import sha256_of
from signatures.errors import ModelError
from signatures.profiles import ModelProfile

_loaded: dict[Path, Pipeline] = {}
_hashes: dict[Path, str] = {}
_loading = threading.Lock()


def load_pipeline(path: Path) -> Pipeline:
    """Load a GGUF file once a process.

    Args:
        path: The file.

    Returns:
        The pipeline, shared by all engines of that file.

    Raises:
        ModelError: OpenVINO refuses the file.
    """
    with _loading:
        if path not in _loaded:
            _loaded[path] = Pipeline(path)
        return _loaded[path]


class LocalCore(EngineCore):
    """The embedded engine.

    Args:
        path: The GGUF file; loaded when first used.
        profile: How the model wants to be asked.
        cache: Where model replies are kept, or None.
        context_length: Context in tokens.
    """

    def __init__(
        self, path: Path, profile: ModelProfile, cache: Cache | None = None, context_length: int | None = None
    ) -> None:
        super().__init__(f"local/{path.stem}", profile, cache)
        self.path = path.resolve()
        self.context_length = context_length or profile.context_length

    @property
    def pipeline(self) -> Pipeline:
        """The loaded model."""
        return load_pipeline(self.path)

    def identity(self) -> str:
        """Return the file's name and checksum and the library that runs it."""
        if self.path not in _hashes:
            _hashes[self.path] = sha256_of(self.path)
        return f"openvino-genai {version('openvino-genai')}:{self.path.name}:{_hashes[self.path]}"

    async def render_ids(self, messages: Sequence[Mapping[str, str]], raw: bool) -> list[int]:
        """Return the ids of the raw text, or of the chat template around the messages."""
        pipeline = await self._ready()
        if raw:
            return pipeline.encode(await self.hold_back(messages[-1]["content"]), special=True)
        return pipeline.encode(pipeline.render([dict(m) for m in messages]))

    async def tokenise(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        return (await self._ready()).encode(text)

    async def detokenise(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        return (await self._ready()).decode(ids)

    async def generate(self, ids: list[int], request: Request) -> Reply:
        """Generate from token ids.

        Raises:
            ContextLengthError: Prompt and output do not fit the context.
            ServerError: OpenVINO failed.
        """
        limit = request.config.max_tokens or 512
        if self.context_length is not None and len(ids) + limit > self.context_length:
            raise ContextLengthError(
                f"{len(ids)} prompt tokens and {limit} output tokens exceed the context of {self.context_length} tokens"
            )
        pipeline = await self._ready()
        future = pipeline.submit(ids, pipeline.generation_config(**_fields(request, limit)))
        try:
            return await asyncio.wrap_future(future)
        except ModelError as error:
            raise ServerError(str(error)) from error

    async def _ready(self) -> Pipeline:
        if self.path in _loaded:
            return _loaded[self.path]
        return await asyncio.to_thread(load_pipeline, self.path)


def _fields(request: Request, limit: int) -> dict[str, Any]:
    config, extra = request.config, dict(request.config.extensions or {})
    fields: dict[str, Any] = {"max_new_tokens": limit, "stop_strings": set(config.stop)}
    if extra.get("repetition_penalty") is not None:
        fields["repetition_penalty"] = float(extra["repetition_penalty"])
    temperature = config.temperature or 0.0
    fields["do_sample"] = temperature > 0
    if temperature > 0:
        fields["temperature"] = temperature
        fields["top_p"] = config.top_p if config.top_p is not None else 1.0
        if extra.get("top_k") is not None:
            fields["top_k"] = int(extra["top_k"])
        fields["rng_seed"] = config.seed or 0
    return fields
