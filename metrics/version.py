"""The version of the scorers: scores of different versions do not compare.

Raise it with every change that can change a score of an unchanged output: extraction, normalisation, a scorer, the code
judge. It is one of a run's facts, so a run scored by an earlier version is another run; `search-o1 compare` refuses to
set runs of different versions against each other.
"""

from __future__ import annotations

METRICS_VERSION = 1
"""Of the scorers in this package. Runs without a version were recorded before versions were."""
