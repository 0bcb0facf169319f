r"""A report as LaTeX: a document that compiles as it is, of tables that can be taken out of it.

Needs the packages booktabs, float and graphicx; a table that is wider than the line is scaled down to it.
"""

from __future__ import annotations

from runs.reports.layout import Block, Bullets, Document, Heading, Paragraph, Row, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # Two hyphens in a row would become a dash.
    "-": "-{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": r"\ensuremath{-}",
    "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}",
    "§": r"\S{}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "·": r"\textperiodcentered{}",
}
_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{float}
\usepackage{graphicx}
\begin{document}
"""


def to_latex(document: Document) -> str:
    """Render a report.

    Args:
        document: The report.

    Returns:
        A LaTeX document. Characters that pdfLaTeX has no way to set become a question mark; they can only stand in
        names that a user chose.
    """
    parts = [rf"\section*{{{escape_latex(document.title)}}}", *(_block(block) for block in document.blocks)]
    return _PREAMBLE + "\n\n".join(parts) + "\n\\end{document}\n"


def escape_latex(text: str) -> str:
    """Return text in which nothing is a command."""
    return "".join(_SPECIAL.get(sign) or (sign if _settable(sign) else "?") for sign in " ".join(text.split()))


def _settable(sign: str) -> bool:
    """Tell whether T1 fonts have a letter: ASCII and Latin with accents."""
    return sign.isascii() or (sign.isalpha() and ord(sign) < 0x180)


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return rf"\subsection*{{{escape_latex(block.text)}}}"
    if isinstance(block, Paragraph):
        return escape_latex(block.text)
    if isinstance(block, Bullets):
        items = "\n".join(rf"\item {{}}{escape_latex(item)}" for item in block.items)
        return "\\begin{itemize}\n" + items + "\n\\end{itemize}"
    return _table(block)


def _table(table: Table) -> str:
    width = len(table.columns)
    lines = [r"\toprule"]
    if table.groups:
        lines.append(
            " & ".join(rf"\multicolumn{{{n}}}{{c}}{{{escape_latex(name)}}}" for name, n in table.groups) + r" \\"
        )
        lines += _rules(table.groups)
    lines.append(" & ".join(escape_latex(column) for column in table.columns) + r" \\")
    lines.append(r"\midrule")
    for index, row in enumerate(table.rows):
        if row.kind == "section" and index:
            lines.append(r"\addlinespace")
        lines.append(_row(row, width) + r" \\")
    lines.append(r"\bottomrule")
    body = "\n".join(lines)
    letters = "l" * table.words + "r" * (width - table.words)
    return (
        "\\begin{table}[H]\n\\centering\n"
        f"\\caption{{{escape_latex(table.caption)}}}\n"
        # Only what is too wide is scaled, so that a small table keeps the text's own size.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{letters}}}\n{body}\n\\end{{tabular}}}}\n\\end{{table}}"
    )


def _rules(groups: tuple[tuple[str, int], ...]) -> list[str]:
    rules, start = [], 1
    for name, count in groups:
        if name:
            rules.append(rf"\cmidrule(lr){{{start}-{start + count - 1}}}")
        start += count
    return ["".join(rules)] if rules else []


def _row(row: Row, width: int) -> str:
    if row.kind == "section":
        return rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escape_latex(row.cells[0])}}}}}"
    # A bracket at the start of a row would be read as an option of the line break before it.
    cells = [f"{{}}{escape_latex(cell)}" if cell.startswith("[") else escape_latex(cell) for cell in row.cells]
    if row.kind == "ours":
        cells = [rf"\textbf{{{cell}}}" if cell else "" for cell in cells]
    return " & ".join(cells)
