"""Draws docs/architecture.svg from the code's imports: packages, modules, and how often a package imports another.

Run from the repository root: `python docs/draw_architecture.py [--check]`; with `--check` it fails when the picture is
out of date.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

PACKAGES = ("runs", "programs", "metrics", "signatures", "retrieval")
LEAVES = (
    "signatures.markup",
    "signatures.errors",
    "metrics.extraction",
    "metrics.contamination",
    "metrics.benchmark_hosts",
)
COLUMNS = {
    "runs": (40, 900),
    "programs": (356, 250),
    "metrics": (40, 280),
    "signatures": (350, 280),
    "retrieval": (660, 280),
}
"""Left edge and width of each box; heights and rows follow from what is in them."""

SAYS = {
    "runs": "what a person starts",
    "programs": "how the model is asked",
    "metrics": "how answers are judged",
    "signatures": "what the model is asked",
    "retrieval": "where knowledge comes from",
}
LINE = 17
GAP = 70
TARGET = Path(__file__).parent / "architecture.svg"


def wrap(names: list[str], width: int) -> list[str]:
    """Break a list of module names into lines of at most `width` characters."""
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > width:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + name
    return lines


def modules(graph: grimp.ImportGraph, package: str) -> list[str]:
    """Return the modules of a package by name, and the packages inside it as `name/`."""
    inside = sorted({module.split(".")[1] for module in graph.modules if module.startswith(package + ".")})
    folders = {
        module.split(".")[1] for module in graph.modules if module.startswith(package + ".") and module.count(".") > 1
    }
    return [f"{name}/" if name in folders else name for name in inside]


def draw() -> str:
    """Return the picture as SVG text."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    arrows: Counter[tuple[str, str]] = Counter()
    leaf_uses: Counter[str] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            source, target = importer.split(".")[0], imported.split(".")[0]
            if source == target:
                continue
            if imported in LEAVES:
                leaf_uses[source] += 1
            else:
                arrows[source, target] += 1
    lines = {package: wrap(modules(graph, package), COLUMNS[package][1] // 7) for package in PACKAGES}
    heights = {package: 40 + LINE * len(lines[package]) for package in PACKAGES}
    middle = 70 + heights["runs"] + GAP
    bottom = middle + heights["programs"] + GAP
    rows = {"runs": 70, "programs": middle, "metrics": bottom, "signatures": bottom, "retrieval": bottom}
    below = bottom + max(heights[package] for package in ("metrics", "signatures", "retrieval"))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 {below + 70}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="980" height="{below + 70}" fill="#ffffff"/>',
        '<text x="40" y="40" font-size="20">Search-o1: packages and their imports</text>',
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#334"/></marker></defs>',
    ]
    for package in PACKAGES:
        (x, width), y = COLUMNS[package], rows[package]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{heights[package]}" rx="6" fill="#eef3fa" stroke="#334"/>'
        )
        parts.append(f'<text x="{x + 10}" y="{y + 22}" font-size="12" font-weight="bold">{package}/</text>')
        parts.append(f'<text x="{x + 90}" y="{y + 22}" font-size="12">{SAYS[package]}</text>')
        for i, line in enumerate(lines[package]):
            parts.append(f'<text x="{x + 10}" y="{y + 42 + LINE * i}" fill="#223" font-size="12">{escape(line)}</text>')
    for (source, target), count in sorted(arrows.items()):
        (sx, sw), (tx, tw) = COLUMNS[source], COLUMNS[target]
        x1 = x2 = tx + tw // 2
        if (source, target) == ("runs", "signatures"):
            # Beside the box of programs, which stands between the two.
            x1 = x2 = tx + tw - 12
        elif (source, target) == ("programs", "retrieval"):
            x1, x2 = sx + sw - 10, tx + 40
        elif (source, target) == ("programs", "signatures"):
            x1 = x2 = sx + sw // 2
        parts.append(
            f'<line x1="{x1}" y1="{rows[source] + heights[source]}" x2="{x2}" y2="{rows[target] - 2}" stroke="#334" '
            'stroke-width="1.5" marker-end="url(#tip)"/>'
        )
        parts.append(f'<text x="{x2 + 6}" y="{rows[target] - 10}" fill="#334" font-size="11">{source}: {count}</text>')
    uses = ", ".join(f"{name} {count}" for name, count in sorted(leaf_uses.items()))
    leaves = f"Leaves that any package may import: {', '.join(LEAVES)}."
    parts.append(f'<text x="40" y="{below + 35}" fill="#223" font-size="12">{leaves}</text>')
    uses = f"They are imported from other packages so often: {uses}."
    parts.append(f'<text x="40" y="{below + 55}" fill="#223" font-size="12">{uses}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    picture = draw()
    if "--check" in sys.argv:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != picture:
            sys.exit(f"{TARGET.name} is out of date: run python docs/draw_architecture.py")
    else:
        TARGET.write_text(picture, encoding="utf-8")
