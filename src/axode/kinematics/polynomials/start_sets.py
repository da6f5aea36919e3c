"""All roots of a generic member of a family: what paths to other members start from.

The roots are found by monodromy: along a closed way of parameters the roots change places, so that
one of them leads to others, until further ways find nothing new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axode.codegen.targets.object_cache import ObjectCache, cache_directory
from axode.errors import NotApplicable
from axode.kinematics.polynomials.distinct_roots import first_of_each
from axode.kinematics.polynomials.polynomial_family import ComplexArray, PolynomialFamily
from axode.kinematics.polynomials.tracked_paths import TrackingSettings, track

VERSION = 2  # of start sets on disk
SEEDS = 4  # members from which roots are brought to the start, at the begin and at the end
QUIET_LOOPS = 6  # loops in a row that must find nothing new
MAX_LOOPS = 200
MAX_ROOTS = 20_000
MOVES = 10  # generic members to which a start set may be moved, in turn
CAREFUL = TrackingSettings(tolerance=1e-4)
_MEMORY: dict[str, list[StartSet]] = {}


@dataclass(frozen=True)
class StartSet:
    """Roots of one generic member.

    Attributes:
        roots: All that were found, (roots, unknowns).
        parameters: The member's parameters.
    """

    roots: ComplexArray
    parameters: ComplexArray


def start_set(family: PolynomialFamily, number: int = 0, *, threads: int | None = None) -> StartSet:
    """Return the start set of a family, from memory, from disk, or by monodromy.

    Args:
        family: The polynomials.
        number: Which one: others are at other generic parameters.
        threads: How many threads share the paths.
    """
    known = _MEMORY.setdefault(family.digest, [])
    while len(known) <= number:
        known.append(_load_or_make(family, known, threads))
    return known[number]


def remember_start_sets(family: PolynomialFamily, sets: Sequence[StartSet]) -> None:
    """Use start sets that were made elsewhere, as long as this process lives."""
    _MEMORY[family.digest] = list(sets)


def _load_or_make(family: PolynomialFamily, known: list[StartSet], threads: int | None) -> StartSet:
    number, cache = len(known), ObjectCache(cache_directory())
    key = hashlib.sha256(f"start set {VERSION} {number} {family.digest}".encode()).hexdigest()
    stored = cache.read(key)
    made = None if stored is None else _unpack(stored, family)
    if made is None or (known and len(made.roots) != len(known[0].roots)):
        made = (
            _moved(family, known[0], number, threads)
            if known
            else monodromy(family, threads=threads)
        )
        cache.write(key, _pack(made))
    return made


def monodromy(family: PolynomialFamily, *, seed: int = 0, threads: int | None = None) -> StartSet:
    """Find the roots of a generic member.

    Ends when several loops in a row find nothing new and neither do roots of other members that
    are brought here. That all roots are found then is very likely, and not proved.

    Args:
        family: The polynomials.
        seed: Seed of all random numbers.
        threads: How many threads share the paths.

    Raises:
        NotApplicable: if no path can be tracked, or if there is no end of new roots.
    """
    rng = np.random.default_rng(seed)
    first, base = family.seed(rng)
    scale = np.maximum(np.abs(base), 1e-3)

    def elsewhere() -> ComplexArray:
        turned = np.exp(2j * np.pi * rng.random(len(base))) * rng.uniform(0.5, 1.5, len(base))
        moved: ComplexArray = scale * turned
        return moved

    roots = _brought(family, first[np.newaxis], base, rng, threads)
    quiet = 0
    for _ in range(MAX_LOOPS):
        ends, at = roots, base
        for there in (elsewhere(), elsewhere(), base):
            ends, at = _follow(family, ends, at, there, threads), there
        if not len(ends):
            break
        more = distinct(np.concatenate([roots, ends]))
        quiet = quiet + 1 if len(more) == len(roots) else 0
        roots = more
        if quiet >= QUIET_LOOPS:
            roots = _brought(family, roots, base, rng, threads)
            if len(roots) == len(more):
                return StartSet(roots, base)
            quiet = 0
        if len(roots) > MAX_ROOTS:
            break
    raise NotApplicable(
        f"family '{family.key}': its roots cannot be distinguished or followed from member to "
        f"member, {len(roots)} found so far. Check that its generic members have finitely many "
        "regular roots, and that the seed returns one of them."
    )


def _follow(
    family: PolynomialFamily,
    roots: ComplexArray,
    start: ComplexArray,
    target: ComplexArray,
    threads: int | None,
) -> ComplexArray:
    """Return where roots of one member or of several arrive at another; lost ones are left out."""
    which = np.zeros(len(roots), dtype=np.intp)
    made = track(family, roots, start, target[np.newaxis], which, CAREFUL, threads=threads)
    return made.x[made.finished]


def _brought(
    family: PolynomialFamily,
    roots: ComplexArray,
    base: ComplexArray,
    rng: np.random.Generator,
    threads: int | None,
) -> ComplexArray:
    """Add the roots of other members, moved to one, in case loops do not connect all roots."""
    seeds = [family.seed(rng) for _ in range(SEEDS)]
    x, p = np.stack([x for x, _ in seeds]), np.stack([p for _, p in seeds])
    return distinct(np.concatenate([roots, _follow(family, x, p, base, threads)]))


def _moved(family: PolynomialFamily, known: StartSet, number: int, threads: int | None) -> StartSet:
    """Move a start set to other generic parameters."""
    count = len(known.roots)
    for attempt in range(MOVES):
        there = family.seed(np.random.default_rng((number, attempt)))[1]
        ends = _follow(family, known.roots, known.parameters, there, threads)
        if len(ends) == count == len(distinct(ends)):
            return StartSet(ends, there)
    raise NotApplicable(
        f"family '{family.key}': its {count} roots cannot be followed to other generic members. "
        "Check that the seed returns generic members."
    )


def distinct(roots: ComplexArray) -> ComplexArray:
    """Return the roots of one member, each once."""
    return roots[first_of_each(roots[np.newaxis])[0]]


def _pack(made: StartSet) -> bytes:
    table = np.concatenate([made.parameters, made.roots.ravel()])
    return table.astype("<c16").tobytes()


def _unpack(data: bytes, family: PolynomialFamily) -> StartSet | None:
    """Read a start set, if it is one of the family."""
    n, m = family.unknowns, family.parameters
    count, rest = divmod(len(data) - 16 * m, 16 * n)
    if rest or not 1 <= count <= MAX_ROOTS:
        return None
    table = np.frombuffer(data, dtype="<c16").astype(np.complex128)
    if not np.isfinite(table).all():
        return None
    return StartSet(table[m:].reshape(-1, n), table[:m])
