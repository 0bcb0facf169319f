"""A report as one HTML page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from html import escape

from runs.reports.layout import MISSING, Block, Bullets, Document, Heading, Paragraph, Row, Table

_STYLE = """
:root { color-scheme: light dark; --line: #8888; --ours: #0072b21f; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.wide { overflow-x: auto; margin: 1rem 0 2rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .words { text-align: left; }
thead th { border-bottom: 1px solid var(--line); } thead tr:first-child th { border-top: 2px solid var(--line); }
thead th[scope=colgroup] { text-align: center; }
tbody tr:last-child > * { border-bottom: 2px solid var(--line); }
tbody th { font-weight: 400; }
tr.ours > * { background: var(--ours); font-weight: 600; }
tr.section th { font-style: italic; padding-top: .8rem; }
"""


def to_html(document: Document) -> str:
    """Render a report.

    Args:
        document: The report.

    Returns:
        A page in UTF-8 with row and column headers marked as such, so that a screen reader names each cell; all text is
        escaped.
    """
    title = escape(document.title)
    body = "\n".join(_block(block) for block in document.blocks)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Bullets):
        return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in block.items) + "\n</ul>"
    return _table(block)


def _table(table: Table) -> str:
    caption = escape(table.caption)
    heads = [
        f'<th scope="col"{_words(place, table)}>{escape(column)}</th>' for place, column in enumerate(table.columns)
    ]
    lines = [f"<tr>{''.join(heads)}</tr>"]
    if table.groups:
        spans = "".join(
            f'<th scope="colgroup" colspan="{count}">{escape(name)}</th>' if name else f'<td colspan="{count}"></td>'
            for name, count in table.groups
        )
        lines.insert(0, f"<tr>{spans}</tr>")
    rows = "\n".join(_row(row, table) for row in table.rows)
    # A table wider than the window scrolls by keyboard too, which needs a name and a place in the tab order.
    return (
        f'<div class="wide" role="region" aria-label="{caption}" tabindex="0">\n<table>\n<caption>{caption}</caption>\n'
        f"<thead>\n{chr(10).join(lines)}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(row: Row, table: Table) -> str:
    if row.kind == "section":
        width = len(table.columns)
        return f'<tr class="section"><th scope="rowgroup" colspan="{width}">{escape(row.cells[0])}</th></tr>'
    cells = [f'<th scope="row">{escape(row.cells[0])}</th>']
    for place, text in enumerate(row.cells[1:], 1):
        said = ' aria-label="no value"' if text == MISSING else ""
        cells.append(f"<td{_words(place, table)}{said}>{escape(text)}</td>")
    return f'<tr class="{row.kind}">{"".join(cells)}</tr>'


def _words(place: int, table: Table) -> str:
    return ' class="words"' if 0 < place < table.words else ""
