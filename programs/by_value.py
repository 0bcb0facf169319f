"""A `dspy.Predict` that plain pickle can carry: as its arguments, its prompt and its demos."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import dspy


class PredictByValue(dspy.Predict):  # type: ignore[misc]
    """Base of this project's predictors.

    DSPy builds a signature class for every predictor, which pickle cannot find by name; here the predictor is made anew
    from what it was made of. A language model set on it is a connection and stays behind; set it again after loading.
    """

    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]:
        """Return the arguments the predictor was made with."""

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: getattr(self, name) for name in ("demos", "config", "traces", "train")}
        return _rebuild, (type(self), self._arguments(), self.signature.dump_state(), kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> PredictByValue:
        # In the same process the signature class and a language model can be kept as they are.
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin


def _rebuild(
    cls: type[PredictByValue], arguments: tuple[Any, ...], signature: dict[str, Any], kept: dict[str, Any]
) -> PredictByValue:
    predictor = cls(*arguments)
    loaded = predictor.signature.load_state(signature)
    # DSPy dedents instructions that it is given; after an empty line it leaves the rest as it is.
    predictor.signature = loaded.with_instructions("\n" + signature["instructions"])
    for name, value in kept.items():
        setattr(predictor, name, value)
    return predictor
