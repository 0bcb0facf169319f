"""The shapes in which vLLM 0.32 answers: whole replies, streamed chunks, the model list, the metrics page."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.servers.engine import BLOCK_SIZE

if TYPE_CHECKING:
    from tests.servers.lm import Call, LMServer

VERSION = "0.32.0"
FINGERPRINT = f"vllm-{VERSION}-scripted"


def _head(server: LMServer, *, chat: bool, chunk: bool = False) -> dict[str, Any]:
    kind = ("chat.completion.chunk" if chunk else "chat.completion") if chat else "text_completion"
    name = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex[:16]}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": server.model}


def _usage(server: LMServer, calls: list[Call], *, chat: bool) -> dict[str, Any]:
    prompts = {id(call.prompt_ids): len(call.prompt_ids) for call in calls}
    prompt, generated = sum(prompts.values()), sum(len(call.output.token_ids) for call in calls)
    details = None
    if not server.no_cache_details:
        last = calls[-1]
        created = len(last.prompt_ids) // BLOCK_SIZE * BLOCK_SIZE - last.cached if chat else None
        details = {"cached_tokens": last.cached, "created_cache_tokens": created, "multimodal_tokens": None}
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": details,
        "completion_tokens_details": None,
    }


def whole_reply(server: LMServer, calls: list[Call], *, chat: bool, with_ids: bool) -> dict[str, Any]:
    """Return the JSON of a reply that is not streamed."""
    choices: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        output = call.output
        choice: dict[str, Any] = {
            "index": index,
            "logprobs": None,
            "finish_reason": output.finish_reason,
            "stop_reason": output.stop_reason,
            "token_ids": output.token_ids if with_ids else None,
            "routed_experts": None,
        }
        if chat:
            empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
            choice["message"] = {"role": "assistant", "content": output.text, **empty}
        else:
            prompt_ids = call.prompt_ids if with_ids else None
            choice |= {"text": output.text, "prompt_logprobs": None, "prompt_token_ids": prompt_ids}
        choices.append(choice)
    empty = dict.fromkeys(("service_tier", "kv_transfer_params", "ec_transfer_params", "metrics"))
    if chat:
        prompt_ids = calls[0].prompt_ids if with_ids else None
        empty |= {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "prompt_text": None}
    usage = _usage(server, calls, chat=chat)
    return {**_head(server, chat=chat), "choices": choices, "usage": usage, "system_fingerprint": FINGERPRINT, **empty}


def chunks(
    server: LMServer, calls: list[Call], *, chat: bool, with_ids: bool, include_usage: bool
) -> Iterator[dict[str, Any]]:
    """Yield the JSON of a streamed reply, a chunk a token; the closing `[DONE]` is the caller's."""
    head = _head(server, chat=chat, chunk=True)
    for index, call in enumerate(calls):
        prompt_ids = call.prompt_ids if with_ids else None
        if chat:
            opening = {"index": index, "delta": {"role": "assistant", "content": ""}}
            opening |= {"logprobs": None, "finish_reason": None}
            yield {**head, "choices": [opening], "prompt_token_ids": prompt_ids, "prompt_text": None}
        for number, (token_id, text) in enumerate(call.output.steps):
            last = number == len(call.output.steps) - 1
            choice: dict[str, Any] = {"index": index, "logprobs": None}
            choice |= {"delta": {"content": text}} if chat else {"text": text}
            choice["finish_reason"] = call.output.finish_reason if last else None
            if last or not chat:
                choice["stop_reason"] = call.output.stop_reason if last else None
            if not chat:
                choice["prompt_token_ids"] = prompt_ids if number == 0 else None
            choice["token_ids"] = [token_id] if with_ids else None
            chunk = {**head, "choices": [choice]}
            if last and not chat and not include_usage:
                chunk["system_fingerprint"] = FINGERPRINT
            yield chunk
    if include_usage:
        usage = {name: value for name, value in _usage(server, calls, chat=chat).items() if value is not None}
        if details := usage.get("prompt_tokens_details"):
            usage["prompt_tokens_details"] = {name: value for name, value in details.items() if value is not None}
        yield {**head, "choices": [], "usage": usage, "system_fingerprint": FINGERPRINT}


def model_list(server: LMServer) -> dict[str, Any]:
    """Return the JSON of `/v1/models`."""
    card = {
        "id": server.model,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "vllm",
        "root": f"models/{server.model}",
        "parent": None,
        "max_model_len": server.max_model_len,
        "permission": [],
    }
    return {"object": "list", "data": [card]}


def metrics_page(server: LMServer) -> str:
    """Return the `/metrics` page: the names that clients read, with vLLM's labels."""
    label = f'engine="0",model_name="{server.model}"'
    values = {
        "num_requests_running": server.running,
        "num_requests_waiting": 0,
        "kv_cache_usage_perc": 0,
        "prefix_cache_queries_total": server.cache.queries,
        "prefix_cache_hits_total": server.cache.hits,
        "num_preemptions_total": 0,
        "prompt_tokens_total": sum(len(call.prompt_ids) for call in server.calls),
        "prompt_tokens_cached_total": sum(call.cached for call in server.calls),
        "generation_tokens_total": sum(len(call.output.token_ids) for call in server.calls),
    }
    lines = []
    for name, value in values.items():
        lines.append(f"# TYPE vllm:{name} {'counter' if name.endswith('_total') else 'gauge'}")
        lines.append(f"vllm:{name}{{{label}}} {float(value)}")
    lines.append("# TYPE vllm:request_success_total counter")
    for reason in ("stop", "length"):
        labels = f'engine="0",finished_reason="{reason}",model_name="{server.model}"'
        lines.append(f"vllm:request_success_total{{{labels}}} {float(server.finished[reason])}")
    return "\n".join(lines) + "\n"
