"""Files of dataset repositories on the Hugging Face hub: fetched once, each with the commit it comes from.

Single files are taken, never a loading script. They lie in the hub's own cache (`HF_HOME`), where other tools find them
too; without a connection a copy there is used. `HF_TOKEN` and `HF_ENDPOINT` are respected.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from signatures.errors import DataError

_SITE = "https://huggingface.co"
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class HubFiles:
    """Files of one commit.

    Attributes:
        paths: Local copies, in the order asked for.
        revision: The commit, 40 hexadecimal digits.
    """

    paths: tuple[Path, ...]
    revision: str


def dataset_page(repo: str) -> str:
    """Return the address of a dataset's page."""
    return f"{_SITE}/datasets/{repo}"


def fetch(repo: str, names: Sequence[str], revision: str = "main") -> HubFiles:
    """Fetch files of a dataset repository, or find them in the hub's cache.

    Args:
        repo: `owner/name`.
        names: Their paths in the repository; a shell pattern stands for the one file it matches.
        revision: Branch, tag or commit.

    Returns:
        The local copies, all of one commit.

    Raises:
        DataError: The hub cannot be reached and no copy is there, access is refused, or repository, revision or file
            do not exist; the text says what to do.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # Read at each call: the library keeps what the environment said when it was imported.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    token = os.environ.get("HF_TOKEN") or None
    cache = os.environ.get("HF_HUB_CACHE") or None
    api = HfApi(endpoint=endpoint, token=token, library_name="search-o1", library_version=version("search-o1"))
    page = dataset_page(repo)
    try:
        info = api.dataset_info(repo, revision=revision, timeout=_TIMEOUT_S)
        commit = str(info.sha)
        files = [_only(name, [s.rfilename for s in info.siblings or ()], f"{repo} at {commit}") for name in names]
        paths = [
            Path(api.hf_hub_download(repo, file, repo_type="dataset", revision=commit, cache_dir=cache))
            for file in files
        ]
        return HubFiles(tuple(paths), commit)
    except DataError:
        raise
    except GatedRepoError:
        raise DataError(
            f"{repo} is gated: accept its terms at {page}, then log in with `hf auth login` (older versions: "
            "`huggingface-cli login`) or set HF_TOKEN to a token of that account. With a copy of the file: --data FILE."
        ) from None
    except RevisionNotFoundError:
        raise DataError(f"{repo} has no revision {revision!r}; see {page}.") from None
    except RepositoryNotFoundError:
        raise DataError(
            f"The hub knows no dataset {repo}, or does not show it to you; see {page}, check HF_TOKEN, or give the "
            "questions with --data FILE."
        ) from None
    # A local entry is missing when the library could not reach the hub, which is not the same as a file that is gone.
    except EntryNotFoundError as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise DataError(f"{repo} no longer holds {', '.join(names)}; see {page}, or use --data FILE.") from None
        failure: Exception = error
    # Its HTTP library, whose errors pass through, differs by version.
    except Exception as error:
        failure = error
    status = getattr(getattr(failure, "response", None), "status_code", None)
    if status in (401, 403):
        raise DataError(
            f"The hub refused {repo} (HTTP {status}): the token in HF_TOKEN is not valid or may not read it. Log in "
            f"with `hf auth login`, ask for access at {page}, or give a copy with --data FILE."
        ) from None
    if (cached := _cached(repo, names, revision, cache)) is not None:
        return cached
    reason = f"HTTP {status}" if status else type(failure).__name__
    raise DataError(
        f"{repo} cannot be fetched ({reason}) and is not in the hub's cache. Check the connection and "
        f"HF_HUB_OFFLINE, or download {', '.join(names)} from {page} elsewhere and give it with --data FILE."
    ) from None


def _only(name: str, present: Sequence[str], where: str) -> str:
    """Return the one file that a name or pattern stands for."""
    found = [file for file in present if fnmatch.fnmatchcase(file, name)]
    if len(found) != 1:
        raise DataError(
            f"{where}: {len(found)} files match {name}, expected one; the repository has been rearranged. Download the "
            "file and give it with --data FILE."
        )
    return found[0]


def _cached(repo: str, names: Sequence[str], revision: str, cache: str | None) -> HubFiles | None:
    """Find a commit whose files all lie in the hub's cache: the one asked for, else the latest."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        found = scan_cache_dir(cache)
    except CacheNotFound:
        return None
    commits = [c for r in found.repos if (r.repo_type, r.repo_id) == ("dataset", repo) for c in r.revisions]
    for commit in sorted(commits, key=lambda c: c.last_modified, reverse=True):
        if revision not in ("main", commit.commit_hash, *commit.refs):
            continue
        matches = [sorted(Path(commit.snapshot_path).glob(name)) for name in names]
        if all(len(match) == 1 for match in matches):
            return HubFiles(tuple(match[0] for match in matches), commit.commit_hash)
    return None
