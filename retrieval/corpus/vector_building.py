"""Embedding a corpus: documents stream through the embeddings server to disk, then each shard gets its graph."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from retrieval.corpus.documents import Document
from retrieval.corpus.embedding_log import EmbeddingLog
from retrieval.corpus.embeddings import Embeddings, EmbeddingsClient
from retrieval.corpus.index import iter_documents
from retrieval.corpus.info import IndexInfo, open_info
from retrieval.corpus.shards import NUMBER_BYTES, ShardFiles, build_graph
from retrieval.corpus.vectors import FOLDER, FORMAT_VERSION, INFO_FILE, VectorsInfo, open_vectors_info
from retrieval.sync import run_blocking
from signatures.errors import DataError, SearchError

SHARD_BYTES = 512 * 1024 * 1024
"""Vectors a shard holds: about as much, and a third for the graph, is in memory while one is built."""

BUILDING = "vectors-building"
PLAN_FILE = "plan.json"
LOCK_FILE = "lock"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What a build was started with; another one starts anew.

    Attributes:
        model: Name of the embedding model.
        query_prefix: Text in front of queries.
        passage_prefix: Text in front of each passage.
        corpus_hash: Hash of the corpus.
        dimension: Numbers a vector; 0 until the first reply.
        shard_bytes: Bytes of vectors a shard.
        shortened: Passages cut so far because the server found them too long.
        format_version: Format of the vectors.
    """

    model: str
    query_prefix: str
    passage_prefix: str
    corpus_hash: str
    shard_bytes: int
    dimension: int = 0
    shortened: int = 0
    format_version: int = FORMAT_VERSION

    def continues(self, other: Plan) -> bool:
        """Return whether what was made under another plan can be used under this one."""
        return replace(other, dimension=0, shortened=0) == replace(self, dimension=0, shortened=0)

    @property
    def shard_rows(self) -> int:
        """Vectors a shard."""
        return max(1, self.shard_bytes // (NUMBER_BYTES * self.dimension))


def build_vectors(
    directory: Path,
    client: EmbeddingsClient,
    on_progress: Progress | None = None,
    *,
    fresh: bool = False,
    shard_bytes: int = SHARD_BYTES,
) -> VectorsInfo:
    """Embed every passage of an index and make the vectors searchable.

    A build that was killed goes on where it stopped: only the requests in flight are repeated. Older vectors stay in
    use until the new ones are complete. Where complete vectors of the same corpus, model and prefixes are there
    already, nothing is done.

    Args:
        directory: Folder of the index.
        client: The embeddings server.
        on_progress: Called with the passages embedded so far and in all.
        fresh: Do everything anew.
        shard_bytes: Bytes of vectors a shard; bounds the memory.

    Returns:
        What was built.

    Raises:
        DataError: There is no index, another process is embedding it, or the folder cannot be written.
        SearchError: The embeddings server failed; the same call goes on where it stopped.
    """
    directory = Path(directory)
    index = open_info(directory)
    plan = Plan(client.model, client.query_prefix, client.passage_prefix, index.corpus_hash, shard_bytes)
    if not fresh:
        with contextlib.suppress(DataError):
            info = open_vectors_info(directory, client.model)
            if info.passage_prefix == plan.passage_prefix and info.query_prefix == plan.query_prefix:
                return info
    folder = directory / BUILDING
    try:
        folder.mkdir(exist_ok=True)
        with _locked(folder, index.name):
            plan = _resume(folder, plan, fresh)
            plan = run_blocking(_embed(directory, folder, index, plan, client, on_progress))
            log = EmbeddingLog(folder, plan.dimension, plan.shard_rows, index.documents)
            for number in range(log.shards):
                build_graph(ShardFiles(folder, number), plan.dimension)
            info = _describe(plan, index.documents, log.shards)
            _finish(directory, folder, info)
    except SearchError as error:
        raise SearchError(
            f"{error} What has been embedded is kept: the same command goes on there.",
            provider=error.provider,
            status=error.status,
            body=error.body,
        ) from error
    except OSError as error:
        raise DataError(f"The vectors of {directory} cannot be written: {error.strerror or error}.") from error
    return info


def passage_text(document: Document) -> str:
    """Return what is embedded of a document: its title, a line break, its text."""
    return f"{document.title}\n{document.text}" if document.title else document.text


async def _embed(
    directory: Path, folder: Path, index: IndexInfo, plan: Plan, client: EmbeddingsClient, progress: Progress | None
) -> Plan:
    if not plan.dimension:
        plan = await _embed_first_batch(directory, folder, index, plan, client)
    log = EmbeddingLog(folder, plan.dimension, plan.shard_rows, index.documents)
    documents = iter_documents(directory, start=max(0, log.count - 1))
    if log.count and (last := next(documents, None)) is not None and last.id != log.last_id():
        raise DataError(f"The unfinished vectors in {folder} belong to other documents; start anew with --fresh.")
    flying: deque[tuple[Sequence[Document], asyncio.Task[Embeddings]]] = deque()
    batches = _batches(documents, client.batch_size)
    try:
        while True:
            for batch in islice(batches, client.concurrency - len(flying)):
                texts = [passage_text(document) for document in batch]
                flying.append((batch, asyncio.create_task(client.embed_passages(texts))))
            if not flying:
                break
            batch, task = flying.popleft()
            plan = _store(log, batch, await task, plan, client)
            if progress:
                progress(log.count, index.documents)
    finally:
        for _, task in flying:
            task.cancel()
        await asyncio.gather(*(task for _, task in flying), return_exceptions=True)
    if log.count != index.documents:
        raise DataError(
            f"The index in {directory} gave {log.count:,} documents instead of {index.documents:,}; it is damaged: "
            f"build it again with: search-o1 index build {index.name} FILE"
        )
    return plan


async def _embed_first_batch(
    directory: Path, folder: Path, index: IndexInfo, plan: Plan, client: EmbeddingsClient
) -> Plan:
    # Only a reply tells the dimension, and the files depend on it.
    batch = next(_batches(iter_documents(directory), client.batch_size))
    found = await client.embed_passages([passage_text(document) for document in batch])
    plan = replace(plan, dimension=found.vectors.shape[1])
    _write_plan(folder, plan)
    log = EmbeddingLog(folder, plan.dimension, plan.shard_rows, index.documents)
    return _store(log, batch, found, plan, client)


def _store(
    log: EmbeddingLog, batch: Sequence[Document], found: Embeddings, plan: Plan, client: EmbeddingsClient
) -> Plan:
    if found.vectors.shape[1] != plan.dimension:
        raise SearchError(
            f"{client.name}: the model {client.model!r} now gives vectors of dimension {found.vectors.shape[1]}, "
            f"before it was {plan.dimension}: another model is served. Serve the same one, or start anew with --fresh.",
            provider=client.name,
            status=200,
        )
    if found.shortened:
        plan = replace(plan, shortened=plan.shortened + found.shortened)
        _write_plan(log.folder, plan)
    log.append([document.id for document in batch], found.vectors)
    return plan


def _batches(documents: Iterator[Document], size: int) -> Iterator[Sequence[Document]]:
    while batch := list(islice(documents, size)):
        yield batch


def _resume(folder: Path, plan: Plan, fresh: bool) -> Plan:
    try:
        found = Plan(**json.loads((folder / PLAN_FILE).read_text(encoding="utf-8")))
        if not fresh and plan.continues(found):
            return found
    except (FileNotFoundError, ValueError, TypeError):
        pass
    for path in folder.iterdir():
        if path.name != LOCK_FILE:
            path.unlink()
    _write_plan(folder, plan)
    return plan


def _write_plan(folder: Path, plan: Plan) -> None:
    unfinished = folder / (PLAN_FILE + ".part")
    unfinished.write_text(json.dumps(asdict(plan), indent=2) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / PLAN_FILE)


def _describe(plan: Plan, count: int, shards: int) -> VectorsInfo:
    return VectorsInfo(
        model=plan.model,
        dimension=plan.dimension,
        query_prefix=plan.query_prefix,
        passage_prefix=plan.passage_prefix,
        count=count,
        shards=shards,
        shortened=plan.shortened,
        corpus_hash=plan.corpus_hash,
        library=f"usearch {version('usearch')}",
    )


def _finish(directory: Path, folder: Path, info: VectorsInfo) -> None:
    (folder / INFO_FILE).write_text(info.to_json(), encoding="utf-8")
    old, aside = directory / FOLDER, directory / f"{FOLDER}-replaced"
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        os.rename(old, aside)
    os.rename(folder, old)
    # Not before: a build killed between the two steps finishes with what the plan describes.
    for name in (PLAN_FILE, LOCK_FILE):
        (old / name).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    import fcntl

    with open(folder / LOCK_FILE, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(
                f"Another process is embedding the index {name!r} right now; wait until it is done."
            ) from error
        yield
