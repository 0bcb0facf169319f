"""The chain: one long reasoning that pauses for its tools and goes on from exactly where it stood (design section 2).

`ChainLoop.steps` is a sans-IO generator. It owns the rules of the protocol: turns, stop strings, queries and their
limits, budgets, injected blocks, finish reasons. What a query or a fetch brings is the business of a `Tool`
(programs/tools.py).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from metrics.extraction import extract_answer, is_valid
from programs.fitting import count_or_bound, fit_block
from programs.language_model import upper_bound
from programs.messages import MESSAGES, Block, message_block
from programs.operations import CountTokens, Generate, Generation, HoldBack, Steps
from programs.options import ChainOptions
from programs.turn import Turn, cut_at, cut_at_end, find_loop, read_turn, stop_strings
from retrieval.base import Hit
from signatures.errors import ContextLengthError, OptionError, SearchO1Error
from signatures.markup import MARKERS

FORCED_TOKENS = 64
FORCED_CODE_TOKENS = 1_024
_LEAST_FORCED_TOKENS = 16
_MAX_MALFORMED = 3


class Tool(Protocol):
    """What a chain can pause for."""

    fetches: bool

    def search(self, query: str, state: ChainState) -> Steps[Block]:
        """Execute a query and return the block to inject."""
        ...

    def fetch(self, content: str, state: ChainState) -> Steps[Block]:
        """Fetch URLs and return the block to inject."""
        ...


@dataclass
class ChainState:
    """A chain in the making; what `ChainLoop` and its tool share.

    Attributes:
        chain_id: Names the chain.
        text: Everything after the prompt: model text and injected blocks.
        turn: Turns begun.
        queries: Queries executed, in order.
        searches: One record an executed query: query, backend, cached, hits, pages, information, outcome.
        fetched: URLs fetched.
        known_hits: What searches returned, by URL.
        malformed: Empty or unpaired queries.
        events: Everything that happened, in order, as plain dicts with `type`, `start` and `end`.
        finish: Why the chain ended; empty while it runs.
        error: Text of the error that ended it.
        error_kind: Kind under which runs count that error.
    """

    chain_id: str
    text: str = ""
    turn: int = 0
    queries: list[str] = field(default_factory=list)
    searches: list[dict[str, Any]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    known_hits: dict[str, Hit] = field(default_factory=dict)
    malformed: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    finish: str = ""
    error: str = ""
    error_kind: str = ""

    def log(self, event: str, start: float, **facts: Any) -> None:
        """Append an event that began at `start` (seconds since the epoch) and ends now."""
        self.events.append({"type": event, "start": start, "end": time.time(), **facts})


class ChainLoop:
    """Runs one chain.

    Args:
        render: Renders the messages for a chain text.
        options: The chain's options.
        context_length: Context in tokens.
        exact: True when token counts come from the model's tokenizer.
        tool: What the chain can pause for, or None for methods that generate once.
        layout_stops: Stop strings of the layout.
        ends_at_box: The chain ends with its first answer box.
        config: Request fields for the reasoning turns.
        chain_id: Names the chain.
    """

    def __init__(
        self,
        render: Any,
        options: ChainOptions,
        *,
        context_length: int,
        exact: bool,
        tool: Tool | None,
        layout_stops: tuple[str, ...] = (),
        ends_at_box: bool = False,
        config: dict[str, Any] | None = None,
        chain_id: str = "",
    ) -> None:
        self.render = render
        self.options = options
        self.context_length = context_length
        force = MESSAGES[options.language].force
        self.forced_prefix = force.rstrip() + "\n```python\n" if options.task == "code" else force + "\\boxed{"
        self.forced_tokens = FORCED_CODE_TOKENS if options.task == "code" else FORCED_TOKENS
        if options.force_answer:
            # A chain that fills its context needs room left to state its answer in.
            self.forced_tokens = min(self.forced_tokens, context_length // 8)
            self.context_length -= self.forced_tokens + upper_bound(self.forced_prefix)
        self.exact = exact
        self.tool = tool
        self.layout_stops = layout_stops
        self.ends_at_box = ends_at_box
        self.config = config or {}
        self.state = ChainState(chain_id)
        self._known = 0
        self._generated = 0

    def steps(self) -> Steps[ChainState]:
        """Run the chain to its end.

        Returns:
            The finished state; its `finish` is one of answered, no_answer, length, context, turns, loop, error.

        Raises:
            OptionError: The program lacks what the chain needs (a search backend, a reader).
            SearchO1Error: The very first generation failed, so that there is no partial chain to keep.
        """
        state = self.state
        try:
            while not state.finish:
                yield from self._one_turn()
            if self.options.force_answer and state.finish in ("turns", "context", "length"):
                yield from self._force()
        except OptionError:
            raise
        except SearchO1Error as error:
            if not state.text and not isinstance(error, ContextLengthError):
                raise
            state.finish = "context" if isinstance(error, ContextLengthError) else "error"
            state.error, state.error_kind = str(error), error.kind
            state.log("error", time.time(), kind=error.kind, message=str(error))
        return state

    def _one_turn(self) -> Steps[None]:
        state, options = self.state, self.options
        if state.turn >= options.turns:
            state.finish = "turns"
            return
        messages = self.render(state.text)
        room, reason = yield from self._room(messages)
        if room < min(options.min_turn_tokens, options.turn_tokens, options.chain_tokens or options.turn_tokens):
            state.finish = reason
            return
        generation = yield from self._generate(messages, room, "reason")
        if self.tool is None:
            text, ended = cut_at_end(generation.text, self.layout_stops, ends_at_box=self.ends_at_box)
            turn = Turn(text, "truncated" if generation.finish == "length" and not ended else "end")
        else:
            turn = read_turn(
                generation,
                fetches=self.tool.fetches,
                layout_stops=self.layout_stops,
                ends_at_box=self.ends_at_box,
            )
        state.text += turn.kept
        self._known = generation.prompt_tokens + generation.completion_tokens
        self._known += max(0, upper_bound(turn.kept) - upper_bound(generation.text))
        if turn.action in ("end", "truncated"):
            state.finish = self._ending(turn, reason if room < options.turn_tokens else "length")
            return
        block = yield from self._answer_turn(turn)
        if block is not None:
            yield from self._inject(block)

    def _answer_turn(self, turn: Turn) -> Steps[Block | None]:
        state, messages, tool = self.state, MESSAGES[self.options.language], self.tool
        assert tool is not None
        if turn.action == "no_query":
            state.malformed += 1
            state.log("malformed", time.time(), count=state.malformed)
            if state.malformed >= _MAX_MALFORMED:
                state.finish = "answered" if self._answered() else "no_answer"
                return None
            return message_block(messages.no_query)
        if turn.action == "urls":
            block = yield from tool.fetch(turn.content, state)
            return block
        if len(state.queries) >= self.options.max_searches:
            state.log("limit", time.time(), query=turn.content)
            return message_block(messages.limit)
        if turn.content in state.queries:
            state.log("repeated", time.time(), query=turn.content)
            return message_block(messages.repeated)
        state.queries.append(turn.content)
        block = yield from tool.search(turn.content, state)
        return block

    def _inject(self, block: Block) -> Steps[None]:
        state = self.state
        room = self.context_length - self.options.min_turn_tokens

        def count(text: str) -> Steps[int]:
            tokens: int = yield CountTokens(self.render(state.text + text), state.chain_id)
            return tokens

        size = len(block.body)
        block, self._known, shortened = yield from fit_block(block, self._known, room, count)
        if shortened:
            state.log("cut", time.time(), what="injected", before=size, after=len(block.body))
        held: str = yield HoldBack(block.text)
        state.text += held

    def _room(self, messages: Sequence[dict[str, str]]) -> Steps[tuple[int, str]]:
        """Return (tokens the next turn may have, the finish reason if that is too few)."""
        options = self.options
        room, reason = options.turn_tokens, "length"
        if options.chain_tokens is not None:
            room = min(room, options.chain_tokens - self._generated)
        if not self._known or not self.exact or self._known + room > self.context_length:
            self._known = yield from count_or_bound(
                messages, self.context_length - room, self.state.chain_id, exact=self.exact
            )
        if self.context_length - self._known < room:
            room, reason = self.context_length - self._known, "context"
        return room, reason

    def _generate(self, messages: Sequence[dict[str, str]], room: int, kind: str) -> Steps[Generation]:
        state = self.state
        state.turn += 1
        start = time.time()
        stop = stop_strings(fetches=self.tool.fetches) if self.tool is not None else ()
        generation: Generation = yield Generate(
            messages, room, (*stop, *self.layout_stops), kind, state.turn, state.chain_id, self.config
        )
        self._generated += generation.completion_tokens
        state.log("generate", start, kind=kind, turn=state.turn, **generation_facts(generation))
        return generation

    def _force(self) -> Steps[None]:
        """Give the chain one short turn to state its answer; the words that begin it are the program's."""
        state = self.state
        room = min(self.forced_tokens, self.context_length - self._known + self.forced_tokens)
        if room < _LEAST_FORCED_TOKENS:
            return
        state.text = state.text.rstrip() + self.forced_prefix
        generation = yield from self._generate(self.render(state.text), room, "force")
        state.text += cut_at(generation.text, (*self.layout_stops, *MARKERS))[0]
        state.log("forced", time.time(), finish_before=state.finish)
        if self._answered():
            state.finish = "answered"

    def _ending(self, turn: Turn, why_short: str) -> str:
        if turn.action == "truncated":
            if self.options.stop_loops and find_loop(turn.kept):
                return "loop"
            return why_short
        return "answered" if self._answered() else "no_answer"

    def _answered(self) -> bool:
        return is_valid(extract_answer(self.state.text, self.options.task), self.options.task)


def generation_facts(generation: Generation) -> dict[str, Any]:
    """Return what an event keeps of a generation: sizes, finish and price, not its text."""
    return {
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": generation.completion_tokens,
        "cached_tokens": generation.cached_tokens,
        "finish": generation.finish,
        "stop": generation.stop,
        "cost": generation.cost,
        "from_cache": generation.from_cache,
        "retokenised": generation.retokenised,
        "chars": len(generation.text),
    }
