"""Legs: chains of elementary joints from the ground to the output body, in numbers.

The output's pose along a leg of k joints is the product of constant matrices and motions,

    T = C_0 J_1(q_1) C_1 J_2(q_2) ... J_k(q_k) C_k,

with one `LegMotion` for each J: see `motion_graph` for what the kinds of joints do.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.kinematics.link_groups import frame_numbers, group_links, joint_chains
from axode.kinematics.motion_graph import ElementaryJoint, JointKind, MotionGraph
from axode.kinematics.parallelograms import join_parallelograms
from axode.mechanism.elements.bodies import GROUND

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LegMotion:
    """One joint of a leg.

    Attributes:
        name: That of the joint in the description.
        kind: "revolute", "prismatic", "screw", "spherical" or "parallelogram".
        coordinates: Names in the model; none for a joint that closes a loop.
        driven: Whether its coordinate is driven.
        inverted: Whether a spherical joint's quaternion belongs to the inverse of its motion.
        size: Pitch of a screw [m/rad], length of a parallelogram's rods [m].
    """

    name: str
    kind: JointKind
    coordinates: tuple[str, ...]
    driven: bool
    inverted: bool = False
    size: float = 0.0


@dataclass(frozen=True, eq=False)
class LegPath:
    """A leg: its joints, and the constant matrices before, between and after them.

    Attributes:
        name: Names of its driven coordinates, or of its joints if none is driven.
        joints: From the ground to the output body.
        constants: C_0 ... C_k, homogeneous matrices: (k + 1, 4, 4).
    """

    name: str
    joints: tuple[LegMotion, ...]
    constants: Array

    @property
    def letters(self) -> str:
        """Kinds of its joints in short, those of driven ones underlined by a following _."""
        return "".join(LETTERS[joint.kind] + ("_" if joint.driven else "") for joint in self.joints)


LETTERS = {"revolute": "R", "prismatic": "P", "screw": "H", "spherical": "S", "parallelogram": "Q"}


def leg_paths(
    graph: MotionGraph,
    output: str,
    driven: tuple[str, ...],
    parameters: Array,
    home: dict[str, Array],
) -> tuple[LegPath, ...]:
    """Find the legs that lead from the ground to the output body.

    Args:
        graph: Links and joints of the mechanism.
        output: Name of the output body.
        driven: Names of the driven coordinates.
        parameters: Values of the parameters, in the order of `graph.values`.
        home: Poses of the bodies at home, homogeneous matrices.

    Raises:
        NotApplicable: if a chain from the ground branches before it reaches the output.
    """
    groups = group_links(graph, (output,))
    target, within = groups.places[output]
    merged, _ = join_parallelograms(groups.graph, parameters, home)
    legs = []
    for chain in joint_chains(merged, (GROUND.name, target)):
        ends = chain[0].first, chain[-1].second
        if ends == (GROUND.name, target):
            legs.append(chain)
        else:
            stray = next((end for end in ends if end not in (GROUND.name, target)), ends[1])
            raise NotApplicable(
                f"legs to '{output}': a chain of joints ends on '{stray}', which is neither the "
                f"ground nor the output.\n  Choose another output body, output=..."
            )
    symbols = ca.vertcat(*graph.values.values())
    offset = np.eye(4)
    function = ca.Function("offset", [symbols], [within.R, within.p])
    offset[:3, :3], offset[:3, 3:] = (np.array(part) for part in function(parameters))
    return tuple(_leg(chain, driven, symbols, parameters, offset) for chain in legs)


def _leg(
    chain: tuple[ElementaryJoint, ...],
    driven: tuple[str, ...],
    symbols: ca.SX,
    parameters: Array,
    offset: Array,
) -> LegPath:
    frames = frame_numbers(chain, symbols, parameters)
    before: Array = np.eye(4)
    constants = []
    for frame_1, frame_2 in frames:
        constants.append(before @ frame_1)
        before = np.asarray(np.linalg.inv(frame_2), np.float64)
    sizes = np.array(
        ca.Function("sizes", [symbols], [ca.vertcat(*(j.size for j in chain))])(parameters)
    )
    joints = tuple(
        LegMotion(
            joint.name,
            joint.kind,
            joint.coordinates,
            any(name in driven for name in joint.coordinates),
            joint.inverted,
            float(size),
        )
        for joint, size in zip(chain, sizes.ravel(), strict=True)
    )
    names = [name for joint in joints for name in joint.coordinates if name in driven]
    names = names or list(dict.fromkeys(joint.name for joint in joints))
    return LegPath(", ".join(names), joints, np.array([*constants, before @ offset]))
