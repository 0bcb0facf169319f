"""A server that speaks Jina Reader's JSON mode.

It listens on the loopback interface in threads of its own. Use it as a context manager:

    with JinaServer({"https://example.org/a": jina_page("# A")}) as server:
        JinaReader(endpoint=server.url)
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class JinaAnswer:
    """What one page gets.

    Attributes:
        body: The reply: JSON as it is, or bytes.
        status: HTTP status of the service.
        headers: More header fields.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JinaRequest:
    """A request as the server got it.

    Attributes:
        method: HTTP method.
        url: The page asked for.
        headers: Header fields, names in lower case.
    """

    method: str
    url: str
    headers: dict[str, str]


def jina_page(content: str, title: str = "", warning: str | None = None, url: str = "", **data: Any) -> JinaAnswer:
    """Make the answer for a page that the service read."""
    record = {"title": title, "description": "", "url": url, "content": content, "usage": {"tokens": 17}, **data}
    if warning is not None:
        record["warning"] = warning
    return JinaAnswer({"code": 200, "status": 20000, "data": record, "meta": {"usage": {"tokens": 17}}})


def jina_error(
    code: int, name: str, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JinaAnswer:
    """Make the answer for an error of the service.

    Args:
        code: HTTP status in the reply's `code`.
        name: Name of the error.
        message: What it says.
        status: HTTP status of the reply itself; by default `code`.
        headers: More header fields.
    """
    body = {
        "data": None,
        "code": code,
        "name": name,
        "status": code * 100 + 3,
        "message": message,
        "readableMessage": f"{name}: {message}",
    }
    return JinaAnswer(body, status or code, headers or {})


class JinaServer:
    """The server.

    Args:
        pages: What each address gives: an answer, or a list of them, one for each request in turn, the last one for
            all further ones. Other addresses cannot be resolved.

    Attributes:
        requests: What was asked so far.
    """

    def __init__(self, pages: Mapping[str, JinaAnswer | list[JinaAnswer]]) -> None:
        self.requests: list[JinaRequest] = []
        self._scripts = {url: list(answer) if isinstance(answer, list) else [answer] for url, answer in pages.items()}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Address of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> JinaServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def _answer(self, request: JinaRequest) -> JinaAnswer:
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(request.url)
            if script:
                return script.pop(0) if len(script) > 1 else script[0]
        host = request.url.partition("://")[2].partition("/")[0]
        return jina_error(422, "SubmittedDataMalformedError", f"Domain '{host}' could not be resolved")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        serve = self._answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # The service undoes percent-encoding of a path, and no fragment reaches it.
                self._reply("GET", unquote(self.path[1:]))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._reply("POST", str(json.loads(body)["url"]))

            def log_message(self, *_: object) -> None:
                pass

            def _reply(self, method: str, url: str) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = serve(JinaRequest(method, url, headers))
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
