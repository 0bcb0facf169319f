"""`search-o1 report` from the command line."""

from __future__ import annotations

from pathlib import Path

from runs.cli.report import command as report_command
from runs.home import Home
from tests.runs.report_world import write_run
from tests.runs.world import command


def test_a_report_goes_to_the_screen_or_to_a_file(tmp_path: Path) -> None:
    run = write_run(Home(tmp_path), "aime24", "search_o1", [1] * 17 + [0] * 13).name
    shown = command(run, "--paper", home=tmp_path, verb=report_command)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("# Runs beside the Search-o1 paper\n")
    assert "| AIME24 | 56.7 | " in shown.output
    html = command(run, "--format", "html", home=tmp_path, verb=report_command)
    assert html.output.startswith("<!DOCTYPE html>")
    file = tmp_path / "tables.tex"
    written = command(run, "--paper", "--output", str(file), home=tmp_path, verb=report_command)
    assert (written.exit_code, written.output) == (0, f"Written: {file}\n")
    assert file.read_text(encoding="utf-8").startswith("\\documentclass")


def test_a_figure_is_written_to_its_file(tmp_path: Path) -> None:
    run = write_run(Home(tmp_path), "gpqa", "direct", [1, 0, 1], split="diamond").name
    file = tmp_path / "doubt.svg"
    done = command(run, "--figure", "uncertainty", "--output", str(file), home=tmp_path, verb=report_command)
    assert (done.exit_code, done.output) == (0, f"Written: {file}\n")
    assert file.read_bytes().startswith(b"<?xml")


def test_options_are_explained_and_mistakes_told(tmp_path: Path) -> None:
    done = command("--help", verb=report_command)
    for word in ("--paper", "--format", "--output", "--figure", "search-o1 report RUN RUN --paper --output tables.tex"):
        assert word in done.output
    assert command(home=tmp_path, verb=report_command).exit_code == 2
    assert "Missing argument 'RUN...'" in command(home=tmp_path, verb=report_command).stderr
    assert command("x", "--figure", "pie", home=tmp_path, verb=report_command).exit_code == 2
