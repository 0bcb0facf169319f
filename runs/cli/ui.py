"""`search-o1 ui`."""

from __future__ import annotations

import click


@click.command("ui")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
def command(host: str, port: int, tracking_uri: str | None) -> None:
    """Browse the runs in MLflow."""
    import signal
    import sys

    from runs.home import Home
    from runs.serving.commands import ServerCommand
    from runs.serving.process import ServerProcess, check_port

    check_port(host, port)
    home = Home()
    uri = tracking_uri or home.tracking_uri
    home.root.mkdir(parents=True, exist_ok=True)
    arguments = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, "--host", host]
    arguments += ["--port", str(port), "--workers", "1"]
    if uri == f"sqlite:///{home.root / 'mlflow.db'}":
        arguments += ["--default-artifact-root", home.artifacts.resolve().as_uri()]
    address = f"http://{host}:{port}"
    log = home.root / "logs" / f"mlflow-{port}.log"
    # Without its job runner MLflow starts in a third of the time; nothing here uses it.
    environment = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    # MLflow starts workers of its own; whatever ends this command must end them too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    click.echo(f"Starting MLflow for {uri} ...")
    try:
        with ServerProcess(ServerCommand(arguments, environment, address), log) as server:
            server.wait_ready(300)
            click.echo(f"MLflow on {address} (Ctrl-C stops it)")
            server.wait()
            click.echo(f"MLflow ended. End of {log}:\n{server.tail()}", err=True)
    except KeyboardInterrupt:
        click.echo("\nStopped.")
        return
    raise SystemExit(1)
