"""How a document lies in the Tantivy index, and the hash over a corpus."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import tantivy

from retrieval.cjk import cjk_bigrams, has_cjk, without_cjk
from retrieval.corpus.analysis import ENGLISH, clean_text
from retrieval.corpus.documents import Document

EMPTY_HASH = bytes(32)
"""Hash of a corpus without documents."""


def index_schema() -> Any:
    """Return the fields of an index."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=False, tokenizer_name=ENGLISH, index_option="freq")
    builder.add_text_field("text", stored=False, tokenizer_name=ENGLISH, index_option="freq")
    builder.add_text_field("cjk", stored=False, tokenizer_name="whitespace", index_option="freq")
    # Merging segments shuffles them; this keeps the order of the corpus.
    builder.add_unsigned_field("number", stored=False, indexed=False, fast=True)
    builder.add_bytes_field("record", stored=True, indexed=False)
    return builder.build()


def to_record(document: Document) -> bytes:
    """Return a document as it is stored and hashed: the JSON list of id, title and text in UTF-8."""
    fields = [document.id, document.title, document.text]
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_record(record: bytes) -> Document:
    """Return the document that was stored."""
    return Document(*json.loads(record.decode("utf-8", "surrogatepass")))


def chain_hash(before: bytes, record: bytes) -> bytes:
    """Take one more document into the hash of a corpus.

    The hash of n documents is SHA-256 over the hash of the first n - 1 and the record of the last; that of none is 32
    zero bytes. So it depends on the documents and their order only, and building can go on from it.

    Args:
        before: Hash of the documents before, 32 bytes.
        record: The document, as `to_record` gives it.

    Returns:
        The new hash, 32 bytes.
    """
    return hashlib.sha256(before + record).digest()


def id_term(document_id: str) -> str:
    """Return the term under which the index knows an id."""
    return clean_text(document_id)


def to_entry(document: Document, number: int, record: bytes) -> Any:
    """Return what is added to the index.

    Args:
        document: The document.
        number: How many documents came before it.
        record: The document, as `to_record` gives it.

    Returns:
        A `tantivy.Document`.
    """
    entry = tantivy.Document()
    entry.add_text("id", id_term(document.id))
    entry.add_unsigned("number", number)
    entry.add_bytes("record", record)
    # A passage often leaves out the name that its title says, so the words of the title are words of the text too.
    title, text = document.title, f"{document.title}\n{document.text}"
    # CJK runs have no spaces, so as words they could never be found; their bigrams are a field of their own.
    if not text.isascii() and has_cjk(text):
        entry.add_text("cjk", " ".join(cjk_bigrams(text)))
        title, text = without_cjk(title), without_cjk(text)
    entry.add_text("title", clean_text(title))
    entry.add_text("text", clean_text(text))
    return entry
