"""How figures look and how they are saved: for a column of a paper, the same bytes for the same numbers.

Colours are those of M. Okabe and K. Ito, which people with any colour vision can tell apart. Each series has a marker
too, for print without colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from runs.reports.systems import System
from signatures.errors import DataError, OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

SUFFIXES = (".pdf", ".svg", ".png")
COLUMN_INCHES = 3.35
PAGE_INCHES = 6.9

_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"Creator": "search-o1", "Producer": None, "CreationDate": None},
    ".svg": {"Creator": "search-o1", "Date": None},
    ".png": {"Software": None},
}
# Typed as anything: matplotlib names every one of its settings in the type it asks for.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    # Letters stay letters in a PDF, and ids in an SVG do not depend on the day.
    "pdf.fonttype": 42,
    "svg.hashsalt": "search-o1",
}
_METHOD_LOOKS = {
    "direct": ("#000000", "s"),
    "standard_rag": ("#E69F00", "^"),
    "rag_agent": ("#009E73", "D"),
    "search_o1": ("#0072B2", "o"),
}
_OTHER_LOOKS = (
    ("#CC79A7", "v"),
    ("#D55E00", "P"),
    ("#56B4E9", "X"),
    ("#7F7F7F", "<"),
    ("#B8A600", ">"),
    ("#44AA99", "*"),
)


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw in this project's style, whatever the user's matplotlib is set to."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import style

        with style.context(["default", _STYLE]):
            return draw(*args, **kwargs)

    return drawn


def looks_of(systems: Sequence[System]) -> list[tuple[str, str]]:
    """Return colour and marker of each system: a method's own, and others where a method comes twice.

    Args:
        systems: The systems of a figure.

    Returns:
        (colour, marker) each, in order, all different for up to ten.
    """
    spare = list(_OTHER_LOOKS)
    taken: set[str] = set()
    looks: list[tuple[str, str]] = []
    for index, system in enumerate(systems):
        if system.method in _METHOD_LOOKS and system.method not in taken:
            taken.add(system.method)
            looks.append(_METHOD_LOOKS[system.method])
        else:
            looks.append(spare.pop(0) if spare else _OTHER_LOOKS[index % len(_OTHER_LOOKS)])
    return looks


def panels(count: int, height: float = 2.3) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, at most three beside each other.

    Args:
        count: Panels, at least 1.
        height: Inches of a row of panels.

    Returns:
        The figure, a column wide for one panel and a page wide for several, and its panels.
    """
    from matplotlib.figure import Figure

    across = min(count, 3)
    down = -(-count // across)
    width = COLUMN_INCHES if count == 1 else PAGE_INCHES
    figure = Figure(figsize=(width, height * down + 0.45), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for empty in axes[count:]:
        empty.set_axis_off()
    return figure, axes[:count]


def check_suffix(path: Path) -> None:
    """Refuse a file whose suffix names no picture format that is written here.

    Raises:
        OptionError: The suffix is another.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"A figure cannot be written as {path.name!r}; its name must end in {', '.join(SUFFIXES)}.")


@styled
def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the same figure gives the same bytes.

    Args:
        figure: The figure.
        path: File whose suffix is one of `SUFFIXES`.

    Raises:
        OptionError: The suffix is another.
        DataError: The file cannot be written.
    """
    check_suffix(path)
    suffix = path.suffix.lower()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format=suffix[1:], dpi=300, metadata=_METADATA[suffix])
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another --output.") from error


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 2) -> None:
    """Put one legend for all panels under them, where it covers no point."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))
