"""The paper's Tables 1, 2 and 3: their columns, their figures, and which of our runs belongs beside which.

Source: Search-o1 (arXiv 2501.05366), Tables 1-3, shipped as `paper_results.json`; single runs of the authors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

METHODS = {
    "direct": "Direct reasoning",
    "standard_rag": "Standard RAG",
    "rag_agent": "RAG agent",
    "search_o1": "Search-o1",
}
"""Our method names and what the tables call them, in the tables' order."""

REASONING = ("gpqa_diamond.overall", "math500", "amc23", "aime24", "livecodebench.overall")
"""Columns of the average over the five reasoning sets (section 4.4)."""

SINGLE_HOP = ("nq.em", "triviaqa.em")
MULTI_HOP = ("hotpotqa.em", "2wikimultihopqa.em", "musique.em", "bamboogle.em")
AVERAGES = {
    "reasoning": ("five reasoning sets", REASONING),
    "single_hop": ("single-hop QA, EM", SINGLE_HOP),
    "multi_hop": ("multi-hop QA, EM", MULTI_HOP),
    "open_qa": ("all six QA sets, EM", SINGLE_HOP + MULTI_HOP),
}
"""The averages that the paper argues with (sections 4.4 and 4.5): name to (title, columns)."""

LIVECODEBENCH_REACHABLE = (70, 112)
"""Problems that the published code scorer can pass, of how many: it runs all as programs, and 42 ask for a function."""


@dataclass(frozen=True)
class Column:
    """A column of a table: one number of one benchmark.

    Attributes:
        key: Name in the figures, such as `gpqa_diamond.physics` or `nq.em`.
        benchmark: Our name of the benchmark.
        split: Split of the benchmark, or empty for the only one.
        group: Group as (name, value), or None for all questions.
        metrics: Names of the metric in our records, of which the first present counts.
        set_title: What the set is called.
        title: What the column is called within its set.
        questions: Questions it rests on.
    """

    key: str
    benchmark: str
    split: str
    group: tuple[str, str] | None
    metrics: tuple[str, ...]
    set_title: str
    title: str
    questions: int

    @property
    def name(self) -> str:
        """The column's full name."""
        return f"{self.set_title} {self.title}".strip()


@dataclass(frozen=True)
class PaperRow:
    """A row of a table.

    Attributes:
        method: Our name of the method, or `human`.
        model: The model as the paper names it, or the kind of expert.
        values: Column key to percent; a column without a figure is absent.
        source: Where the figures come from: empty for the authors' own runs, else who reports them.
        binomial: Whether its figures are shares of the same questions, so that their own error is known.
    """

    method: str
    model: str
    values: Mapping[str, float]
    source: str = ""
    binomial: bool = True


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables.

    Attributes:
        number: Its number in the paper.
        title: What it shows.
        columns: Its columns.
        rows: Its rows.
    """

    number: int
    title: str
    columns: tuple[Column, ...]
    rows: tuple[PaperRow, ...]

    def row(self, method: str, model: str) -> PaperRow | None:
        """Return the row of a method with exactly this model, or None."""
        wanted = plain_name(model)
        return next((r for r in self.rows if r.method == method and plain_name(r.model) == wanted), None)


@cache
def paper_data() -> dict[str, Any]:
    """Return the paper's figures as they are shipped, with their source."""
    text = (files("runs.reports") / "paper_results.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def paper_tables() -> tuple[PaperTable, ...]:
    """Return Tables 1, 2 and 3.

    Table 1 has at its end the rows of QwQ-32B, the later model, which another paper measured with the same methods.
    """
    data = paper_data()
    columns = {column.key: column for column in _columns(data["sizes"])}
    by_set = {name: [c for key, c in columns.items() if key.split(".")[0] == name] for name in data["sizes"]}
    reasoning = ("gpqa_diamond", "math500", "amc23", "aime24", "livecodebench")
    questions = ("nq", "triviaqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
    later = [_row(name, sets, data["later"]["source"]) for name, sets in data["later"]["table1"].items()]
    return (
        PaperTable(
            1,
            "Challenging reasoning tasks",
            tuple(c for name in reasoning for c in by_set[name]),
            (*(_row(name, sets) for name, sets in data["table1"].items()), *later),
        ),
        PaperTable(
            2,
            "GPQA extended set, beside human experts",
            tuple(by_set["gpqa_extended"]),
            tuple(_row(name, {"gpqa_extended": cells}) for name, cells in data["table2_gpqa_extended"].items()),
        ),
        PaperTable(
            3,
            "Open-domain question answering",
            tuple(c for name in questions for c in by_set[name]),
            tuple(_row(name, sets) for name, sets in data["table3_open_domain_qa"].items()),
        ),
    )


def plain_name(model: str) -> str:
    """Return what makes two spellings of a model's name the same.

    Args:
        model: `Qwen/QwQ-32B-Preview`, `hosted_vllm/Qwen/QwQ-32B-Preview`, `Llama3.3-70B-Instruct`.

    Returns:
        The last part in small letters and digits alone. Another build (`-AWQ`) and another release (`QwQ-32B` for
        `QwQ-32B-Preview`) stay different.
    """
    return re.sub(r"[^a-z0-9]", "", model.rsplit("/", 1)[-1].lower())


def headline_column(benchmark: str, split: str) -> Column | None:
    """Return the column with a set's headline over all its questions, or None for a set outside the paper."""
    columns = (c for table in paper_tables() for c in table.columns)
    return next((c for c in columns if c.benchmark == benchmark and c.split in ("", split) and c.group is None), None)


def set_title(benchmark: str, split: str) -> str:
    """Return what figures call a set: the paper's name where it has one."""
    column = headline_column(benchmark, split)
    return f"{benchmark} {split}".strip() if column is None else column.set_title


def _row(name: str, sets: Mapping[str, Any], source: str = "") -> PaperRow:
    method, _, model = name.partition("/")
    model, _, elsewhere = model.partition(" (")
    values: dict[str, float] = {}
    for benchmark, cells in sets.items():
        for part, value in (cells if isinstance(cells, Mapping) else {"": cells}).items():
            if value is not None:
                values[f"{benchmark}.{part}" if part else benchmark] = float(value)
    said = source or elsewhere.rstrip(")")
    return PaperRow(method, model, values, said, binomial=method != "human" and not elsewhere)


def _columns(sizes: Mapping[str, Any]) -> list[Column]:
    columns: list[Column] = []
    for split in ("diamond", "extended"):
        for part in ("physics", "chemistry", "biology", "overall"):
            group = None if part == "overall" else ("domain", part)
            title = part.capitalize()
            number = sizes[f"gpqa_{split}"][part]
            columns.append(
                Column(f"gpqa_{split}.{part}", "gpqa", split, group, ("em",), f"GPQA {split}", title, number)
            )
    for name, title in (("math500", "MATH500"), ("amc23", "AMC23"), ("aime24", "AIME24")):
        columns.append(Column(name, name, "", None, ("math_equal",), title, "", sizes[name]))
    for part in ("easy", "medium", "hard", "overall"):
        group = None if part == "overall" else ("difficulty", part)
        key, number = f"livecodebench.{part}", sizes["livecodebench"][part]
        columns.append(Column(key, "livecodebench", "", group, ("pass@1",), "LiveCodeBench", part.capitalize(), number))
    titles = {
        "nq": "NQ", "triviaqa": "TriviaQA", "hotpotqa": "HotpotQA", "2wikimultihopqa": "2Wiki", "musique": "MuSiQue",
        "bamboogle": "Bamboogle",
    }  # fmt: skip
    for name, title in titles.items():
        for metric in ("em", "f1"):
            columns.append(Column(f"{name}.{metric}", name, "", None, (metric,), title, metric.upper(), sizes[name]))
    return columns
