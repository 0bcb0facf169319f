"""Short-hands of the tests that talk to the scripted language-model server."""

from __future__ import annotations

import json
from typing import Any

import requests

from tests.servers.lm import LMServer


def echo(prompt: str, body: dict[str, Any]) -> str:
    return "Paris is the capital of France. It lies on the Seine."


def post(server: LMServer, path: str, **body: Any) -> requests.Response:
    return requests.post(server.root_url + path, json=body, timeout=20)


def complete(server: LMServer, prompt: str | list[int], **body: Any) -> dict[str, Any]:
    answer = post(server, "/v1/completions", model=server.model, prompt=prompt, **{"max_tokens": 60, **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def error(answer: requests.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["error"]["message"], answer.json()["error"]["param"]


def events(answer: requests.Response) -> list[dict[str, Any]]:
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]
