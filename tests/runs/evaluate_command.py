"""What `search-o1 evaluate` makes of a command line, without running it."""

from __future__ import annotations

from runs.cli.evaluate import command
from runs.cli.options import parse_changes, parse_retrieval
from runs.settings import EvaluateSettings, make_settings


def settings_of(arguments: list[str]) -> EvaluateSettings:
    """Read arguments with the command's own parser."""
    given = command.make_context("evaluate", list(arguments)).params
    options = parse_changes(given.pop("changes"), force_answer=given.pop("force_answer"), open_urls=given["open_urls"])
    track = not given.pop("no_track")
    found: EvaluateSettings = make_settings(
        EvaluateSettings, {**parse_retrieval(given), "options": options, "track": track}
    )
    return found
