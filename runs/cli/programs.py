"""`search-o1 programs`."""

from __future__ import annotations

import click


@click.command("programs")
def command() -> None:
    """List the compiled programs that come with the package."""
    from programs.saving import shipped_programs

    for found in shipped_programs():
        demos = {name: len(state.get("demos", [])) for name, state in found.state.items() if isinstance(state, dict)}
        click.echo(
            f"{found.path.name}: {found.method}, {found.task}, for {found.model}; demos {demos}; "
            f"{found.metadata.get('made', '')}"
        )
