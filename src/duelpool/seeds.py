"""Randomness by name: every random decision has a generator keyed by the seed and by what is decided.

No generator is stored and none is shared. The key is the state, so a restart, a second process and a
re-analysis draw the same numbers for the same decision.

numpy imports its generators when one is first asked for, here and where types name them: many commands ask for none.
"""

from hashlib import blake2b

import numpy as np


def key_words(*key: str | int) -> tuple[int, ...]:
    """Return one 64-bit word per part of the key, the same in every process (unlike `hash`)."""
    return tuple(int.from_bytes(blake2b(repr(part).encode(), digest_size=8).digest(), "big") for part in key)


def rng_for(seed: int, *key: str | int) -> "np.random.Generator":
    """Return the generator of one named decision, such as `rng_for(7, "topic 12", "phase 2")`."""
    if seed < 0:
        raise ValueError(f"A seed is a whole number from 0 on, not {seed}.")
    return np.random.default_rng([seed, *key_words(*key)])
