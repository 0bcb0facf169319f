"""What the proposing model is asked while instructions are looked for: counted like everything else that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.optimizing.ledger import Ledger


class ProposalUsage:
    """A DSPy usage tracker for an optimizer's own calls; candidates switch it off for the calls of their chains.

    Args:
        ledger: Where the calls are accounted for.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def add_usage(self, lm: str, usage_entry: Mapping[str, Any] | None) -> None:
        """Count one call.

        Args:
            lm: Name of the model.
            usage_entry: Its usage as the provider names things.
        """
        usage = dict(usage_entry or {})
        self.ledger.propose(
            lm,
            {
                "prompt_tokens": int(usage.get("prompt_tokens") or usage.get("input_tokens") or 0),
                "completion_tokens": int(usage.get("completion_tokens") or usage.get("output_tokens") or 0),
                "cost": usage.get("cost"),
            },
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ProposalUsage:
        # DSPy's threads work on copies.
        return self
