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
LEAVES = ("signatures.markup", "signatures.errors", "metrics.extraction")
PLACES = {
    "runs": (40, 70, 900),
    "programs": (320, 270, 260),
    "metrics": (40, 480, 280),
    "signatures": (350, 480, 280),
    "retrieval": (660, 480, 280),
}
SAYS = {
    "runs": "what a person starts",
    "programs": "how the model is asked",
    "metrics": "how answers are judged",
    "signatures": "what the model is asked",
    "retrieval": "where knowledge comes from",
}
LINE = 17
TARGET = Path(__file__).parent / "architecture.svg"


def wrap(names: list[str], width: int) -> list[str]:
    """Break a list of module names into lines of at most `width` characters."""
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > width:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + name
    return lines


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
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 720" font-family="sans-serif" font-size="13">',
        '<rect width="980" height="720" fill="#ffffff"/>',
        '<text x="40" y="40" font-size="20">Search-o1: packages and their imports</text>',
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#334"/></marker></defs>',
    ]
    boxes = {}
    for package in PACKAGES:
        x, y, width = PLACES[package]
        names = sorted({".".join(m.split(".")[1:3]) for m in graph.modules if m.startswith(package + ".")})
        lines = wrap(
            [n for n in names if "." not in n or n.split(".")[0] in ("models", "cli", "benchmarks", "serving")],
            width // 7,
        )
        height = 40 + LINE * len(lines)
        boxes[package] = (x, y, width, height)
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="#eef3fa" stroke="#334"/>')
        parts.append(
            f'<text x="{x + 10}" y="{y + 22}" font-size="12" font-weight="bold">{package}/ - {SAYS[package]}</text>'
        )
        for i, line in enumerate(lines):
            parts.append(f'<text x="{x + 10}" y="{y + 42 + LINE * i}" fill="#223" font-size="12">{escape(line)}</text>')
    for (source, target), count in sorted(arrows.items()):
        sx, sy, sw, sh = boxes[source]
        tx, ty, tw, _ = boxes[target]
        x1 = x2 = tx + tw - 30 if source == "runs" and target != "programs" else tx + tw // 2
        if (source, target) == ("programs", "retrieval"):
            x1, x2 = sx + sw - 10, tx + 40
        parts.append(
            f'<line x1="{x1}" y1="{sy + sh}" x2="{x2}" y2="{ty - 2}" stroke="#334" stroke-width="1.5" '
            f'marker-end="url(#tip)"/>'
        )
        parts.append(f'<text x="{x2 + 6}" y="{ty - 10}" fill="#334">{source}: {count}</text>')
    uses = ", ".join(f"{name} {count}" for name, count in sorted(leaf_uses.items()))
    leaves = f"Leaves that any package may import (standard library only): {', '.join(LEAVES)}."
    parts.append(f'<text x="40" y="680" fill="#223">{leaves}</text>')
    parts.append(f'<text x="40" y="700" fill="#223">They are imported from other packages so often: {uses}.</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    picture = draw()
    if "--check" in sys.argv:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != picture:
            sys.exit(f"{TARGET.name} is out of date: run python docs/draw_architecture.py")
    else:
        TARGET.write_text(picture, encoding="utf-8")
