"""A JSON file that is either whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from signatures.errors import DataError


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file so that it is either whole or not there.

    Raises:
        DataError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}. Make room and start again.") from error
