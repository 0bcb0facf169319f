"""A name service that says what a test wants: other addresses each time, if need be."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from aiohttp.abc import AbstractResolver, ResolveResult


class ScriptedNames(AbstractResolver):
    """Resolves from a table.

    It is its own factory: the HTTP client calls what it is given to make a resolver.

    Args:
        table: For each name its addresses; or a list of such lists, one for each time it is asked, the last one for all
            further times.

    Attributes:
        asked: The names that were asked for, in order.
    """

    def __init__(self, table: Mapping[str, Sequence[str] | Sequence[Sequence[str]]]) -> None:
        self.table = table
        self.asked: list[str] = []

    def __call__(self) -> ScriptedNames:
        return self

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the next addresses of a name.

        Raises:
            OSError: It is not in the table.
        """
        self.asked.append(host)
        if host not in self.table:
            raise OSError(None, "no such name")
        answers = self.table[host]
        if answers and not isinstance(answers[0], str):
            answers = answers[min(self.asked.count(host), len(answers)) - 1]
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in answers
        ]

    async def close(self) -> None:
        """Nothing is held."""
