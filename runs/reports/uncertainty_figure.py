"""Words of doubt a chain: the paper's Figure 1 (right), from any runs.

What counts is what the model itself wrote, injected pages left out. The paper's bars have no numbers in its text, so
none stand beside ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metrics.chain_statistics import UNCERTAINTY_WORDS, uncertainty_words
from metrics.statistics import Estimate, mean_with_error
from runs.reports.fallback import Outcomes
from runs.reports.figures import legend_below, looks_of, panels, styled
from runs.reports.loading import ReportRun
from runs.reports.paper_tables import set_title
from runs.reports.systems import systems_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 0.7
"""Share of a word's place on the axis over which its systems are spread."""


@styled
def draw_uncertainty(outcomes: Sequence[Outcomes]) -> Figure:
    """Draw how often the words of doubt occur in a chain, one panel a set, with 95 % intervals.

    Args:
        outcomes: The runs.

    Returns:
        The figure.
    """
    from matplotlib.lines import Line2D

    sets = list(dict.fromkeys((o.run.benchmark, o.run.split) for o in outcomes))
    systems = systems_of(outcomes)
    looks = looks_of(systems)
    figure, axes = panels(len(sets))
    for ax, (benchmark, split) in zip(axes, sets, strict=True):
        for place, (system, (colour, marker)) in enumerate(zip(systems, looks, strict=True)):
            run = next((o.run for o in system.outcomes if (o.run.benchmark, o.run.split) == (benchmark, split)), None)
            if run is None:
                continue
            rates = uncertainty_rates(run)
            shift = _WIDTH * ((place + 0.5) / len(systems) - 0.5)
            means = [rates[word].mean for word in UNCERTAINTY_WORDS]
            ends = [
                [0.0 if r.low != r.low else r.mean - max(0.0, r.low) for r in rates.values()],
                [0.0 if r.high != r.high else r.high - r.mean for r in rates.values()],
            ]
            places = [index + shift for index in range(len(means))]
            ax.errorbar(
                places, means, yerr=ends, color=colour, marker=marker, linestyle="none", capsize=2, elinewidth=0.8
            )
        ax.set_title(set_title(benchmark, split))
        ax.set_xticks(range(len(UNCERTAINTY_WORDS)), UNCERTAINTY_WORDS)
        ax.set_xlim(-0.5, len(UNCERTAINTY_WORDS) - 0.5)
        # A little below 0, so that a marker at 0 is whole.
        ax.set_ylim(bottom=-0.04 * ax.get_ylim()[1])
        ax.tick_params(axis="x", length=0)
        for edge in range(1, len(UNCERTAINTY_WORDS)):
            ax.axvline(edge - 0.5, color="#dddddd", linewidth=0.5, zorder=0)
    axes[0].set_ylabel("Occurrences a chain")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=system.label)
        for system, (colour, marker) in zip(systems, looks, strict=True)
    ]
    legend_below(figure, handles, columns=1 if len(sets) == 1 else 3)
    return figure


def uncertainty_rates(run: ReportRun) -> dict[str, Estimate]:
    """Return how often each word of doubt occurs in a chain.

    Args:
        run: The run; a failed question counts with what its chain holds.

    Returns:
        Word to mean over questions, each the mean over its samples.
    """
    counts = {
        i: [uncertainty_words(str(r.get("chain") or "")) for r in records] for i, records in run.by_question.items()
    }
    return {
        word: mean_with_error([sum(c[word] for c in samples) / len(samples) for samples in counts.values()])
        for word in UNCERTAINTY_WORDS
    }
