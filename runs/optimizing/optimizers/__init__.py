"""The optimizers by name. A new one is one new file and one line here."""

from __future__ import annotations

from runs.optimizing.optimizers.base import Optimizer
from runs.optimizing.optimizers.bootstrap import Bootstrap
from runs.optimizing.optimizers.copro import Copro
from runs.optimizing.optimizers.gepa import Gepa
from runs.optimizing.optimizers.labeled import Labeled
from runs.optimizing.optimizers.miprov2 import MiproV2
from runs.optimizing.optimizers.random_search import RandomSearch
from runs.optimizing.optimizers.simba import Simba
from signatures.errors import OptionError

_ALL: tuple[Optimizer, ...] = (Labeled(), Bootstrap(), RandomSearch(), Copro(), MiproV2(), Gepa(), Simba())
OPTIMIZERS: dict[str, Optimizer] = {optimizer.name: optimizer for optimizer in _ALL}


def find_optimizer(name: str) -> Optimizer:
    """Return an optimizer by its name.

    Args:
        name: A key of `OPTIMIZERS`.

    Returns:
        The optimizer.

    Raises:
        OptionError: The name is unknown; known ones are listed.
    """
    if name not in OPTIMIZERS:
        raise OptionError(f"Unknown optimizer {name!r}; known optimizers: {', '.join(OPTIMIZERS)}.")
    return OPTIMIZERS[name]
