"""A path as a person typed it."""

from __future__ import annotations

from pathlib import Path

from signatures.errors import OptionError


def user_path(text: str | Path) -> Path:
    """Return a path with `~` spelled out.

    Args:
        text: The path.

    Returns:
        The path, which need not exist.

    Raises:
        OptionError: No file can have this name: its user is unknown, or it is too long for the file system.
    """
    shown = f"{str(text)[:80]}..." if len(str(text)) > 80 else str(text)
    try:
        path = Path(text).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except RuntimeError:
        raise OptionError(f"{shown!r}: there is no such user here; write the folder's path in full.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(f"{shown!r} cannot be a file's path: {reason}. Choose another.") from None
    return path
