"""What a reader must know before comparing our numbers with the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from runs.reports.cells import Cell
from runs.reports.fallback import Outcomes
from runs.reports.paper_tables import LIVECODEBENCH_REACHABLE, plain_name


def paper_notes(outcomes: Sequence[Outcomes], cells: Sequence[Cell]) -> list[str]:
    """Return the notes that belong to a comparison.

    Args:
        outcomes: The runs.
        cells: Their cells.

    Returns:
        Sentences; what does not concern these runs is left out.
    """
    reachable, problems = LIVECODEBENCH_REACHABLE
    models = {plain_name(o.run.model) for o in outcomes}
    notes = [
        "official repeats the paper's published scorer, so that its numbers compare; strict is right rather than "
        "comparable. Failed and unanswered questions count as wrong in both.",
        "Intervals are 95 %. A difference is our official score minus the paper's figure, which is a single run: both "
        "have the error of their number of questions and are treated as independent (Newcombe's interval), which is "
        "cautious where the questions are the same. The paper gives no spread of F1; that of ours is taken for both.",
    ]
    if any(o.run.method != "direct" for o in outcomes):
        notes.append(
            "The paper's figures of methods that retrieve have its fallback: where a method gives no valid answer, the "
            "direct answer stands in. Differences, averages and gains use our scores with it where they can be told, "
            "that is for runs with --fallback, or beside a direct run of the same model on the same questions."
        )
    if any(cell.fallback_missing for cell in cells):
        notes.append("‡ without the fallback that the paper's figure has.")
    if any(cell.partial for cell in cells):
        notes.append("† on another number of questions than the set has, so not the paper's measurement.")
    if any(cell.column.benchmark == "livecodebench" for cell in cells):
        notes.append(
            f"LiveCodeBench, official: every problem is run as a program that reads standard input, so the "
            f"{problems - reachable} problems that ask for a function are never passed and no score exceeds "
            f"{reachable} of {problems} ({100 * reachable / problems:.1f} %), the paper's figures included. "
            "It runs the public tests only; strict runs all tests that the data hold."
        )
    if "qwq32b" in models:
        notes.append(
            "QwQ-32B is not the paper's model: its QwQ-32B is QwQ-32B-Preview of November 2024. Where Table 1 has a "
            "figure for QwQ-32B, it is the one that the WebThinker paper reports."
        )
    unknown = sorted({cell.outcomes.run.label for cell in cells if cell.row is None})
    if unknown:
        notes.append(f"Without a row in the paper, so without a figure beside them: {'; '.join(unknown)}.")
    if any(o.run.method == "search_o1" and o.run.model.lower().endswith("preview") for o in outcomes):
        notes.append(
            "The paper's text says that Search-o1 exceeds the RAG agent by 4.7 % and direct reasoning by 3.1 % on "
            "average; by its Table 1 it is the other way round."
        )
    if not cells:
        notes.append("None of these runs is on a set of the paper's tables.")
    return notes
