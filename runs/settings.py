"""What a person can set for an evaluation or a single question, typed and validated once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from signatures.errors import OptionError


class ModelSettings(BaseModel):
    """Which language model answers.

    Attributes:
        model: `local`, `local:1.5b`, a GGUF path, `hosted_vllm/NAME`, or any name LiteLLM knows.
        base_url: Address of an OpenAI-compatible API, ending in `/v1`.
        revision: Model revision, for identities.
        context_length: Context in tokens; None asks the server or the profile.
        temperature: Sampling temperature; None leaves it to options and profile.
        profile: Fields of the model profile to override.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "local"
    base_url: str | None = None
    revision: str = ""
    context_length: int | None = Field(None, ge=64)
    temperature: float | None = Field(None, ge=0, le=2)
    profile: dict[str, Any] = Field(default_factory=dict)


class RetrievalSettings(BaseModel):
    """Where knowledge comes from.

    Attributes:
        search: Backend name, or several separated by commas, whose hits are fused; `local` needs a corpus or an index.
        search_options: Options of the backend by name; with several backends `serper.gl`.
        reader: Reader name, or several separated by commas, each asked when those before it failed; None means `web`.
            Local documents are always read from their index.
        reader_options: Options of the reader, likewise.
        corpus: File or folder of documents that `local` indexes, or None for the benchmark's own.
        index: Name of an index built before, or None.
        mode: How `local` searches: `lexical`, `dense` or `hybrid`.
        embeddings_url: Address of the embeddings server for the latter two; None means EMBEDDINGS_URL.
        allow_private: Let readers fetch private addresses.
        cached: Keep searches and pages in the cache.
        max_age: Ask again for searches and pages older than this, such as `30d`; None keeps them for ever.
        replay: Answer from the cache only, searches, pages and model replies; what is missing is an error.
        block_benchmark_hosts: Remove hits from sites that publish the benchmarks themselves.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: str = "local"
    search_options: dict[str, Any] = Field(default_factory=dict)
    reader: str | None = None
    reader_options: dict[str, Any] = Field(default_factory=dict)
    corpus: Path | None = None
    index: str | None = None
    mode: Literal["lexical", "dense", "hybrid"] = "lexical"
    embeddings_url: str | None = None
    allow_private: bool = False
    cached: bool = True
    max_age: str | float | None = None
    replay: bool = False
    block_benchmark_hosts: bool = False


class EvaluateSettings(ModelSettings, RetrievalSettings):
    """Everything `search-o1 evaluate` takes.

    Attributes:
        benchmark: Name of a benchmark (empty: `quickstart`), or a label for `data` (empty: the file's name).
        data: A question file of your own.
        split: Split; empty means the benchmark's default.
        limit: Only the first so many questions; None means the benchmark's default limit, 0 means all.
        methods: Methods to run, in order; also as one text, separated by commas.
        samples: Samples a question.
        concurrency: Chains in flight; None means 8 for the embedded model and 64 for a server.
        program: `auto` takes the compiled program for model, method and task (your own before the package's), `none`
            takes none; else a name, a JSON file or `models:/NAME/ALIAS`.
        paper: Run as the authors did.
        fallback: `generate` answers with `direct` where a method gives no valid answer.
        seed: Run seed.
        fresh: Start anew instead of going on.
        options: Chain options by name.
        unsafe_code: Run programs that answer code questions without isolation where none is to be had.
        track: Log to MLflow.
        experiment: MLflow experiment; empty means the benchmark's name.
        tracking_uri: MLflow store; None means the home folder's.
        progress: Show a progress bar.
    """

    @field_validator("methods", mode="before")
    @classmethod
    def _split_methods(cls, given: Any) -> Any:
        return split_names(given) if isinstance(given, str) else given

    benchmark: str = ""
    data: Path | None = None
    split: str = ""
    limit: int | None = Field(None, ge=0)
    methods: tuple[str, ...] = ()
    samples: int = Field(1, ge=1)
    concurrency: int | None = Field(None, ge=1)
    program: str = "auto"
    paper: bool = False
    fallback: str | None = None
    seed: int = 0
    fresh: bool = False
    options: dict[str, Any] = Field(default_factory=dict)
    unsafe_code: bool = False
    track: bool = True
    experiment: str = ""
    tracking_uri: str | None = None
    progress: bool = True


def make_settings(cls: type[BaseModel], values: dict[str, Any]) -> Any:
    """Validate settings.

    Args:
        cls: The settings class.
        values: Values by name; None means not given.

    Returns:
        An instance of `cls`.

    Raises:
        OptionError: A name is unknown or a value impossible; the text names both and what is allowed.
    """
    try:
        return cls(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise OptionError(
                f"Unknown option {name!r}; known options: {', '.join(sorted(cls.model_fields))}."
            ) from None
        raise OptionError(f"Option {name} = {first.get('input')!r}: {first['msg']}.") from None


def split_names(listed: str) -> tuple[str, ...]:
    """Split names separated by commas; blank ones and repeats are dropped."""
    return tuple(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
