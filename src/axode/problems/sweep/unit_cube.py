"""Points of the unit cube by row number: random, Latin hypercube, Sobol.

Any row can be computed without those before it, with the same bits in every chunk and on every
machine: only integers are drawn, and their conversion to numbers is exact.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
MAX_ROWS = 1 << 48  # of any sweep: row numbers and strata are exact in float64 with bits to spare
SOBOL_BITS = 32  # of each number; SciPy's engine skips points only up to this many
SOBOL_DIMENSIONS = 21201  # for which SciPy has direction numbers
_BITS = 52  # of a random number, so that the middle of its interval is exact too
_ROUNDS = 8  # of the Feistel network, an even number
_LEAST_BITS = 6  # that it permutes: with fewer, some permutations are much rarer than others
_HALF = 24  # bits of half a number below MAX_ROWS
_BLOCK = 1 << 14  # numbers that are permuted at a time, in the cache
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
        stratum = _permuted(first, last, count, _state(seed, _PERMUTATION, j, _ROUNDS))
        place = _random_words(seed, _JITTER, j, first, last) >> np.uint64(64 - bits)
        points.append((stratum + (place + 0.5) * 0.5**bits) / count)
    return points


def sobol_points(
    seed: int, dimensions: int, count: int, first: int, last: int, which: Sequence[int]
) -> list[Array]:
    """Scrambled Sobol points of SciPy, by the Gray code of their numbers."""
    start, vectors = _sobol_vectors(dimensions, seed, (count - 1).bit_length())
    n, gray = np.arange(first + 1, last, dtype=np.int64), first ^ (first >> 1)
    lowest = np.frexp((n & -n).astype(float))[1] - 1  # bit that changes before each point
    points = []
    for j in which:
        changes = np.empty(max(0, last - first), dtype=np.uint64)
        changes[:1] = start[j]
        for k in range(gray.bit_length()):
            if gray >> k & 1:
                changes[:1] ^= vectors[j, k]
        changes[1:] = vectors[j][lowest]
        words = np.bitwise_xor.accumulate(changes)
        points.append((words + 0.5) * 0.5**SOBOL_BITS)
    return points


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


def _permuted(first: int, last: int, count: int, keys: Words) -> Words:
    """Permutation of 0 ... count - 1 that a key selects, at the numbers `first` ... `last - 1`.

    A Feistel network permutes the numbers of as many bits as are needed; what falls outside is
    permuted again until it falls inside.
    """
    bits = max(_LEAST_BITS, (count - 1).bit_length())
    found = np.arange(first, last, dtype=np.uint64)
    for k in range(0, len(found), _BLOCK):
        block = found[k : k + _BLOCK]
        block[:] = _feistel(block, bits, keys)
        outside = np.flatnonzero(block >= count)
        while outside.size:
            block[outside] = _feistel(block[outside], bits, keys)
            outside = outside[block[outside] >= count]
    return found


def _feistel(numbers: Words, bits: int, keys: Words) -> Words:
    """Permute the numbers of a given number of bits; the halves change sizes in every round."""
    sizes = (bits // 2, bits - bits // 2)  # of the left and the right half
    left, right = numbers >> np.uint64(sizes[1]), numbers & np.uint64((1 << sizes[1]) - 1)
    for k, key in enumerate(keys):
        mixed = right ^ key
        mixed *= _MIX[0]
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX[1]
        mixed >>= np.uint64(64 - _HALF)
        mixed &= np.uint64((1 << sizes[k % 2]) - 1)
        mixed ^= left
        left, right = right, mixed
    return (left << np.uint64(sizes[1])) | right


@functools.lru_cache(maxsize=16)
def _sobol_vectors(dimensions: int, seed: int, bits: int) -> tuple[Words, Words]:
    """First point and, by dimension, generating vectors of 2^bits points, as integers.

    Neighbours in Gray code differ by one vector: point 2^k by vector k from the one before. SciPy
    reaches point 2^bits in some nanoseconds per point, once per process.
    """
    from scipy.stats import qmc

    named = inspect.signature(qmc.Sobol).parameters
    source = {"rng" if "rng" in named else "seed": np.random.default_rng(seed)}  # until 1.14
    engine = qmc.Sobol(dimensions, scramble=True, bits=SOBOL_BITS, **source)
    start = point = _as_words(engine.random(1))
    vectors = np.empty((bits, dimensions), dtype=np.uint64)
    for k in range(bits):
        skipped = (1 << k) - 1 - engine.num_generated  # -1: the point before 2^k was the last one
        if skipped > 0:
            engine.fast_forward(skipped)
        before = point if skipped < 0 else _as_words(engine.random(1))
        point = _as_words(engine.random(1))
        vectors[k] = before ^ point
    return start, np.ascontiguousarray(vectors.T)


def _as_words(points: Array) -> Words:
    return np.asarray((points[0] * 2.0**SOBOL_BITS).astype(np.uint64))
