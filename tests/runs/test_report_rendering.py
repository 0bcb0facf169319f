"""Markdown, HTML and LaTeX: what a user named stays text, and the page is one a screen reader can follow."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.home import Home
from runs.reporting import report
from runs.reports.latex import escape_latex, to_latex
from runs.reports.layout import Bullets, Document, Heading, Paragraph, Row, Table
from runs.reports.markdown import to_markdown
from runs.reports.web_page import to_html
from tests.runs.report_world import write_run

NASTY = "a_b & 50% #1 $x$ {y} ^z ~w \\input{/etc/passwd} <script>alert(1)</script> | [l](http://e) `c` -- Ünïcödé 模型"


def document(name: str = NASTY) -> Document:
    table = Table(
        f"Caption of {name}",
        ("", "A", "B", "C"),
        (Row(("Part",), "section"), Row((name, "1.0", "–", "[2.0, 3.0]"), "ours"), Row(("x", "1", "2", "3"), "paper")),
        (("", 1), (f"Over {name}", 2), ("", 1)),
    )
    return Document(f"Title {name}", (Heading(name), Paragraph(name), Bullets((name, f"[1] {name}")), table))


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    assert page.open == []
    return page


def test_a_page_is_well_formed_needs_nothing_else_and_runs_nothing() -> None:
    text = to_html(document())
    page = parsed(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not re.search(r"(?:src|href|url\(|@import)", re.sub(r"\[l\]\(http://e\)", "", text))
    assert page.text.count(NASTY) == 9
    assert ("html", {"lang": "en"}) in page.tags


def test_every_cell_of_a_page_has_its_headers() -> None:
    page = parsed(to_html(document("m")))
    heads = [attrs.get("scope") for tag, attrs in page.tags if tag == "th"]
    assert heads.count("col") == 4
    assert heads.count("row") == 2
    assert (heads.count("colgroup"), heads.count("rowgroup")) == (1, 1)
    assert [attrs for tag, attrs in page.tags if tag == "td" and attrs.get("aria-label") == "no value"]
    region = next(attrs for tag, attrs in page.tags if attrs.get("role") == "region")
    assert region["tabindex"] == "0"
    assert region["aria-label"]


@given(st.text(max_size=60))
def test_any_name_stays_text_in_a_page(name: str) -> None:
    shown = parsed(to_html(Document("t", (Paragraph(name),)))).text
    body = shown.split("t\n", 2)[-1]
    assert html.unescape(html.escape(name)).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "") in (
        body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    )


@given(st.text(max_size=60))
def test_no_name_is_a_command_in_latex(name: str) -> None:
    left = escape_latex(name)
    known = (
        r"\textbackslash{}", r"\{", r"\}", r"\$", r"\&", r"\#", r"\%", r"\_", r"\textasciicircum{}",
        r"\textasciitilde{}", r"\textless{}", r"\textgreater{}", r"\textbar{}", r"\textquotedbl{}", r"\ensuremath{-}",
        r"\textsuperscript{\dag}", r"\textsuperscript{\ddag}", r"\S{}", r"\ensuremath{\pm}", r"\ensuremath{\times}",
        r"\textperiodcentered{}", r"\textasciigrave{}", "-{}",
    )  # fmt: skip
    for command in sorted(known, key=len, reverse=True):
        left = left.replace(command, "")
    assert not set(left) & set("\\{}$&#%_^~")


def compiled(text: str, folder: Path) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        check_latex(text)
        return
    (folder / "report.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def check_latex(text: str) -> None:
    """Check without LaTeX what it would refuse: groups and environments that do not close, rows of another width."""
    assert re.sub(r"\\[{}]", "", text).count("{") == re.sub(r"\\[{}]", "", text).count("}")
    names = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    stack: list[str] = []
    for kind, name in names:
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    for table in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in table[1].splitlines():
            if line.endswith(r"\\"):
                spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
                assert len(re.findall(r"(?<!\\)&", line)) + 1 + spans == len(table[0]), line


def test_latex_compiles_whatever_things_are_called(tmp_path: Path) -> None:
    text = to_latex(document())
    check_latex(text)
    compiled(text, tmp_path)
    assert "\\input" not in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1


def test_a_whole_report_compiles(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    runs = [write_run(home, "gpqa", "direct", [1, 0, 1], split="diamond", model=f"x/{NASTY.replace('/', '')}").name]
    runs.append(write_run(home, "nq", "search_o1", [1, 0, 1]).name)
    text = report(runs, home=home, paper=True, format="latex").text
    check_latex(text)
    compiled(text, tmp_path)


def test_markdown_keeps_its_tables_and_shows_names_as_they_are() -> None:
    text = to_markdown(document())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "[2.0, 3.0]" in text
    assert "](http" not in text.replace("\\](http", "")
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "search_o1" in to_markdown(Document("search_o1", ()))


@pytest.mark.parametrize(
    ("name", "start"), [("x.md", "# "), ("x.html", "<!DOCTYPE html>"), ("x.tex", r"\documentclass")]
)
def test_the_suffix_of_the_file_chooses_the_format(tmp_path: Path, name: str, start: str) -> None:
    home = Home(tmp_path / "home")
    run = write_run(home, "nq", "direct", [1, 0]).name
    found = report([run], home=home, output=tmp_path / "new" / name)
    assert found.path is not None
    assert found.path.read_text(encoding="utf-8") == found.text
    assert found.text.startswith(start)


def test_without_the_paper_runs_make_one_table(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    runs = [
        write_run(home, "nq", "direct", [1, 0, 0, 0], name="a"),
        write_run(home, "nq", "search_o1", [1, 1, 1, 0], name="b"),
        write_run(home, "aime24", "search_o1", [1, 1], name="c"),
        write_run(home, "nq", "search_o1", [0, 0, 0, 0], name="d", data="other"),
    ]
    lines = report([r.name for r in runs], home=home).text.splitlines()
    direct = next(line for line in lines if line.startswith("| Direct reasoning, QwQ-32B-Preview, strict"))
    assert direct.split(" | ")[1].startswith("25.0 [")
    assert direct.endswith("| – |")
    assert any(line.startswith("| Search-o1, QwQ-32B-Preview, official | 75.0 [") for line in lines)
    assert any(line.startswith("| Search-o1, QwQ-32B-Preview (2), official | 0.0 [") for line in lines)
    assert any("nq: its runs were made on different question files" in line.replace(" :", ":") for line in lines)
