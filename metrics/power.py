"""How many questions it takes to see a difference between two runs, and how small a difference some questions can show.

Two-sided tests at the 5 % level with a power of 80 %. For 0/1 outcomes: McNemar's test in the normal approximation of
R. J. Connor 1987, "Sample size for testing differences in proportions for the paired-sample design", Biometrics
43:207-211; the exact test needs 2 to 9 % more. For graded outcomes: the test of a mean of paired differences, as
in E. Miller 2024, arXiv 2411.00640, section 5.
"""

from __future__ import annotations

import math

from metrics.intervals import Z95
from signatures.errors import OptionError

_Z80 = 0.8416212335729143
_FEWEST = 6
"""2 / 2**6 is below 5 %, 2 / 2**5 is not."""


def questions_for_shares(difference: float, discordant: float) -> int | None:
    """Return how many questions McNemar's test needs to see a difference of two shares.

    Args:
        difference: Difference of the shares of right answers, -1 to 1.
        discordant: Share of questions on which exactly one of the runs is right, at least the difference.

    Returns:
        The number of questions, rounded up, at least as many as hold 6 discordant ones, without which the exact test's
        p cannot fall below 5 %; None for no difference, which no number of questions shows.

    Raises:
        OptionError: The runs differ by more than the questions on which they disagree, or a share is impossible.
    """
    delta = abs(difference)
    if not delta <= discordant + 1e-12 or not discordant <= 1:
        raise OptionError(
            f"a difference of {difference:g} needs between {delta:g} and 1 of the questions to be decided differently, "
            f"not {discordant:g}"
        )
    if delta == 0:
        return None
    root = Z95 * math.sqrt(discordant) + _Z80 * math.sqrt(max(0.0, discordant - delta**2))
    return max(_round_up((root / delta) ** 2), _round_up(_FEWEST / discordant))


def questions_for_means(difference: float, spread: float) -> int | None:
    """Return how many questions a paired test needs to see a difference of means.

    Args:
        difference: Mean difference, any unit.
        spread: Standard deviation of the differences by question, in the same unit.

    Returns:
        The number of questions, rounded up, at least 2; None for no difference, or where the spread is not known.
    """
    if difference == 0 or not math.isfinite(spread):
        return None
    return max(2, _round_up(((Z95 + _Z80) * spread / difference) ** 2))


def visible_share_difference(n: int, discordant: float) -> float | None:
    """Return the smallest difference of two shares that McNemar's test sees on n questions: Connor's formula, solved.

    Args:
        n: Questions.
        discordant: Share of questions on which exactly one of the runs is right, 0 to 1.

    Returns:
        The difference, 0 to 1; None when even runs that disagree in one direction only would go unseen.
    """
    if n <= Z95**2 or discordant <= 0:
        return None
    root = math.sqrt(discordant * (n - Z95**2 + _Z80**2))
    delta = (math.sqrt(n * discordant) * Z95 + _Z80 * root) / (n + _Z80**2)
    return delta if delta <= discordant else None


def visible_mean_difference(n: int, spread: float) -> float | None:
    """Return the smallest difference of means that a paired test sees on n questions.

    Args:
        n: Questions.
        spread: Standard deviation of the differences by question.

    Returns:
        The difference in the unit of the spread; None for fewer than two questions, or without a spread to go by.
    """
    return (Z95 + _Z80) * spread / math.sqrt(n) if n >= 2 and math.isfinite(spread) and spread > 0 else None


def most_discordant(n: int, discordant: int) -> float:
    """Return how large the share of discordant questions may be, though so few were seen.

    Args:
        n: Questions, at least 1.
        discordant: Questions on which exactly one run was right.

    Returns:
        The exact one-sided 95 % bound of Clopper and Pearson, 0 to 1; for none of n about 3 / n.
    """
    from scipy.special import betaincinv

    return 1.0 if discordant >= n else float(betaincinv(discordant + 1, n - discordant, 0.95))


def _round_up(value: float) -> int:
    # Rounding of the last digit must not ask for one question more.
    return math.ceil(value - 1e-9 * max(1.0, value))
