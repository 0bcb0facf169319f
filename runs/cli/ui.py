"""`search-o1 ui`."""

from __future__ import annotations

import click


@click.command("ui")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=5000, show_default=True, help="Port to listen on.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
def command(host: str, port: int, tracking_uri: str | None) -> None:
    """Browse the runs in MLflow."""
    import subprocess
    import sys

    from runs.home import Home

    home = Home()
    uri = tracking_uri or home.tracking_uri
    home.root.mkdir(parents=True, exist_ok=True)
    click.echo(f"MLflow on http://{host}:{port} for {uri} (Ctrl-C stops it)")
    arguments = ["server", "--backend-store-uri", uri, "--host", host, "--port", str(port), "--workers", "1"]
    if uri == f"sqlite:///{home.root / 'mlflow.db'}":
        arguments += ["--default-artifact-root", home.artifacts.resolve().as_uri()]
    raise SystemExit(subprocess.call([sys.executable, "-m", "mlflow", *arguments]))
