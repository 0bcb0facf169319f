"""`search-o1`: the command line. Every verb is a thin shell over a Python function of the same name and options."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, NoReturn

import click

from signatures.errors import SearchO1Error

_VERBS = {
    "ask": ("runs.cli.ask", "Ask one question over the web or your own documents."),
    "benchmarks": ("runs.cli.benchmarks", "List benchmarks, or show questions of one."),
    "cache": ("runs.cli.cache", "Show, export, import or prune what was searched, read and generated."),
    "compare": ("runs.cli.compare", "Compare two runs question by question."),
    "doctor": ("runs.cli.doctor", "Check keys, servers, model, indexes, cache and MLflow."),
    "evaluate": ("runs.cli.evaluate", "Evaluate methods on a benchmark or a question file."),
    "index": ("runs.cli.index", "Build and search a local index of documents."),
    "optimize": ("runs.cli.optimize", "Improve the prompts of a method for a model."),
    "programs": ("runs.cli.programs", "List, show or compare compiled programs."),
    "report": ("runs.cli.report", "Report finished runs: tables, beside the paper's, figures."),
    "rescore": ("runs.cli.rescore", "Score predictions that were made elsewhere."),
    "serve": ("runs.cli.serve", "Start a language-model server."),
    "tune": ("runs.cli.tune", "Search for the best settings of a method."),
    "ui": ("runs.cli.ui", "Browse the runs in MLflow."),
}


class _Group(click.Group):
    """Verbs whose modules are imported only when used, and errors shown without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command: click.Command = importlib.import_module(_VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _VERBS[name][1]) for name in sorted(_VERBS)])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.Abort:
            _stopped()
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.exceptions.Exit as stop:
            sys.exit(stop.exit_code)
        except SearchO1Error as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            _stopped()
        except OSError as error:
            named = f"{error.filename}: " if error.filename else ""
            click.echo(f"Error: {named}{error.strerror or error}.", err=True)
            sys.exit(2)


def _stopped() -> NoReturn:
    # A second Ctrl-C would show what Python was about to tidy up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    click.echo("\nStopped. The same command goes on from here.", err=True)
    sys.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="search-o1")
def main() -> None:
    """Search-o1: a reasoning model that searches in the middle of its own chain of thought.

    Everything a run leaves behind lies in one folder: SEARCH_O1_HOME, by default your user data folder.
    """
    from runs.home import Home

    os.environ.setdefault("DSPY_CACHEDIR", str(Home().root / "dspy"))
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
