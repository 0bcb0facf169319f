"""A corpus of a hundred short documents for the tests of vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.corpus.build import build_index
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.http.client import Limits
from tests.servers.embeddings_server import EmbeddingsServer, text_vector

QUICK = Limits(connect_s=2, read_s=5, total_s=10, attempts=2, backoff_s=0.01)
WORDS = [
    "river",
    "tower",
    "museum",
    "planet",
    "violin",
    "harbour",
    "desert",
    "glacier",
    "comet",
    "orchard",
    "bridge",
    "oak",
]
DOCUMENTS = [
    {"id": f"d{i:03}", "title": f"T{i}", "text": f"{WORDS[i % 12]} {WORDS[i // 12 % 12]} number {i}"}
    for i in range(100)
]
TEXTS = {document["id"]: f"{document['title']}\n{document['text']}" for document in DOCUMENTS}
SMALL_SHARDS = 30 * 2 * 64
"""Bytes of a shard of 30 vectors, so that 100 documents make four."""


def make_index(folder: Path, documents: list[dict[str, str]] = DOCUMENTS) -> Path:
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    build_index([source], folder / "index", "demo")
    return folder / "index"


def client(server: EmbeddingsServer, **options: Any) -> EmbeddingsClient:
    return EmbeddingsClient(server.url, **{"model": server.model, "limits": QUICK, "batch_size": 8, **options})


def unit(text: str) -> np.ndarray:
    vector = np.array(text_vector(text, 64))
    return (vector / np.linalg.norm(vector)).astype(np.float32)
