"""Building an index: streaming, in bounded memory, going on where a stopped build left off."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from retrieval.corpus.analysis import ANALYSIS_VERSION
from retrieval.corpus.build_folder import BuildFolder, Say
from retrieval.corpus.index_writer import COMMIT_DOCUMENTS, Commit, IndexWriter
from retrieval.corpus.info import FORMAT_VERSION, INFO_FILE, IndexInfo, open_info, write_info
from retrieval.corpus.sources import Inputs, find_sources
from signatures.errors import DataError, OptionError

PROGRESS_SECONDS = 0.2
"""Time between two calls of `on_progress`."""

PROBLEMS_TOLD = 3
"""Problems that the error of a corpus without documents names."""


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is.

    Attributes:
        documents: Documents indexed, those of earlier attempts included.
        skipped: Lines, rows and files that gave no document.
        bytes_done: Bytes of the sources read.
        bytes_total: Bytes of the sources.
        resumed: Documents indexed by earlier attempts.
    """

    documents: int
    skipped: int
    bytes_done: int
    bytes_total: int
    resumed: int


def build_index(
    paths: Sequence[Path],
    directory: Path,
    name: str,
    on_progress: Callable[[BuildProgress], None] | None = None,
    *,
    strict: bool = False,
    fresh: bool = False,
    on_problem: Say | None = None,
    say: Say | None = None,
    commit_documents: int = COMMIT_DOCUMENTS,
) -> IndexInfo:
    """Build an index; what stood in its place is replaced only once the new one is whole.

    Memory stays below 1 GiB whatever the size of the corpus. A build that was stopped or killed goes on from its last
    commit when it is called again with unchanged files, and gives the same corpus hash and hits as one that was not.
    A second build of the same index waits for the first. Passage vectors are kept if the documents are the same.

    Args:
        paths: JSONL and Parquet files, Markdown, HTML, PDF and text files, and folders of them; see
            `retrieval.corpus.sources.find_sources`.
        directory: Where the index goes.
        name: Name of the corpus: letters, digits, `.`, `_` and `-`.
        on_progress: Called a few times a second, and at the end.
        strict: Stop at the first line, row or file that gives no document, or whose id occurred before; otherwise it
            is skipped and counted.
        fresh: Start anew instead of going on.
        on_problem: Called with what was skipped and why, file and line first.
        say: Called with a line for the user when it goes on, starts anew or waits.
        commit_documents: Documents between two commits, that is what a killed build loses at most.

    Returns:
        What was built.

    Raises:
        OptionError: The name cannot be part of an address.
        DataError: A file is missing or of an unknown format, there is no document, the folder cannot be written, or
            something that is no index is in its place; with `strict`, a line, row or file is malformed.
    """
    if not is_corpus_name(name):
        raise OptionError(f"{name!r} cannot name a corpus; use letters, digits, '.', '_' and '-'.")
    directory = Path(directory)
    say = say or (lambda line: None)
    _check_place(directory)
    inputs = find_sources([Path(path) for path in paths])
    if inputs.passed_over:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in inputs.passed_over.most_common(5))
        say(f"Passed over {inputs.passed_over.total()} files of kinds that cannot be read ({kinds}).")
    place = BuildFolder(directory)
    with place.locked(lambda: say(f"Another build of {directory.name} is under way; waiting for it ...")):
        if place.waited and (built := _built(directory, inputs, name, strict)):
            return built
        if fresh:
            place.clear()
        build = _Build(place, inputs, name, strict, say)
        if not build.whole:
            build.run(on_progress, on_problem, commit_documents)
        _keep_vectors(directory, place.index)
        place.put_in_place()
    return open_info(directory)


def is_corpus_name(name: str) -> bool:
    """Tell whether a name can be part of an address: ASCII letters, digits, `.`, `_`, `-`, not beginning with a dot."""
    return bool(name) and name[0] != "." and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)


class _Build:
    """One build, from where an earlier attempt at it stopped."""

    def __init__(self, place: BuildFolder, inputs: Inputs, name: str, strict: bool, say: Say) -> None:
        self.place = place
        self.inputs = inputs
        self.name = name
        self.strict = strict
        self.whole = _built(place.index, inputs, name, strict) is not None
        self.problems: list[str] = []
        self.begin = Commit()
        if not self.whole:
            self.begin = self._resume(say)

    def run(
        self,
        on_progress: Callable[[BuildProgress], None] | None,
        on_problem: Say | None,
        commit_documents: int,
    ) -> None:
        writer = IndexWriter(self.place.index, self.begin, commit_documents, self._keep)
        before = sum(source.size for source in self.inputs.sources[: self.begin.source])
        told = 0.0
        with writer:
            for number, source in enumerate(self.inputs.sources[self.begin.source :], start=self.begin.source):
                start = self.begin.position if number == self.begin.source else (0, 0)
                for unit in source.units(start):
                    problem = unit.problem or writer.add(unit.documents)
                    if problem:
                        self._note(f"{unit.where}: {problem}", on_problem)
                    writer.unit_done(number, unit.position, skipped=bool(problem))
                    if on_progress and time.monotonic() - told >= PROGRESS_SECONDS:
                        told = time.monotonic()
                        on_progress(self._progress(writer, before + unit.done))
                before += source.size
            if not writer.documents:
                raise DataError(self._nothing())
            last = writer.finish(len(self.inputs.sources))
        if on_progress:
            on_progress(self._progress(writer, self.inputs.size))
        write_info(
            self.place.index,
            IndexInfo(
                name=self.name,
                documents=last.documents,
                corpus_hash=last.digest,
                skipped=last.skipped,
                bytes=self.inputs.size,
                sources=self.inputs.names,
                inputs=self.inputs.fingerprint,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                seconds=round(last.seconds, 3),
            ),
        )

    def _resume(self, say: Say) -> Commit:
        state = self.place.load()
        if state is not None:
            if state.get("of") != self._of():
                say("The files are not those of the build that was stopped; starting anew.")
            elif (last := IndexWriter.last_commit(self.place.index, state["commits"])) is None:
                say("The build that was stopped cannot be read any more; starting anew.")
            elif self.strict and last.skipped:
                say("The build that was stopped was not strict and had skipped something; starting anew.")
            else:
                say(f"Going on after {last.documents:,} documents of the build that was stopped (--fresh starts anew).")
                return last
        self.place.clear()
        return Commit()

    def _keep(self, commits: list[dict[str, object]]) -> None:
        self.place.keep({"of": self._of(), "commits": commits})

    def _of(self) -> list[object]:
        return [self.inputs.fingerprint, self.name, FORMAT_VERSION, ANALYSIS_VERSION]

    def _note(self, problem: str, on_problem: Say | None) -> None:
        if self.strict:
            raise DataError(problem)
        if len(self.problems) < PROBLEMS_TOLD:
            self.problems.append(problem)
        if on_problem:
            on_problem(problem)

    def _progress(self, writer: IndexWriter, done: int) -> BuildProgress:
        return BuildProgress(writer.documents, writer.skipped, done, self.inputs.size, self.begin.documents)

    def _nothing(self) -> str:
        files = ", ".join(self.inputs.names) or "none given"
        return "\n".join([f"The corpus files hold no document: {files}.", *self.problems])


def _built(folder: Path, inputs: Inputs, name: str, strict: bool) -> IndexInfo | None:
    """Return what an index holds if it is whole and was built from the same files in the same way."""
    try:
        info = open_info(folder)
    except DataError:
        return None
    same = (info.inputs, info.name) == (inputs.fingerprint, name) and not (strict and info.skipped)
    return info if same else None


def _keep_vectors(old: Path, new: Path) -> None:
    """Take the passage vectors over from an index of the very same documents, since they are costly to make."""
    try:
        same = open_info(old).corpus_hash == open_info(new).corpus_hash
    except DataError:
        return
    for vectors in old.glob("vectors*") if same else ():
        vectors.rename(new / vectors.name)


def _check_place(directory: Path) -> None:
    if not directory.exists() or (directory / INFO_FILE).is_file():
        return
    if not directory.is_dir() or any(directory.iterdir()):
        raise DataError(f"{directory} exists and is no index; it is left alone. Choose another place for the index.")
