"""Points of the unit cube by row number: random, Latin hypercube, Sobol.

Any row can be computed without those before it, with the same bits in every chunk and on every
machine: only integers are drawn, and their conversion to numbers is exact.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
MAX_ROWS = 1 << 48  # of any sweep: row numbers and strata are exact in float64 with bits to spare
SOBOL_BITS = 32  # of each number; SciPy's engine skips points only up to this many
SOBOL_DIMENSIONS = 21201  # for which SciPy has direction numbers
_BITS = 52  # of a random number, so that the middle of its interval is exact too
_ROUNDS = 8  # of the Feistel network
_RANDOM, _PERMUTATION, _JITTER = range(3)  # independent streams of one seed
# Multipliers with well-spread bits for the rounds: the fractions of square roots.
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0x6A09E667F3BCC909))

# (seed, dimensions, count, first, last, which dimensions) -> one array per dimension, inside (0, 1)
UnitPoints = Callable[[int, int, int, int, int, Sequence[int]], list[Array]]


def random_points(
    seed: int, dimensions: int, count: int, first: int, last: int, which: Sequence[int]
) -> list[Array]:
    """Independent uniform numbers, from counter-based generators, one for each dimension."""
    return [_centred(_random_words(seed, _RANDOM, j, first, last)) for j in which]


def latin_points(
    seed: int, dimensions: int, count: int, first: int, last: int, which: Sequence[int]
) -> list[Array]:
    """Latin hypercube: in every dimension, one point in each of `count` equal intervals."""
    bits = max(1, 50 - count.bit_length())  # of the place inside an interval: the sum is exact
    points = []
    for j in which:
        stratum = _permuted(np.arange(first, last, dtype=np.uint64), count, _keys(seed, j))
        place = _random_words(seed, _JITTER, j, first, last) >> np.uint64(64 - bits)
        points.append((stratum + (place + 0.5) * 0.5**bits) / count)
    return points


def sobol_points(
    seed: int, dimensions: int, count: int, first: int, last: int, which: Sequence[int]
) -> list[Array]:
    """Scrambled Sobol points of SciPy, by the Gray code of their numbers."""
    start, vectors = _sobol_vectors(dimensions, seed, max(0, (count - 1).bit_length()))
    n = np.arange(first, last, dtype=np.int64)
    turns = np.empty((len(n), len(which)), dtype=np.uint64)
    if len(n):
        gray = first ^ (first >> 1)
        turns[0] = start[which]
        for k in range(gray.bit_length()):
            if gray >> k & 1:
                turns[0] ^= vectors[k, which]
        lowest = np.frexp((n[1:] & -n[1:]).astype(float))[1] - 1  # bit that is set last
        turns[1:] = vectors[lowest][:, which]
    words = np.bitwise_xor.accumulate(turns, axis=0)
    return [(column + 0.5) * 0.5**SOBOL_BITS for column in np.ascontiguousarray(words.T)]


SAMPLERS: dict[str, UnitPoints] = {
    "random": random_points,
    "latin_hypercube": latin_points,
    "sobol": sobol_points,
}


def digest_points(sampler: str, seed: int, dimensions: int, count: int) -> str:
    """Digest of the first points, which changes if a library draws others than it used to."""
    points = SAMPLERS[sampler](seed, dimensions, count, 0, min(count, 16), range(dimensions))
    return hashlib.sha256(np.array(points, dtype="<f8").tobytes()).hexdigest()[:16]


def _centred(words: Words) -> Array:
    """Middles of 2^52 equal intervals: never 0 and never 1, where a quantile may be infinite."""
    return np.asarray(((words >> np.uint64(64 - _BITS)) + 0.5) * 0.5**_BITS)


def _state(seed: int, stream: int, dimension: int, size: int) -> Words:
    words = np.random.SeedSequence([seed, stream, dimension]).generate_state(size, np.uint64)
    return np.asarray(words, dtype=np.uint64)


def _random_words(seed: int, stream: int, dimension: int, first: int, last: int) -> Words:
    """Random words number `first` to `last` of a stream; Philox makes four per counter."""
    key = _state(seed, stream, dimension, 2)
    words = np.random.Philox(counter=first // 4, key=key).random_raw(last - first + first % 4)
    return np.asarray(words[first % 4 :], dtype=np.uint64)


def _keys(seed: int, dimension: int) -> Words:
    return _state(seed, _PERMUTATION, dimension, _ROUNDS)


def _permuted(numbers: Words, count: int, keys: Words) -> Array:
    """Permutation of 0 ... count - 1 that a key selects, at these numbers.

    A Feistel network permutes the numbers of an even number of bits, fewer than four times as many
    as needed; what falls outside is permuted again until it falls inside.
    """
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    found = _feistel(numbers, half, keys)
    outside = np.flatnonzero(found >= count)
    while outside.size:
        found[outside] = _feistel(found[outside], half, keys)
        outside = outside[found[outside] >= count]
    return found.astype(float)


def _feistel(numbers: Words, half: int, keys: Words) -> Words:
    shift, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = numbers >> shift, numbers & mask
    for key in keys:
        mixed = (right ^ key) * _MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIX[1]
        left, right = right, left ^ (mixed >> np.uint64(64 - half))
    return (left << shift) | right


@functools.lru_cache(maxsize=16)
def _sobol_vectors(dimensions: int, seed: int, bits: int) -> tuple[Words, Words]:
    """First point and generating vectors of the points 0 ... 2^bits - 1, as integers.

    Neighbours in Gray code differ by one vector: point 2^k by vector k from the one before. SciPy
    reaches point 2^bits in some nanoseconds per point, once per process.
    """
    from scipy.stats import qmc

    engine = qmc.Sobol(dimensions, scramble=True, bits=SOBOL_BITS, seed=seed)
    start = point = _as_words(engine.random(1))
    vectors = np.empty((bits, dimensions), dtype=np.uint64)
    for k in range(bits):
        skipped = (1 << k) - 1 - engine.num_generated  # -1: the point before 2^k was the last one
        if skipped > 0:
            engine.fast_forward(skipped)
        before = point if skipped < 0 else _as_words(engine.random(1))
        point = _as_words(engine.random(1))
        vectors[k] = before ^ point
    return start, vectors


def _as_words(points: Array) -> Words:
    return np.asarray((points[0] * 2.0**SOBOL_BITS).astype(np.uint64))
