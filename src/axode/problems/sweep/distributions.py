"""Distributions of swept values, sampled by their inverse cumulative distribution functions.

Points of the unit cube by row number: random, Latin hypercube, Sobol.

Any row can be computed without those before it, with the same bits in every chunk and on every
machine: only integers are drawn, and their conversion to numbers is exact.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import shortened

Array = npt.NDArray[np.float64]
# Distributions of other libraries are described by these quantiles.
PROBABILITIES = (2.0**-53, 1e-6, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0 - 1e-6, 1.0 - 2.0**-53)
FINE = 1 << 12  # equal parts at whose ends they are compared as well


@dataclass(frozen=True)
class Uniform:
    """Uniform distribution between two bounds.

    Args:
        low: Lower bound.
        high: Upper bound.
    """

    low: float
    high: float

    def ppf(self, probability: npt.ArrayLike) -> Array:
        """Quantiles: the values below which a sample lies with these probabilities."""
        u = np.asarray(probability, dtype=float)
        return self.low * (1.0 - u) + self.high * u  # no overflow, whatever the bounds

    def fault(self) -> str:
        """What is wrong with the bounds; empty if nothing is."""
        return _unbounded(self) or _empty(self)


@dataclass(frozen=True)
class LogUniform:
    """Log-uniform distribution: the logarithm is uniform between those of the bounds.

    Args:
        low: Lower bound, > 0.
        high: Upper bound.
    """

    low: float
    high: float

    def ppf(self, probability: npt.ArrayLike) -> Array:
        """Quantiles: the values below which a sample lies with these probabilities."""
        u = np.asarray(probability, dtype=float)
        exponent = math.log(self.low) * (1.0 - u) + math.log(self.high) * u
        return np.clip(np.exp(exponent), self.low, self.high)

    def fault(self) -> str:
        """What is wrong with the bounds; empty if nothing is."""
        positive = "" if _unbounded(self) or self.low > 0 else "low must be > 0; use Uniform"
        return _unbounded(self) or positive or _empty(self)


@dataclass(frozen=True)
class Normal:
    """Normal distribution.

    Args:
        mean: Its centre.
        deviation: Standard deviation, > 0.
    """

    mean: float
    deviation: float

    def ppf(self, probability: npt.ArrayLike) -> Array:
        """Quantiles: the values below which a sample lies with these probabilities."""
        from scipy.special import ndtri

        u = np.asarray(probability, dtype=float)
        return np.asarray(self.mean + self.deviation * ndtri(u), dtype=float)

    def fault(self) -> str:
        """What is wrong with the arguments; empty if nothing is."""
        wide = "" if _unbounded(self) or self.deviation > 0 else "deviation must be > 0"
        return _unbounded(self) or wide


OWN = (Uniform, LogUniform, Normal)


def is_distribution(value: Any) -> bool:
    """Return whether a value is a distribution: anything with a method `ppf`, as SciPy's have."""
    return callable(getattr(value, "ppf", None)) and not isinstance(value, type)


def distribution_fault(value: Any) -> str:
    """Explain why a distribution cannot be sampled; empty if it can."""
    if isinstance(value, OWN):
        found = value.fault()
        return f"{value}: {found}" if found else ""
    try:
        quantiles = np.asarray(value.ppf(np.array(PROBABILITIES)), dtype=float)
    except Exception as error:  # of another library
        return f"ppf of {shortened(value)} raises {type(error).__name__}: {shortened(str(error))}"
    if quantiles.shape != (len(PROBABILITIES),):
        shape = quantiles.shape
        return f"ppf of {shortened(value)} gives shape {shape} for {len(PROBABILITIES)} numbers"
    if not np.isfinite(quantiles).all():
        bad = PROBABILITIES[int(np.flatnonzero(~np.isfinite(quantiles))[0])]
        return f"ppf of {shortened(value)} is not finite at {bad:.6g}; its arguments are wrong"
    if (np.diff(quantiles) < 0).any():
        return f"ppf of {shortened(value)} decreases, as no inverse of a distribution does"
    return ""


def describe_distribution(value: Any) -> dict[str, Any]:
    """Describe a distribution in JSON's own types, so that two studies can be compared."""
    if isinstance(value, OWN):
        return {"kind": type(value).__name__, **{k: float(v) for k, v in asdict(value).items()}}
    name = getattr(getattr(value, "dist", None), "name", type(value).__name__)
    quantiles = np.asarray(value.ppf(np.array(PROBABILITIES)), dtype=float)
    made = {"kind": str(name), "quantiles": [float(f"{x:.12g}") for x in quantiles]}
    return made | _describe_finely(value)


def _describe_finely(value: Any) -> dict[str, Any]:
    """Distinguish distributions with equal quantiles, as two of whole numbers often have."""
    fine = np.asarray(value.ppf(np.arange(1, FINE) / FINE), dtype=float)
    rounded = " ".join(f"{x:.9g}" for x in fine + 0.0)  # other machines differ in the last digits
    made = {"sha256": hashlib.sha256(rounded.encode()).hexdigest()[:16]}
    given = [*getattr(value, "args", ()), *getattr(value, "kwds", {}).values()]  # SciPy's frozen
    if given and all(isinstance(x, int | float | np.number) for x in given):
        names = getattr(value, "kwds", {})
        return made | {"arguments": [*map(float, given)], "named": list(names)}
    return made


def _unbounded(given: Any) -> str:
    for name, value in vars(given).items():
        number = isinstance(value, int | float | np.integer | np.floating)
        if isinstance(value, bool | np.timedelta64) or not number:
            return f"{name} must be a number, got {shortened(value)}"
        size = abs(value) if isinstance(value, int) else abs(float(value))
        if not size <= sys.float_info.max:  # NaN and very large integers too
            return f"{name} must be finite"
    return ""


def _empty(given: Any) -> str:
    return "" if given.low < given.high else "low must be less than high"


# points of the unit cube --------------------------------------------------------------------------


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
