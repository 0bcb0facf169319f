from __future__ import annotations

from hypothesis import settings

# A busy machine must not fail a test that is right: the first call of a property may import scipy.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
