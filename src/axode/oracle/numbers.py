"""Vectors, rotations and derivatives in plain NumPy, good for complex steps.

Every function is analytic in its arguments and takes any number of leading axes, so that an
imaginary part of size `STEP` carries a derivative along, exact to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.values.expressions import Expression, evaluate

Array = npt.NDArray[Any]
ROUNDING = 1e-14  # of a direction's entries
FROM_BELOW = -0.5  # z of a parameter's direction that is turned to from -z
STEP = 1e-40  # of complex steps: its square vanishes in rounding


def numbers(values: Any, parameters: Mapping[str, Any]) -> Array:
    """A vector of a description at values of the parameters."""
    return np.array([float(evaluate(value, parameters)) for value in values])


def rate(x: Array) -> Array:
    """The derivative that an imaginary part carries."""
    return x.imag / STEP


def cross(a: Array, b: Array) -> Array:
    """a x b over leading axes."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def dot(a: Array, b: Array) -> Array:
    """a . b over leading axes, without conjugation."""
    return np.asarray((a * b).sum(axis=-1))


def matvec(A: Array, x: Array) -> Array:
    """A x over leading axes, of a matrix and a vector."""
    return np.asarray((A @ x[..., np.newaxis])[..., 0])


def unit(x: Array) -> Array:
    """x with length one."""
    return np.asarray(x / np.sqrt(dot(x, x))[..., np.newaxis])


def axis_turn(axis: Array, angle: Array) -> Array:
    """Rotation about a constant unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[..., np.newaxis, np.newaxis], np.cos(angle)[..., np.newaxis, np.newaxis]
    along = np.outer(axis, axis)
    return np.asarray(c * (np.eye(3) - along) + along + s * K)


def quaternion_turn(q: Array) -> Array:
    """Rotation of a unit quaternion w, x, y, z."""
    w, x, y, z = (q[..., i] for i in range(4))
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_of(rotation: Any, parameters: Mapping[str, Any]) -> Array:
    """A rotation of a description as a matrix: roll-pitch-yaw, quaternion or matrix."""
    if isinstance(rotation[0], tuple):
        return nearest_rotation(np.array([numbers(row, parameters) for row in rotation]))
    values = numbers(rotation, parameters)
    if len(values) == 4:
        return quaternion_turn(values / np.linalg.norm(values))
    if not values.any():
        return np.eye(3)
    x, y, z = (axis_turn(e, angle) for e, angle in zip(np.eye(3), values, strict=True))
    return np.asarray(z @ y @ x)


def nearest_rotation(R: Array) -> Array:
    """The rotation nearest to a matrix that was written with few digits, by Newton's iteration."""
    for _ in range(3):
        R = (R + np.linalg.inv(R).T) / 2
    return R


def direction(axis: Any, parameters: Mapping[str, Any]) -> Array:
    """A direction of a description, of length one; entries that are only rounding are zero."""
    x = numbers(axis, parameters)
    x = x / (np.linalg.norm(x) or 1.0)
    return np.where(np.abs(x) < ROUNDING, 0.0, x)


def axes_along(axis: Any, parameters: Mapping[str, Any]) -> Array:
    """The axes that a description means by a direction alone: z along it, x and y across.

    They are turned to from z the shortest way. An axis with parameters that points down is turned
    to from -z, half a turn about x away, so that it may pass through -z.
    """
    a = direction(axis, parameters)
    fixed = not any(isinstance(x, Expression) for x in axis)
    if fixed or axis[0] == 0.0 or axis[1] == 0.0 or a[2] >= FROM_BELOW:
        return shortest_turn(a)
    mirror = np.diag([1.0, 1.0, -1.0])
    return np.asarray(mirror @ shortest_turn(mirror @ a) @ np.diag([1.0, -1.0, 1.0]))


def shortest_turn(axis: Array) -> Array:
    """The shortest turn from z to a unit axis; half a turn about x where that is -z."""
    x, y, z = axis
    square = x * x + y * y
    if square == 0.0:
        return np.diag([1.0, math.copysign(1.0, z), math.copysign(1.0, z)])
    # 1 / (1 + z), which cancels near -z, is (1 - z) / (x^2 + y^2)
    k = 1.0 / (1.0 + z) if z > 0.0 else (1.0 - z) / square
    return np.array(
        [[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]]
    )


@dataclass(frozen=True)
class Jet:
    """A number with its first and second derivative by time."""

    x: float
    d: float = 0.0
    dd: float = 0.0

    def _through(self, f: float, slope: float, bend: float) -> Jet:
        return Jet(f, slope * self.d, slope * self.dd + bend * self.d * self.d)

    def __add__(self, other: Any) -> Jet:
        o = as_jet(other)
        return Jet(self.x + o.x, self.d + o.d, self.dd + o.dd)

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.d, -self.dd)

    def __sub__(self, other: Any) -> Jet:
        return self + (-as_jet(other))

    def __rsub__(self, other: Any) -> Jet:
        return as_jet(other) - self

    def __mul__(self, other: Any) -> Jet:
        o = as_jet(other)
        return Jet(
            self.x * o.x,
            self.d * o.x + self.x * o.d,
            self.dd * o.x + 2 * self.d * o.d + self.x * o.dd,
        )

    def __truediv__(self, other: Any) -> Jet:
        o = as_jet(other)
        return self * o._through(1 / o.x, -1 / o.x**2, 2 / o.x**3)

    def __rtruediv__(self, other: Any) -> Jet:
        return as_jet(other) / self

    def __pow__(self, other: Any) -> Jet:
        n = as_jet(other)
        if n.d == 0.0 and n.dd == 0.0:
            power, slope = n.x, n.x - 1
            bend = power * slope * self.x ** (n.x - 2) if power * slope else 0.0
            return self._through(self.x**power, power * self.x**slope if power else 0.0, bend)
        return (n * self.log()).exp()

    def __rpow__(self, other: Any) -> Jet:
        return (self * math.log(other)).exp()

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Any) -> bool:
        return self.x < as_jet(other).x

    def __le__(self, other: Any) -> bool:
        return self.x <= as_jet(other).x

    def __gt__(self, other: Any) -> bool:
        return self.x > as_jet(other).x

    def __ge__(self, other: Any) -> bool:
        return self.x >= as_jet(other).x

    def __bool__(self) -> bool:
        return self.x != 0.0

    def __abs__(self) -> Jet:
        return self * float(np.sign(self.x))

    # the functions of formulas, under NumPy's names -----------------------------------------------

    def sin(self) -> Jet:
        """Sine."""
        return self._through(math.sin(self.x), math.cos(self.x), -math.sin(self.x))

    def cos(self) -> Jet:
        """Cosine."""
        return self._through(math.cos(self.x), -math.sin(self.x), -math.cos(self.x))

    def tan(self) -> Jet:
        """Tangent."""
        return self.sin() / self.cos()

    def arcsin(self) -> Jet:
        """Inverse sine."""
        c = 1 - self.x * self.x
        return self._through(math.asin(self.x), c**-0.5, self.x * c**-1.5)

    def arccos(self) -> Jet:
        """Inverse cosine."""
        return math.pi / 2 - self.arcsin()

    def arctan(self) -> Jet:
        """Inverse tangent."""
        c = 1 + self.x * self.x
        return self._through(math.atan(self.x), 1 / c, -2 * self.x / c**2)

    def sqrt(self) -> Jet:
        """Square root."""
        root = math.sqrt(self.x)
        return self._through(root, 0.5 / root, -0.25 / root**3)

    def exp(self) -> Jet:
        """Exponential."""
        return self._through(math.exp(self.x), math.exp(self.x), math.exp(self.x))

    def log(self) -> Jet:
        """Natural logarithm."""
        return self._through(math.log(self.x), 1 / self.x, -1 / self.x**2)

    def sinh(self) -> Jet:
        """Hyperbolic sine."""
        return (self.exp() - (-self).exp()) / 2

    def cosh(self) -> Jet:
        """Hyperbolic cosine."""
        return (self.exp() + (-self).exp()) / 2

    def tanh(self) -> Jet:
        """Hyperbolic tangent."""
        f = math.tanh(self.x)
        return self._through(f, 1 - f * f, -2 * f * (1 - f * f))


def as_jet(x: Any) -> Jet:
    """A number that stays, or what carries its derivatives already."""
    return x if isinstance(x, Jet) else Jet(float(x))


def _middle(a: Any, b: Any) -> Jet:
    """Return the mean of two that meet, for the rate at a corner."""
    return (as_jet(a) + b) / 2


def _atan2(y: Any, x: Any) -> Jet:
    y, x = as_jet(y), as_jet(x)
    slope = y / x if abs(x.x) >= abs(y.x) else -(x / y)  # differs by a constant
    return replace(slope.arctan(), x=math.atan2(y.x, x.x))


JET_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": Jet.sin,
    "cos": Jet.cos,
    "tan": Jet.tan,
    "asin": Jet.arcsin,
    "acos": Jet.arccos,
    "atan": Jet.arctan,
    "sqrt": Jet.sqrt,
    "exp": Jet.exp,
    "log": Jet.log,
    "sinh": Jet.sinh,
    "cosh": Jet.cosh,
    "tanh": Jet.tanh,
    "abs": abs,
    "sign": lambda x: float(np.sign(x.x)),
    "floor": lambda x: float(np.floor(x.x)),
    "atan2": _atan2,
    "hypot": lambda x, y: (as_jet(x) ** 2 + as_jet(y) ** 2).sqrt(),
    "min": lambda a, b: a if a < b else b if b < a else _middle(a, b),
    "max": lambda a, b: a if a > b else b if b > a else _middle(a, b),
    "where": lambda condition, a, b: a if condition else b,
    "and": lambda a, b: float(bool(a and b)),
    "or": lambda a, b: float(bool(a or b)),
    "not": lambda a: float(not a),
}


def motion_at(motion: Expression | float, parameters: Mapping[str, Any], t: float) -> Jet:
    """A function of time and its two derivatives at one instant."""
    return jet_of(motion, {**parameters, "t": Jet(t, 1.0)})


def jet_of(formula: Expression | float, values: Mapping[str, Any]) -> Jet:
    """A formula and its two derivatives, given those of what it depends on."""
    return as_jet(evaluate(formula, values, JET_FUNCTIONS))
