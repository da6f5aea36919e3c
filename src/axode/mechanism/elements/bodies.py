"""Rigid bodies, their inertia and the shapes that picture them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from axode.errors import InvalidArgument, shortened
from axode.mechanism.values.expressions import Scalar, as_scalar, numeric, shown
from axode.mechanism.values.geometry import (
    AXES,
    NO_ROTATION,
    ORIGIN,
    Vector,
    as_rotation,
    as_vector,
    axis_fault,
    minus,
    plus,
    rotation_fault,
    rotation_matrix,
    take,
    times,
    unit,
)
from axode.numerics.tolerances import NEGLIGIBLE, POINT_SIZE, SUM_ROUNDING, THREE_DIGITS


@dataclass(frozen=True)
class Inertia:
    """Moments and products of inertia about the mass centre, in body axes [kg m^2].

    Args:
        xx, yy, zz: Moments of inertia.
        xy, xz, yz: Entries of the tensor off its diagonal (minus the products of inertia).
        ideal: Whether zero moments are meant (a point mass, a thin rod).
        unphysical: Whether moments that no rigid body has are to be used as they are: files from
            CAD programs hold such numbers, and other programs compute with them.
    """

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar = 0.0
    xz: Scalar = 0.0
    yz: Scalar = 0.0
    ideal: bool = False
    unphysical: bool = False

    def __post_init__(self) -> None:
        for name in ("xx", "yy", "zz", "xy", "xz", "yz"):
            object.__setattr__(self, name, as_scalar(getattr(self, name)))

    @classmethod
    def of(cls, value: Any) -> Inertia:
        """Make an inertia from three principal moments, a 3 x 3 tensor, or an `Inertia` itself."""
        if isinstance(value, Inertia):
            return value
        rows = list(value) if hasattr(value, "__len__") and not isinstance(value, str) else []
        nested = [hasattr(row, "__len__") and not isinstance(row, str) for row in rows]
        if len(rows) == 3 and not any(nested):
            return cls(*as_vector(rows))
        if len(rows) == 3 and all(nested) and all(len(row) == 3 for row in rows):
            (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = (as_vector(row) for row in rows)
            for upper, lower in ((xy, yx), (xz, zx), (yz, zy)):
                if not math.isclose(
                    numeric(upper), numeric(lower), rel_tol=NEGLIGIBLE, abs_tol=SUM_ROUNDING
                ):
                    raise InvalidArgument("the inertia tensor must be symmetric")
            return cls(xx, yy, zz, xy, xz, yz)
        expected = "three principal moments, a 3 x 3 tensor or an Inertia"
        raise InvalidArgument(f"expected {expected}, got {shortened(value)}")

    @classmethod
    def box(cls, mass: Scalar, size: Any) -> Inertia:
        """A solid box with edges `size` [m] along x, y, z."""
        x, y, z = as_vector(size)
        k = mass / 12.0
        return cls(k * (y * y + z * z), k * (x * x + z * z), k * (x * x + y * y))

    @classmethod
    def cylinder(cls, mass: Scalar, radius: Scalar, length: Scalar, axis: Any = "z") -> Inertia:
        """A solid cylinder about `axis`."""
        transverse = mass * (3.0 * radius * radius + length * length) / 12.0
        return cls.axial(mass * radius * radius / 2.0, transverse, axis)

    @classmethod
    def disk(cls, mass: Scalar, radius: Scalar, axis: Any = "z") -> Inertia:
        """A thin uniform disk about `axis`."""
        return cls.axial(mass * radius * radius / 2.0, mass * radius * radius / 4.0, axis)

    @classmethod
    def rod(cls, mass: Scalar, length: Scalar, axis: Any = "x") -> Inertia:
        """A thin uniform rod along `axis`, without inertia about it."""
        return cls.axial(0.0, mass * length * length / 12.0, axis, ideal=True)

    @classmethod
    def sphere(cls, mass: Scalar, radius: Scalar) -> Inertia:
        """A solid uniform sphere."""
        moment = 0.4 * mass * radius * radius
        return cls(moment, moment, moment)

    @classmethod
    def point(cls) -> Inertia:
        """No inertia about the mass centre: a point mass."""
        return cls(0.0, 0.0, 0.0, ideal=True)

    @classmethod
    def planar(cls, moment: Scalar, normal: Any = "z") -> Inertia:
        """A flat body across `normal`, for planar mechanisms: only `moment` about it matters.

        The two moments in the plane are half of it each, as those of any flat body are in sum, so
        that the mechanism may also leave its plane.
        """
        return cls.axial(moment, as_scalar(moment) / 2.0, normal)

    @classmethod
    def axial(
        cls, along: Scalar, across: Scalar, axis: Any = "z", *, ideal: bool = False
    ) -> Inertia:
        """Inertia symmetric about an axis: moments `along` it and `across` it."""
        direction = unit(as_vector(axis))
        x, y, z = direction
        xx, yy, zz = (times(n, n) for n in direction)
        along, across = as_scalar(along), as_scalar(across)
        d = plus(along, minus(across))
        return cls(
            plus(times(along, xx), times(across, plus(yy, zz))),
            plus(times(along, yy), times(across, plus(xx, zz))),
            plus(times(along, zz), times(across, plus(xx, yy))),
            times(d, times(x, y)),
            times(d, times(x, z)),
            times(d, times(y, z)),
            ideal,
        )

    def moved(self, mass: Scalar, offset: Any) -> Inertia:
        """Inertia about a point displaced by `offset` [m] from the mass centre (parallel axes)."""
        x, y, z = as_vector(offset)
        return Inertia(
            self.xx + mass * (y * y + z * z),
            self.yy + mass * (x * x + z * z),
            self.zz + mass * (x * x + y * y),
            self.xy - mass * x * y,
            self.xz - mass * x * z,
            self.yz - mass * y * z,
        )

    def rotated(self, rotation: Any) -> Inertia:
        """Inertia of the same body turned by a rotation, in the axes that do not turn."""
        R = rotation_matrix(as_rotation(rotation))
        xx, yy, zz, xy, xz, yz = self.entries
        own = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))

        def entry(i: int, j: int) -> Scalar:
            total: Scalar = 0.0
            for k in range(3):
                for m in range(3):
                    total = plus(total, times(own[k][m], times(R[i][k], R[j][m])))
            return total

        diagonal = entry(0, 0), entry(1, 1), entry(2, 2)
        return Inertia(*diagonal, entry(0, 1), entry(0, 2), entry(1, 2), ideal=self.ideal)

    @property
    def entries(self) -> tuple[Scalar, ...]:
        """Entries xx, yy, zz, xy, xz, yz."""
        return (self.xx, self.yy, self.zz, self.xy, self.xz, self.yz)

    @property
    def vanishes(self) -> bool:
        """Return whether all entries are zero, at the defaults of parameters."""
        return not any(numeric(entry) for entry in self.entries)

    def is_point(self, mass: float) -> bool:
        """Return whether all entries are zero but for rounding, in a body of this mass."""
        return all(abs(numeric(entry)) <= POINT_SIZE * mass for entry in self.entries)

    def fault(self) -> str | None:
        """Why no rigid body can have this inertia, or None."""
        xx, yy, zz, xy, xz, yz = (numeric(entry) for entry in self.entries)
        if not all(map(math.isfinite, (xx, yy, zz, xy, xz, yz))):
            return "must be finite"
        if self.unphysical:
            return None
        moments = principal_moments((xx, yy, zz, xy, xz, yz))
        scale = max(abs(moments[0]), abs(moments[2]))
        if moments[0] < -NEGLIGIBLE * scale or (moments[0] <= 0 and not self.ideal):
            listed = ", ".join(f"{m:.6g}" for m in moments)
            remedy = (
                ""
                if moments[0] < 0
                else "; for a point mass or a thin rod use "
                "Inertia.point() or Inertia.rod(...), in a file ideal = true"
            )
            return f"must be positive definite, its principal moments are {listed}{remedy}"
        if moments[0] + moments[1] < moments[2] * (1 - THREE_DIGITS):
            return f"not physical, {self._broken_triangle(moments)}"
        return None

    def _broken_triangle(self, moments: tuple[float, ...]) -> str:
        named = {"Ixx": numeric(self.xx), "Iyy": numeric(self.yy), "Izz": numeric(self.zz)}
        for largest in named:
            a, b = (n for n in named if n != largest)
            if named[a] + named[b] < named[largest] * (1 - THREE_DIGITS):
                return f"{a} + {b} < {largest}"
        return f"principal moments {moments[0]:.6g} + {moments[1]:.6g} < {moments[2]:.6g}"


@lru_cache(maxsize=1024)  # readers and checks ask for those of the same bodies
def principal_moments(entries: tuple[float, ...]) -> tuple[float, ...]:
    """Compute the principal moments of xx, yy, zz, xy, xz, yz, the smallest first."""
    xx, yy, zz, xy, xz, yz = entries
    return tuple(np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist())


@dataclass(frozen=True)
class Box:
    """A box centred on `at`, edges `size` [m].

    Args:
        size: Edges along its own x, y, z [m].
        at, rotation: Its centre and its axes in the body's frame [m; roll-pitch-yaw, quaternion
            or matrix].
        colour: Red, green and blue from 0 to 1; chosen by the picture unless given.
    """

    size: Any
    at: Any = ORIGIN
    rotation: Any = NO_ROTATION
    colour: Any = None
    kind: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        _convert(self, scalars=(), vectors=("size", "at"))
        take(self, as_rotation, "rotation")

    def faults(self) -> Iterator[str]:
        """What is wrong with the picture."""
        yield from _not_positive(
            {f"size along {n}": s for n, s in zip("xyz", self.size, strict=True)}
        )
        yield from _bad_rotation(self.rotation)
        yield from _bad_colour(self.colour)

    def inertia(self, mass: Scalar) -> Inertia:
        """Inertia of a solid of this shape."""
        own = Inertia.box(mass, self.size)
        return own if self.rotation == NO_ROTATION else own.rotated(self.rotation)

    def outside(self, point: Vector) -> bool:
        """Return whether a point is not within it, as no mass centre of such a solid can be."""
        rows = rotation_matrix(self.rotation)
        R = np.array([[numeric(entry) for entry in row] for row in rows])
        with np.errstate(all="ignore"):  # numbers that are not finite are reported elsewhere
            away = R.T @ _between(self.at, point)
        return any(abs(d) >= numeric(size) / 2 for d, size in zip(away, self.size, strict=True))


@dataclass(frozen=True)
class Cylinder:
    """A cylinder centred on `at` [m].

    Args:
        radius, length: [m]
        axis, at: Its axis and its centre in the body's frame [m].
        colour: Red, green and blue from 0 to 1; chosen by the picture unless given.
    """

    radius: Scalar
    length: Scalar
    axis: Any = AXES["z"]
    at: Any = ORIGIN
    colour: Any = None
    kind: ClassVar[str] = "cylinder"

    def __post_init__(self) -> None:
        _convert(self, scalars=("radius", "length"), vectors=("axis", "at"))

    def faults(self) -> Iterator[str]:
        """What is wrong with the picture."""
        yield from _not_positive({"radius": self.radius, "length": self.length})
        fault = axis_fault(self.axis)
        if fault:
            yield f"axis {fault}"
        yield from _bad_colour(self.colour)

    def inertia(self, mass: Scalar) -> Inertia:
        """Inertia of a solid of this shape."""
        return Inertia.cylinder(mass, self.radius, self.length, self.axis)

    def outside(self, point: Vector) -> bool:
        """Return whether a point is not within it, as no mass centre of such a solid can be."""
        from_centre = _between(self.at, point)
        axis = [numeric(entry) for entry in self.axis]
        size = math.hypot(*axis) or math.nan
        along = sum(d * a / size for d, a in zip(from_centre, axis, strict=True))
        aside = math.hypot(*(d - along * a / size for d, a in zip(from_centre, axis, strict=True)))
        return abs(along) >= numeric(self.length) / 2 or aside >= numeric(self.radius)


@dataclass(frozen=True)
class Sphere:
    """A sphere centred on `at` [m].

    Args:
        radius: [m]
        at: Its centre in the body's frame [m].
        colour: Red, green and blue from 0 to 1; chosen by the picture unless given.
    """

    radius: Scalar
    at: Any = ORIGIN
    colour: Any = None
    kind: ClassVar[str] = "sphere"

    def __post_init__(self) -> None:
        _convert(self, scalars=("radius",), vectors=("at",))

    def faults(self) -> Iterator[str]:
        """What is wrong with the picture."""
        yield from _not_positive({"radius": self.radius})
        yield from _bad_colour(self.colour)

    def inertia(self, mass: Scalar) -> Inertia:
        """Inertia of a solid of this shape."""
        return Inertia.sphere(mass, self.radius)

    def outside(self, point: Vector) -> bool:
        """Return whether a point is not within it, as no mass centre of such a solid can be."""
        return math.hypot(*_between(self.at, point)) >= numeric(self.radius)


@dataclass(frozen=True)
class Mesh:
    """A file with the surface of a body, which pictures show where it can be read.

    Nothing else needs it: a body whose mesh is missing is drawn as one without a shape.

    Args:
        file: Its address: a path, `package://...`, `model://...` or `file://...`.
        scale: Along x, y, z of the file; a negative number mirrors.
        at, rotation: Where the file's frame is in the body's [m; roll-pitch-yaw, quaternion or
            matrix].
        colour: Red, green and blue from 0 to 1; those of the file unless given.
        folders: Folders outside of which no file is opened; a path is relative to any of them.
            `load` fills it in. Without any, a path is relative to the working directory and any
            file is opened.
    """

    file: str
    scale: Any = (1.0, 1.0, 1.0)
    at: Any = ORIGIN
    rotation: Any = NO_ROTATION
    colour: Any = None
    folders: tuple[str, ...] = field(default=(), compare=False, repr=False)
    kind: ClassVar[str] = "mesh"

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file.isprintable():
            raise InvalidArgument(
                f"Mesh, file: expected the address of a file, got {shortened(self.file)}"
            )
        _convert(self, scalars=(), vectors=("scale", "at"))
        take(self, as_rotation, "rotation")

    def faults(self) -> Iterator[str]:
        """What is wrong with the reference."""
        if not self.file:
            yield "file must name a file"
        if not all(math.isfinite(numeric(s)) for s in self.scale):
            yield "scale must be finite"
        yield from _bad_rotation(self.rotation)
        yield from _bad_colour(self.colour)

    def inertia(self, mass: Scalar) -> Inertia:
        """Raise `InvalidArgument`: the file is not read."""
        raise InvalidArgument("a mesh has no inertia of its own; give inertia=...")

    def outside(self, point: Vector) -> bool:
        """Return false: whether a point is within it is not known."""
        return False


Shape = Box | Cylinder | Sphere | Mesh
SHAPES: dict[str, type[Shape]] = {shape.kind: shape for shape in (Box, Cylinder, Sphere, Mesh)}


def _between(start: Vector, end: Vector) -> list[float]:
    """Vector from one point to another, at the parameters' defaults."""
    return [numeric(b) - numeric(a) for a, b in zip(start, end, strict=True)]


def _convert(shape: Shape, scalars: tuple[str, ...], vectors: tuple[str, ...]) -> None:
    take(shape, as_scalar, *scalars)
    take(shape, as_vector, *vectors)
    if shape.colour is not None:
        take(shape, as_vector, "colour")


def _bad_rotation(rotation: Any) -> Iterator[str]:
    fault = rotation_fault(rotation)
    if fault:
        yield f"rotation {fault}"


def _bad_colour(colour: Any) -> Iterator[str]:
    if colour is not None and not all(0.0 <= numeric(part) <= 1.0 for part in colour):
        got = ", ".join(map(shown, colour))
        yield f"colour must be three numbers from 0 to 1, got {got}"


def _not_positive(lengths: dict[str, Scalar]) -> Iterator[str]:
    for name, length in lengths.items():
        if not 0 < numeric(length) < math.inf:
            yield f"{name} must be > 0 m, got {shown(length)}"


@dataclass(frozen=True)
class Body:
    """A rigid body; its frame is wherever the user puts it.

    Args:
        name: Unique in the mechanism.
        mass: [kg]
        com: Mass centre in the body's frame [m].
        inertia: About the mass centre, in the body's axes [kg m^2].
        shape: What a picture shows, one shape or several; dynamics never looks at it.
    """

    name: str
    mass: Scalar
    com: Vector
    inertia: Inertia
    shape: Shape | tuple[Shape, ...] | None = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All shapes that a picture shows."""
        if self.shape is None:
            return ()
        return self.shape if isinstance(self.shape, tuple) else (self.shape,)

    @property
    def is_idealised(self) -> bool:
        """Check whether it may lack inertia in some direction.

        That is said by its inertia, or follows from its numbers: nothing at all, at the defaults of
        parameters too, is a massless body however it is written.
        """
        said = self.inertia.ideal or self.inertia.unphysical
        return said or (numeric(self.mass) == 0 and self.inertia.vanishes)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Field and message of everything unphysical."""
        mass = numeric(self.mass)
        massless = mass == 0 and self.is_idealised
        massive = 0 < mass < math.inf
        if not (massive or massless):
            remedy = "; a massless body has the inertia of a point" if mass == 0 else ""
            yield "mass", f"must be > 0 kg, got {shown(self.mass)}{remedy}"
        if not all(math.isfinite(numeric(c)) for c in self.com):
            yield "com", "must be finite"
        fault = self.inertia.fault()
        if self.is_idealised and self.inertia.is_point(mass):
            fault = None
        if fault and (massive or massless or not self._inertia_follows(mass)):
            yield "inertia", fault
        for shape in self.shapes:
            for message in shape.faults():
                yield "shape", message
            if not all(math.isfinite(numeric(c)) for c in shape.at):
                yield "shape", "at must be finite"

    def _inertia_follows(self, mass: float) -> bool:
        """Return whether the inertia is wrong as the mass is: one was made from the other."""
        moments = [numeric(entry) for entry in self.inertia.entries[:3]]
        return all(
            math.copysign(1.0, m) == math.copysign(1.0, mass) and m <= 0 for m in moments
        ) or not any(map(math.isfinite, (mass, *moments)))


GROUND = Body("ground", 0.0, ORIGIN, Inertia.point())
