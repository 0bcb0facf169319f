"""A server that speaks as much of the Hugging Face hub as fetching single files of a dataset takes.

What is spoken was read off huggingface_hub 2.4 and datasets 5.2: the repository's description
(`GET /api/datasets/OWNER/NAME/revision/REV`), then for each file `HEAD` and `GET` of
`/datasets/OWNER/NAME/resolve/REV/FILE`; Parquet is redirected to a content address, as large files are. Refusals carry
`X-Error-Code` and `X-Error-Message`. Use it as a context manager, with HF_ENDPOINT set to its `url`:

    with HubServer({"owner/name": HubRepo({"test.jsonl": b"{}"})}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

INVALID_TOKEN = "Invalid credentials in Authorization header"


@dataclass
class HubRepo:
    """A dataset repository.

    Attributes:
        files: Content by path.
        gated: Whether a token with access is needed for its files.
        branches: Names that stand for its commit.
    """

    files: Mapping[str, bytes]
    gated: bool = False
    branches: tuple[str, ...] = ("main",)

    @property
    def commit(self) -> str:
        """The commit: 40 hexadecimal digits, other ones for other content."""
        digest = hashlib.sha1()
        for name, content in sorted(self.files.items()):
            digest.update(f"{name} {len(content)} ".encode() + content)
        return digest.hexdigest()


@dataclass(frozen=True)
class Reply:
    """A reply of the server."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class HubServer:
    """The server.

    Args:
        repos: Repositories by `owner/name`.
        tokens: Known tokens; True for those that were given access to gated repositories.

    Attributes:
        requests: `METHOD PATH` of what was asked so far.
        status: HTTP status to answer everything with, or None.
    """

    def __init__(self, repos: Mapping[str, HubRepo], tokens: Mapping[str, bool] | None = None) -> None:
        self.repos = dict(repos)
        self.requests: list[str] = []
        self.status: int | None = None
        self._tokens = dict(tokens or {})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Address of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def downloads(self) -> list[str]:
        """Return the paths of files that were sent."""
        return [r.split("/", 7)[-1] for r in self.requests if r.startswith("GET ") and "/resolve/" in r]

    def _answer(self, method: str, path: str, authorization: str) -> Reply:
        self.requests.append(f"{method} {path}")
        if self.status is not None:
            return Reply(self.status, {"X-Error-Message": "The hub is having a bad day"})
        token = authorization.removeprefix("Bearer ")
        if token and token not in self._tokens:
            return Reply(401, {"X-Error-Message": INVALID_TOKEN})
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"] and len(parts) == 6 and parts[4] == "revision":
            return self._info("/".join(parts[2:4]), parts[5])
        if parts[0] == "datasets" and len(parts) > 5 and parts[3] == "resolve":
            return self._file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]), token)
        if parts[0] == "content" and len(parts) > 3:
            return Reply(200, body=self.repos["/".join(parts[1:3])].files["/".join(parts[3:])])
        return Reply(404)

    def _refusal(self, repo: str, revision: str) -> Reply | None:
        found = self.repos.get(repo)
        if found is None:
            # The hub does not tell what is missing from what is private.
            return Reply(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        if revision not in (found.commit, *found.branches):
            message = f"Invalid rev id: {revision}"
            return Reply(404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": message})
        return None

    def _info(self, repo: str, revision: str) -> Reply:
        if (refused := self._refusal(repo, revision)) is not None:
            return refused
        found = self.repos[repo]
        told = {
            "id": repo,
            "sha": found.commit,
            "private": False,
            "gated": "auto" if found.gated else False,
            "siblings": [{"rfilename": name} for name in found.files],
        }
        return Reply(200, {"Content-Type": "application/json"}, json.dumps(told).encode())

    def _file(self, repo: str, revision: str, name: str, token: str) -> Reply:
        if (refused := self._refusal(repo, revision)) is not None:
            return refused
        found = self.repos[repo]
        if found.gated and not self._tokens.get(token, False):
            message = f"Access to dataset {repo} is restricted and you are not in the authorized list."
            return Reply(403 if token else 401, {"X-Error-Code": "GatedRepo", "X-Error-Message": message})
        if name not in found.files:
            return Reply(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        content = found.files[name]
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        headers = {"X-Repo-Commit": found.commit, "ETag": etag}
        if name.endswith(".parquet"):
            linked = {"X-Linked-ETag": etag, "X-Linked-Size": str(len(content))}
            # Under another name of this host: redirects within the hub are followed before the headers are read.
            elsewhere = self.url.replace("127.0.0.1", "localhost")
            return Reply(302, {**headers, **linked, "Location": f"{elsewhere}/content/{repo}/{name}"})
        return Reply(200, headers, content)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = unquote(self.path.partition("?")[0])
                reply = answer(self.command, path, self.headers.get("Authorization", ""))
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(reply.body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        return Handler
