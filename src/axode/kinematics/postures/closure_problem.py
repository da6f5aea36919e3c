"""A robot with its driven joints locked: nodes, and chains between them with one link eliminated.

Nodes are the ground and the groups of links on which three joints or more end. Every other node has
a carrier, the freedom that all chains together can give it at most:

    floating        six unknowns
    planar          three, if all axes are parallel and all slides across them
    spherical       three, if all axes meet in one point
    translational   three, if two chains allow turns about different axes only
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.kinematics.motion_graph import (
    ElementaryJoint,
    LinkGroups,
    MotionGraph,
    RigidJoint,
    Rod,
    frame_numbers,
    group_links,
    join_parallelograms,
    joint_chains,
    lock_joints,
)
from axode.kinematics.postures.chains import ChainGeometry, ReducedChain, Space, reduce_chain
from axode.mechanism.elements.bodies import GROUND
from axode.numerics.rotations import nearest_point, perpendiculars
from axode.numerics.tolerances import NEGLIGIBLE
from axode.symbolic.algebra.spatial import SX, Pose

Array = npt.NDArray[np.float64]
CarrierKind = Literal["floating", "planar", "spherical", "translational"]
Chain = tuple[ElementaryJoint, ...]
PERTURBATION = 0.137  # change of locked coordinates that shows what holds at home only
MAX_TREE_JOINTS = 3  # beside a floating node
EQUATIONS = {"points": 1, "axis-point": 2, "axes": 4, "directions": 1, "meeting": 3}
UNKNOWNS = {"floating": 6, "planar": 3, "spherical": 3, "translational": 3}


@dataclass(frozen=True, eq=False)
class Carrier:
    """Freedom of a node: its pose is `base`, a motion of the kind, and the inverse of `frame`.

    Attributes:
        node: Name of the node.
        kind: What the motion may be; that of a planar one is across z.
        base: Homogeneous matrix in the ground.
        frame: Homogeneous matrix in the node.
    """

    node: str
    kind: CarrierKind
    base: Array
    frame: Array


@dataclass(frozen=True, eq=False)
class ClosureProblem:
    """What the equations of closure are written from.

    Attributes:
        held: Symbols of the locked coordinates, or of the output's pose.
        parameters: Symbols of the mechanism's parameters.
        base: Frame of all carriers in the ground, a homogeneous matrix.
        carriers: Those of the nodes other than the ground.
        chains: Chains between nodes, in the frames of the carriers.
        joints: Joints of each chain as they are, in the frames of the groups.
        groups: Groups of locked links; `places` names those of links inside parallelograms too.
        rods: Pairs of rods that were joined to parallelograms.
        size: Length of the mechanism [m].
        space: Which motions chains can give.
    """

    held: SX
    parameters: SX
    base: Array
    carriers: tuple[Carrier, ...]
    chains: tuple[ReducedChain, ...]
    joints: tuple[Chain, ...]
    groups: LinkGroups
    rods: tuple[tuple[Rod, Rod], ...]
    size: float
    space: Space

    @property
    def unknowns(self) -> int:
        """Number of unknowns in the smallest form."""
        trees = sum(len(chain.unknown) for chain in self.chains)
        return trees + sum(UNKNOWNS[carrier.kind] for carrier in self.carriers)

    @property
    def equations(self) -> int:
        """Number of equations that belong to them."""
        fewer = self.space == "planar"
        return sum(EQUATIONS[c.kind] - (fewer and c.kind == "meeting") for c in self.chains)


@dataclass(frozen=True, eq=False)
class LockedState:
    """Numbers at which structure is decided: of what is held, of the parameters, and of home.

    Attributes:
        held: Values of what is held, at home.
        other: Values elsewhere.
        parameters: Values of the parameters, in the order of the graph's.
        poses: Poses of the bodies at home, homogeneous matrices.
        tolerance: Angles that are zero [rad], and lengths against that of the mechanism.
    """

    held: Array
    other: Array
    parameters: Array
    poses: Mapping[str, Array]
    tolerance: float


def direct_problem(
    graph: MotionGraph, output: str, driven: Sequence[str], state: LockedState
) -> ClosureProblem:
    """Lock the driven coordinates of a robot.

    Raises:
        NotApplicable: naming the chain that cannot be reduced.
    """
    held = SX.sym("held", len(driven))
    symbols = {name: held[k] for k, name in enumerate(driven)}
    return _problem(graph, output, lambda groups: lock_joints(groups.graph, symbols), held, state)


def inverse_problem(graph: MotionGraph, output: str, state: LockedState) -> ClosureProblem:
    """Lock the output body to the ground in a pose, given by the rows of a 3 x 4 matrix.

    Raises:
        NotApplicable: naming the chain that cannot be reduced.
    """
    held = SX.sym("held", 12)
    matrix = ca.reshape(held, 4, 3).T

    def lock(groups: LinkGroups) -> MotionGraph:
        group, place = groups.places[output]
        pose = Pose(matrix[:, :3], matrix[:, 3]) @ place.inverse()
        rigid = (*groups.graph.rigid, RigidJoint(GROUND.name, group, pose))
        return replace(groups.graph, rigid=rigid)

    return _problem(graph, output, lock, held, state)


def _problem(
    graph: MotionGraph,
    output: str,
    lock: Callable[[LinkGroups], MotionGraph],
    held: SX,
    state: LockedState,
) -> ClosureProblem:
    """Lock joints, choose carriers and reduce the chains."""
    parameters = ca.vertcat(*graph.values.values())
    loose = group_links(graph, (output,))
    rods: tuple[tuple[Rod, Rod], ...] = ()
    locked = group_links(lock(loose), (output,))
    home = _Home(locked.graph, ca.vertcat(held, parameters), state)
    space = home.space()
    if space == "spatial":
        joined, rods = join_parallelograms(loose.graph, state.parameters, state.poses)
        if rods:
            locked = group_links(lock(replace(loose, graph=joined)), (output,))
            home = _Home(locked.graph, ca.vertcat(held, parameters), state)
    _check_joints(locked.graph)
    chains = joint_chains(locked.graph, (GROUND.name,))
    carriers = home.carriers(chains, space)
    kinds = {carrier.node: carrier.kind for carrier in carriers}
    reduced = []
    for chain in chains:
        turns = any(kinds.get(link) == "translational" for link in _ends(chain))
        reduced.append(home.reduce(chain, carriers, "translational" if turns else space))
    _check_size(carriers, reduced)
    places = {
        link: (locked.places[group][0], locked.places[group][1] @ pose)
        for link, (group, pose) in loose.places.items()
        if group in locked.places
    }
    return ClosureProblem(
        held,
        parameters,
        home.base,
        carriers,
        tuple(reduced),
        tuple(chains),
        LinkGroups(locked.graph, places),
        rods,
        home.size,
        space,
    )


def _ends(chain: Chain) -> tuple[str, str]:
    return chain[0].first, chain[-1].second


def _check_size(carriers: Sequence[Carrier], chains: Sequence[ReducedChain]) -> None:
    """Check that the polynomials will not have thousands of solutions."""
    unknown = [item.joint.name for chain in chains for item in chain.unknown]
    named = ", ".join(dict.fromkeys(unknown))
    if any(carrier.kind == "floating" for carrier in carriers) and len(unknown) > MAX_TREE_JOINTS:
        raise NotApplicable(
            f"passive joints {named} would stay unknowns beside the pose of a node, "
            f"more than {MAX_TREE_JOINTS}: their polynomials have thousands of solutions.\n"
            "  Chains with a spherical joint, or three axes that meet, leave none."
        )


def _check_joints(graph: MotionGraph) -> None:
    """Check that every group is held by two joints or more, none of them a screw."""
    screws = [joint.name for joint in graph.joints if joint.kind == "screw"]
    if screws:
        raise NotApplicable(
            f"screw '{screws[0]}' is not driven, and postures of passive screws follow from no "
            "polynomials.\n  Drive it, or describe it as a cylindrical or revolute joint."
        )
    ends = Counter(link for joint in graph.joints for link in (joint.first, joint.second))
    loose = [link for link in graph.links if link != GROUND.name and ends[link] < 2]
    if loose:
        listed = ", ".join(f"'{link}'" for link in loose)
        raise NotApplicable(
            f"{listed}: held by fewer than two passive joints, so that nothing decides where it "
            "is.\n  Drive its joint too, driven=[...]."
        )


class _Home:
    """Numbers of locked groups at home, and what follows from them."""

    def __init__(self, graph: MotionGraph, symbols: SX, state: LockedState) -> None:
        self.state, self.symbols = state, symbols
        self.samples = [np.append(held, state.parameters) for held in (state.held, state.other)]
        frames = frame_numbers(graph.joints, symbols, self.samples[0])
        self.kinds = [joint.kind for joint in graph.joints]
        self.frames = [
            self._in_world(joint, *pair) for joint, pair in zip(graph.joints, frames, strict=True)
        ]
        points = np.array([frame[:3, 3] for frame in self.frames if frame is not None])
        self.size = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
        self.size = self.size or 1.0
        self.tolerance = max(state.tolerance, NEGLIGIBLE)
        self.normal: Array = np.array([0.0, 0.0, 1.0])
        self.centre: Array = np.zeros(3)
        self.base: Array = np.eye(4)

    def _in_world(self, joint: ElementaryJoint, one: Array, two: Array) -> Array | None:
        """Frame of a joint at home, from the link whose pose is known."""
        poses = self.state.poses
        if joint.first in poses:
            return np.asarray(poses[joint.first] @ one)
        return np.asarray(poses[joint.second] @ two) if joint.second in poses else None

    def space(self) -> Space:
        """Which motions the joints can give: those of a plane, about a point, or any."""
        known = [(k, f) for k, f in zip(self.kinds, self.frames, strict=True) if f is not None]
        turns = [frame for kind, frame in known if kind == "revolute"]
        slides = [frame for kind, frame in known if kind == "prismatic"]
        if not turns or len(turns) + len(slides) < len(known):
            return "spatial"
        axes = np.array([frame[:3, 2] for frame in turns])
        across = np.array([frame[:3, 2] @ axes[0] for frame in slides])
        if np.linalg.norm(np.cross(axes, axes[0]), axis=1).max() <= self.tolerance:
            flat = np.abs(across).max(initial=0.0) <= self.tolerance
            self.normal = axes[0]
            return "planar" if flat else "spatial"
        points = np.array([frame[:3, 3] for frame in turns])
        self.centre, off = nearest_point(points, axes)
        meet = off.max() <= self.tolerance * self.size
        return "spherical" if meet and not slides else "spatial"

    def carriers(self, chains: Sequence[Chain], space: Space) -> tuple[Carrier, ...]:
        """Carriers of all nodes, with frames in the middle of the points that chains hold."""
        ends: dict[str, list[Array]] = {GROUND.name: []}
        for chain in chains:
            one, two = frame_numbers((chain[0], chain[-1]), self.symbols, self.samples[0])
            for link, frame in ((chain[0].first, one[0]), (chain[-1].second, two[1])):
                ends.setdefault(link, []).append((self.state.poses[link] @ frame)[:3, 3])
        base = np.eye(4)
        if space == "planar":
            u, w = perpendiculars(self.normal)
            base[:3, :3] = np.column_stack([-u, -w, self.normal])
        base[:3, 3] = np.mean(ends[GROUND.name], axis=0) if ends[GROUND.name] else 0.0
        if space == "spherical":
            base[:3, 3] = self.centre
        self.base = base
        made = []
        for node in (node for node in ends if node != GROUND.name):
            kind: CarrierKind = "floating" if space == "spatial" else space  # type: ignore[assignment]
            if kind == "floating" and self._only_moves(node, chains):
                kind = "translational"
            at = base.copy()
            at[:3, 3] = np.mean(ends[node], axis=0)
            if kind == "planar":
                at[:3, 3] -= base[:3, 2] * (base[:3, 2] @ (at[:3, 3] - base[:3, 3]))
            if kind == "spherical":
                at[:3, 3] = self.centre
            made.append(Carrier(node, kind, base, np.linalg.inv(self.state.poses[node]) @ at))
        return tuple(made)

    def _only_moves(self, node: str, chains: Sequence[Chain]) -> bool:
        """Return whether chains from the ground let a node turn about different axes only."""
        directions = []
        for chain in chains:
            kinds = {joint.kind for joint in chain}
            if _ends(chain) != (GROUND.name, node) or "parallelogram" not in kinds:
                continue
            if not kinds <= {"revolute", "prismatic", "parallelogram"}:
                continue
            frames = frame_numbers(chain, self.symbols, self.samples[0])
            axes = [self._in_world(j, *f) for j, f in zip(chain, frames, strict=True)]
            turns = [
                frame[:3, 2]
                for joint, frame in zip(chain, axes, strict=True)
                if joint.kind == "revolute" and frame is not None
            ]
            if turns and np.linalg.norm(np.cross(turns, turns[0]), axis=1).max() <= self.tolerance:
                directions.append(turns[0])
        return any(np.linalg.norm(np.cross(n, directions[0])) > 0.02 for n in directions)

    def reduce(self, chain: Chain, carriers: Sequence[Carrier], space: Space) -> ReducedChain:
        """Eliminate a link of a chain.

        Raises:
            NotApplicable: if none of its links can be.
        """
        frames = {GROUND.name: self.base, **{c.node: c.frame for c in carriers}}
        inverses = {link: np.linalg.inv(frame) for link, frame in frames.items()}
        inner = {link: Pose(SX(T[:3, :3]), SX(T[:3, 3])) for link, T in inverses.items()}
        here = Pose.identity()
        moved = tuple(
            replace(
                joint,
                frame_1=inner.get(joint.first, here) @ joint.frame_1,
                frame_2=inner.get(joint.second, here) @ joint.frame_2,
            )
            for joint in chain
        )
        numbers = [frame_numbers(moved, self.symbols, sample) for sample in self.samples]
        geometry = ChainGeometry(moved, numbers, self.tolerance, self.size)
        made = reduce_chain(geometry, space)
        if made is None and space == "translational":
            made = reduce_chain(geometry, "spatial")
        if made is None:
            listed = ", ".join(f"{joint.name} ({joint.kind})" for joint in chain)
            raise NotApplicable(
                f"passive joints {listed} between '{chain[0].first}' and '{chain[-1].second}' "
                "cannot be reduced to equations of points and axes: parallel axes in space, or "
                "slides only.\n  Describe the joints with the freedoms that they have."
            )
        return made
