"""Inertias that MuJoCo accepts: it refuses moving bodies without mass, and impossible moments."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from axode.formats.written.frame_poses import FramePose, cleaned_numbers
from axode.formats.written.written_tree import WrittenLink, WrittenTree
from axode.numerics.tolerances import ROUNDING

SMALLEST = 2e-15  # MuJoCo refuses moving bodies with less than half of it [kg, kg m^2]


@dataclass(frozen=True)
class PrincipalInertia:
    """Mass, principal moments and the quaternion of their axes in the link's."""

    mass: float
    moments: tuple[float, ...]
    quaternion: tuple[float, ...]


def moving_inertias(tree: WrittenTree) -> dict[str, PrincipalInertia]:
    """Return the inertia of every link as MuJoCo accepts it; note what had to be changed."""
    found = {name: _principal(link) for name, link in tree.links.items()}
    sound = {name: _is_enough(inertia) for name, inertia in found.items()}
    for joint in reversed(tree.joints):  # what is welded to a link counts with it
        if joint.kind == "fixed" and sound[joint.child] and joint.parent in sound:
            sound[joint.parent] = True
    for name, inertia in found.items():
        found[name] = _with_possible_moments(tree, name, inertia)
    for joint in tree.joints:
        name = joint.child
        if joint.kind == "fixed" or sound[name] or tree.links[name].is_between:
            continue
        moments = tuple(max(m, SMALLEST) for m in found[name].moments)
        found[name] = replace(found[name], mass=max(found[name].mass, SMALLEST), moments=moments)
        tree.left_out.append(
            f"body '{name}' lacks mass or moments of inertia, which MuJoCo refuses in bodies that "
            f"move; those that vanish are {SMALLEST:g} in the file"
        )
    return found


def _is_enough(inertia: PrincipalInertia) -> bool:
    return min(inertia.mass, *inertia.moments) >= SMALLEST


def _principal(link: WrittenLink) -> PrincipalInertia:
    tensor = link.tensor
    if np.array_equal(tensor, np.diag(np.diag(tensor))):
        return PrincipalInertia(link.mass, tuple(np.diag(tensor).tolist()), (1.0, 0.0, 0.0, 0.0))
    moments, axes = np.linalg.eigh(tensor)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    quaternion = FramePose(axes, np.zeros(3)).quaternion
    return PrincipalInertia(link.mass, tuple(cleaned_numbers(moments).tolist()), quaternion)


def _with_possible_moments(
    tree: WrittenTree, name: str, inertia: PrincipalInertia
) -> PrincipalInertia:
    """Raise the smallest moment until no moment is larger than the sum of the others."""
    moments = [max(m, 0.0) for m in inertia.moments]
    order = sorted(range(3), key=lambda k: moments[k])
    small, middle, large = order
    moments[small] = max(moments[small], moments[large] - moments[middle])
    while moments[small] + moments[middle] < moments[large]:
        moments[small] = float(np.nextafter(moments[small], np.inf))
    change = max(abs(m - n) for m, n in zip(moments, inertia.moments, strict=True))
    if change > ROUNDING * moments[large]:
        tree.left_out.append(
            f"body '{name}' has moments of inertia that no rigid body has, which MuJoCo refuses; "
            f"the smallest, {inertia.moments[small]:.9g}, is {moments[small]:.9g} in the "
            "file"
        )
    return replace(inertia, moments=tuple(moments))
