"""Joints in symbols: one file per joint, found by the class of the description."""

from __future__ import annotations

from axode.errors import NotApplicable
from axode.mechanism.elements import joints as descriptions
from axode.mechanism.elements.joints import AbstractJoint
from axode.symbolic.algebra.spatial import Values
from axode.symbolic.joints.base import SymbolicJoint
from axode.symbolic.joints.cylindrical import SymbolicCylindrical
from axode.symbolic.joints.fixed import SymbolicFixed
from axode.symbolic.joints.floating import SymbolicFloating
from axode.symbolic.joints.planar import SymbolicPlanar
from axode.symbolic.joints.prismatic import SymbolicPrismatic
from axode.symbolic.joints.revolute import SymbolicRevolute
from axode.symbolic.joints.screw import SymbolicScrew
from axode.symbolic.joints.spherical import SymbolicSpherical
from axode.symbolic.joints.universal import SymbolicUniversal

SYMBOLIC_JOINTS: dict[type[AbstractJoint], type[SymbolicJoint]] = {
    descriptions.Revolute: SymbolicRevolute,
    descriptions.Prismatic: SymbolicPrismatic,
    descriptions.Screw: SymbolicScrew,
    descriptions.Cylindrical: SymbolicCylindrical,
    descriptions.Universal: SymbolicUniversal,
    descriptions.Spherical: SymbolicSpherical,
    descriptions.Planar: SymbolicPlanar,
    descriptions.Floating: SymbolicFloating,
    descriptions.Fixed: SymbolicFixed,
}


def symbolic_joint(joint: AbstractJoint, values: Values) -> SymbolicJoint:
    """Return a joint in symbols, with `values` for its parameters."""
    for kind in type(joint).__mro__:
        if kind in SYMBOLIC_JOINTS:
            return SYMBOLIC_JOINTS[kind](joint, values)
    raise NotApplicable(
        f"joints of class {type(joint).__name__} have no symbolic counterpart: register one in "
        "axode.symbolic.joints.SYMBOLIC_JOINTS"
    )
