"""Reading a request as vLLM 0.32 does: its checks, in its order and with its messages, and the prompt as token ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.servers.tokenizer import SPECIALS

if TYPE_CHECKING:
    from tests.servers.lm import LMServer

_LONGEST_TOKEN = max(map(len, SPECIALS))
_NOT_BOTH = "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
_NOT_COMPATIBLE = (
    "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you want the "
    "model to continue the final message, and add_generation_prompt when you want to add a header that will prompt it "
    "to start a new assistant message instead."
)


class ApiError(Exception):
    """An answer in vLLM's error shape.

    Args:
        message: What the client reads.
        param: The field at fault; appended to the message as vLLM does it.
        value: The wrong value, appended likewise.
        status: HTTP status.
    """

    def __init__(self, message: str, param: str | None = None, value: object = None, *, status: int = 400) -> None:
        if param is not None and status == 400:
            message += f" (parameter={param}" + (f", value={value})" if value is not None else ")")
        super().__init__(message)
        kind = "NotFoundError" if status == 404 else "BadRequestError"
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


async def read_body(server: LMServer, request: web.Request) -> dict[str, Any]:
    """Return the JSON of a request for this server's model (or for none)."""
    if request.content_type != "application/json":
        raise ApiError("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
    try:
        body = await request.json()
    except ValueError as error:
        detail = {"type": "json_invalid", "msg": "JSON decode error", "ctx": {"error": str(error)}}
        raise ApiError(f"1 validation error:\n  {detail}") from None
    name = body.get("model")
    if name and name != server.model:
        text = f"The model `{name}` does not exist. Valid aliases: {server.model}."
        raise ApiError(text, "model", status=404)
    return dict(body)


def completion_prompts(server: LMServer, body: dict[str, Any]) -> list[list[int]]:
    """Return the token ids of the prompts of `/v1/completions`: text, token ids, or a list of either."""
    prompt = body.get("prompt")
    if prompt is None or prompt == "":
        raise ApiError("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if prompt == []:
        raise ApiError("You must pass at least one prompt")
    single = isinstance(prompt, str) or isinstance(prompt[0], int)
    return [_prompt_ids(server, body, one) for one in ([prompt] if single else prompt)]


def _prompt_ids(server: LMServer, body: dict[str, Any], prompt: str | list[int]) -> list[int]:
    limit = server.max_model_len
    if not isinstance(prompt, str):
        for token_id in prompt:
            if not 0 <= token_id < server.tokenizer.size:
                raise ApiError(f"Token id {token_id} is out of vocabulary")
        return list(prompt)
    most = limit * _LONGEST_TOKEN
    if len(prompt) > most:
        raise ApiError(
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {len(prompt)} "
            f"characters (more than {most} characters, which is the upper bound for {limit} input tokens). "
            "Please reduce the length of the input prompt.",
            "input_text",
            len(prompt),
        )
    # vLLM stops tokenising one token past the context, so its message does not know the true length.
    return server.tokenizer.encode(prompt, add_special_tokens=body.get("add_special_tokens", True))[: limit + 1]


def chat_ids(server: LMServer, body: dict[str, Any]) -> list[int]:
    """Return the token ids of messages in the chat template, `<s>` before them if the tokenizer has one."""
    keep_open, new_turn = body.get("continue_final_message"), body.get("add_generation_prompt")
    if keep_open and new_turn:
        raise ApiError(_NOT_BOTH)
    if keep_open and new_turn is None:  # the default is a new turn
        raise ApiError(_NOT_COMPATIBLE)
    text = server.tokenizer.render(
        body["messages"], add_generation_prompt=new_turn is not False, continue_final_message=bool(keep_open)
    )
    text = SPECIALS[0] + text if server.tokenizer.bos else text
    return server.tokenizer.encode(text, add_special_tokens=body.get("add_special_tokens", False))


def token_budget(server: LMServer, body: dict[str, Any], ids: list[int], *, chat: bool) -> int:
    """Return how many tokens may be generated after a prompt; the default is 16, in a chat all that fits."""
    limit = server.max_model_len
    wanted = body.get("max_tokens")
    if chat and body.get("max_completion_tokens") is not None:
        wanted = body["max_completion_tokens"]
    if wanted is None:
        wanted = max(limit - len(ids), 0) if chat else 16
    elif not isinstance(wanted, int):
        raise ApiError(
            f"1 validation error:\n  {{'type': 'int_parsing', 'loc': 'body.max_tokens', 'input': {wanted!r}}}"
        )
    elif wanted < 1:
        raise ApiError(f"max_tokens must be at least 1, got {wanted}.", "max_tokens", wanted)
    elif wanted > limit:
        text = f"max_tokens={wanted} cannot be greater than max_model_len={limit}."
        raise ApiError(f"{text} Please request fewer output tokens.", "max_tokens", wanted)
    if len(ids) > limit:
        qualifier = "at least " if len(ids) == limit + 1 else ""
        raise ApiError(
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {qualifier}"
            f"{len(ids)} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            "input_tokens",
            len(ids),
        )
    room = limit - len(ids)
    if server.strict_budget and wanted > room:
        raise ApiError(
            f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length is "
            f"{limit} tokens and your request has {len(ids)} input tokens ({wanted} > {limit} - {len(ids)})."
        )
    if room < 1:
        raise ApiError(f"max_tokens must be at least 1, got {room}.", "max_tokens", room)
    return min(wanted, room)


def check_sampling(body: dict[str, Any]) -> None:
    """Refuse sampling values outside their ranges."""
    temperature, top_p, top_k = body.get("temperature"), body.get("top_p"), body.get("top_k")
    penalty = body.get("repetition_penalty")
    if temperature is not None and not 0 <= temperature <= 2:
        raise ApiError(f"temperature must be in [0, 2], got {float(temperature)}.", "temperature", float(temperature))
    if top_p is not None and not 0 < top_p <= 1:
        raise ApiError(f"top_p must be in (0, 1], got {float(top_p)}.", "top_p", float(top_p))
    if top_k is not None and top_k < -1:
        raise ApiError(f"top_k must be 0 (disable), or at least 1, got {top_k}.")
    if penalty is not None and penalty <= 0:
        raise ApiError(f"repetition_penalty must be greater than zero, got {float(penalty)}.")
    stop = body.get("stop")
    if isinstance(stop, list) and "" in stop:
        raise ApiError("stop cannot contain an empty string.")
