"""Turn a GGUF weight file into the Hugging Face folder that vLLM serves.

vLLM on the CPU reads no GGUF file, while the embedded default of this project is one. Converting it once gives the
same weights to both, so that what is tried locally can be tried against the production server too. The tensors are
dequantised to float32: on a processor without bfloat16 arithmetic every narrower type is emulated and slower.

Run it in the vLLM environment (it needs torch, transformers, gguf and accelerate, and nothing else of ours)::

    python -m runs.serving.convert_gguf MODEL.gguf OUT_FOLDER
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

_USAGE = "usage: python -m runs.serving.convert_gguf MODEL.gguf OUT_FOLDER"
_GGUF_MAGIC = b"GGUF"


def is_converted(folder: Path) -> bool:
    """Say whether a folder holds a finished conversion.

    Args:
        folder: Folder that `convert` may have written.

    Returns:
        True when the folder has a configuration, a tokenizer and weights; conversions appear whole or not at all.
    """
    names = ("config.json", "tokenizer.json", "model.safetensors")
    return all((folder / name).is_file() for name in names)


def convert(gguf: Path, folder: Path) -> Path:
    """Write the weights, tokenizer and chat template of a GGUF file as a Hugging Face folder in float32.

    The folder is written beside its final place and moved there at the end, so a killed conversion leaves no half
    model behind. A finished one is kept as it is.

    Args:
        gguf: Weight file in GGUF format, of an architecture that transformers can read.
        folder: Where the model goes; created with its parents.

    Returns:
        The folder.

    Raises:
        ValueError: If `gguf` is no GGUF file.
        FileNotFoundError: If `gguf` does not exist.
    """
    if is_converted(folder):
        return folder
    with gguf.open("rb") as file:
        if file.read(len(_GGUF_MAGIC)) != _GGUF_MAGIC:
            raise ValueError(f"{gguf} is no GGUF file: it does not begin with {_GGUF_MAGIC!r}. Name a .gguf file.")
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    source = str(gguf.resolve().parent)
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf.name, dtype=torch.float32)
    _forget_quantisation(model)
    ends = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    for name, value in ends.items():
        setattr(model.config, name, value)
    # A GGUF file has no generation settings; left alone, transformers would invent token ids of its own.
    model.generation_config = GenerationConfig(**ends)
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    if folder.exists():
        shutil.rmtree(folder)
    part.replace(folder)
    return folder


def _forget_quantisation(model: Any) -> None:
    """Remove the marks that say "quantised" from a model whose tensors are plain floats by now.

    transformers refuses to save a GGUF-loaded model, and vLLM would look for quantised kernels.

    Args:
        model: A transformers model loaded from a GGUF file; changed in place.
    """
    model.hf_quantizer = None
    model.quantization_method = None
    model.is_quantized = False
    for config in (model.config, model.config.get_text_config()):
        if hasattr(config, "quantization_config"):
            del config.quantization_config


def main(arguments: list[str]) -> int:
    """Convert the file named on the command line.

    Args:
        arguments: The GGUF file and the folder to write.

    Returns:
        The exit status: 0, or 2 for wrong arguments.
    """
    if len(arguments) != 2:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        print(convert(Path(arguments[0]), Path(arguments[1])))
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
