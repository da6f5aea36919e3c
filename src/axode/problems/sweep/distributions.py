"""Distributions of swept values, sampled by their inverse cumulative distribution functions."""

from __future__ import annotations

import hashlib
import math
import sys
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
