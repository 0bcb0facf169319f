"""The embedded model: OpenVINO GenAI with continuous batching and prefix caching, fed by one worker thread.

Requests of many chains are added as they come and decoded together; the thread sleeps when nothing is to be done.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from runs.models.engine import Reply
from signatures.errors import ModelError

BLOCK_TOKENS = 32
"""Tokens in one block of OpenVINO's KV cache on the CPU."""
CACHE_BLOCKS = 3_072
"""Blocks of the KV cache: 98,304 tokens."""


class PrefixAccount:
    """Counts which leading blocks of a prompt the KV cache holds.

    OpenVINO GenAI reuses cached blocks but does not tell how many. This keeps the same book: the hashes of all full
    blocks computed so far, the least recently used dropped when the cache is full.

    Args:
        blocks: Blocks that the cache holds.
        block_tokens: Tokens a block.
    """

    def __init__(self, blocks: int = CACHE_BLOCKS, block_tokens: int = BLOCK_TOKENS) -> None:
        self.blocks = blocks
        self.block_tokens = block_tokens
        self._held: OrderedDict[int, None] = OrderedDict()

    def _hashes(self, ids: Sequence[int]) -> list[int]:
        hashes, running = [], 0
        for start in range(0, len(ids) - self.block_tokens + 1, self.block_tokens):
            running = hash((running, *ids[start : start + self.block_tokens]))
            hashes.append(running)
        return hashes

    def cached(self, ids: Sequence[int]) -> int:
        """Return how many leading tokens of a prompt are in the cache; at least its last token is always computed."""
        held = 0
        for block in self._hashes(ids):
            if block not in self._held:
                break
            self._held.move_to_end(block)
            held += self.block_tokens
        return min(held, max(0, len(ids) - 1))

    def add(self, ids: Sequence[int]) -> None:
        """Record that all full blocks of a sequence were computed."""
        for block in self._hashes(ids):
            self._held[block] = None
            self._held.move_to_end(block)
        while len(self._held) > self.blocks:
            self._held.popitem(last=False)


class Pipeline:
    """A loaded GGUF model.

    Args:
        path: The GGUF file.

    Raises:
        ModelError: OpenVINO refuses the file.
    """

    def __init__(self, path: Path) -> None:
        import openvino_genai

        scheduler = openvino_genai.SchedulerConfig()
        scheduler.num_kv_blocks = CACHE_BLOCKS
        scheduler.enable_prefix_caching = True
        scheduler.dynamic_split_fuse = True
        scheduler.max_num_batched_tokens = 512
        scheduler.max_num_seqs = 64
        try:
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(str(path), scheduler, "CPU")
        except Exception as error:
            # OpenVINO's own checks raise RuntimeError, what it trips over arrives as IndexError, ValueError and others.
            first = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            raise ModelError(
                f"OpenVINO cannot load {path}: {first}. Use another GGUF file (Q4_0, Q4_1, Q4_K_M or Q8_0)."
            ) from error
        self._tokenizer = self._pipeline.get_tokenizer()
        self._account = PrefixAccount()
        self._numbers = itertools.count()
        self._inbox: queue.SimpleQueue[tuple[list[int], Any, Future[Reply]]] = queue.SimpleQueue()
        self._running: dict[int, tuple[Any, list[int], int, Any, Future[Reply]]] = {}
        threading.Thread(target=self._work, name="openvino", daemon=True).start()

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the token ids of a text; with `special` those around it that the model was trained with."""
        if not text:
            return []
        data = self._tokenizer.encode(text, add_special_tokens=special).input_ids.data
        return [int(i) for i in data.reshape(-1)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, special tokens left out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)) if ids else ""

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """Render messages through the model's own chat template, with the generation prompt."""
        return str(self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True))

    def generation_config(self, **fields: Any) -> Any:
        """Build OpenVINO's generation configuration from its field names."""
        import openvino_genai

        config = openvino_genai.GenerationConfig()
        config.apply_chat_template = False
        config.include_stop_str_in_output = True
        for name, value in fields.items():
            setattr(config, name, value)
        return config

    def submit(self, ids: list[int], config: Any) -> Future[Reply]:
        """Queue a generation.

        Args:
            ids: Token ids of the prompt.
            config: Made by `generation_config`.

        Returns:
            A future of the reply.
        """
        future: Future[Reply] = Future()
        self._inbox.put((ids, config, future))
        return future

    def _work(self) -> None:
        while True:
            self._take(block=not self._running)
            try:
                self._pipeline.step()
            except Exception as error:
                # This thread serves all chains: it must outlive whatever one request brings.
                for _, _, _, _, future in self._running.values():
                    future.set_exception(ModelError(f"OpenVINO failed while generating: {error}"))
                self._running.clear()
                continue
            for number in [n for n, entry in self._running.items() if _finished(entry[0])]:
                handle, ids, cached, config, future = self._running.pop(number)
                try:
                    future.set_result(self._reply(handle, ids, cached, config))
                except ModelError as error:
                    future.set_exception(error)
                except Exception as error:
                    future.set_exception(ModelError(f"OpenVINO's reply could not be read: {error}"))

    def _take(self, *, block: bool) -> None:
        import numpy
        import openvino

        while True:
            try:
                ids, config, future = self._inbox.get(block=block)
            except queue.Empty:
                return
            block = False
            if not future.set_running_or_notify_cancel():
                continue
            number = next(self._numbers)
            cached = self._account.cached(ids)
            tensor = openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
            try:
                handle = self._pipeline.add_request(number, tensor, config)
            except Exception as error:
                future.set_exception(ModelError(f"OpenVINO refused a request of {len(ids)} tokens: {error}"))
                continue
            self._account.add(ids)
            self._running[number] = (handle, ids, cached, config, future)

    def _reply(self, handle: Any, ids: list[int], cached: int, config: Any) -> Reply:
        import openvino_genai

        outputs = handle.read_all()
        if not outputs:
            raise ModelError(f"OpenVINO dropped a request of {len(ids)} tokens: its cache is too small for it.")
        output = outputs[0]
        generated = [int(i) for i in output.generated_ids]
        self._account.add([*ids, *generated])
        ended = generated[-1:] == [self._tokenizer.get_eos_token_id()]
        kept = generated[:-1] if ended else generated
        text = self.decode(kept)
        stops = [stop for stop in config.stop_strings if stop in text]
        length = output.finish_reason == openvino_genai.GenerationFinishReason.LENGTH
        return Reply(
            text=text,
            ids=kept,
            finish="length" if length else "stop",
            stop=min(stops, key=text.index) if stops else None,
            prompt_tokens=len(ids),
            cached_tokens=cached,
            completion_tokens=len(generated),
        )


def _finished(handle: Any) -> bool:
    import openvino_genai

    return bool(handle.get_status() != openvino_genai.GenerationStatus.RUNNING)
