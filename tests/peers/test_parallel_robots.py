"""Closed loops against Pinocchio's constraints: own linkages, and Gepetto's parallel robots.

Set AXODE_PARALLEL_ROBOTS to a checkout of example-parallel-robots for the latter.
The robots are trees in URDF files; a YAML file beside each lists which frames coincide.
"""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import axode as ax
from axode.errors import LoopNotClosed
from tests.mechanism.test_urdf_loops import INERTIAL, TREE

FOLDER = Path(os.environ.get("AXODE_PARALLEL_ROBOTS", "") or "nowhere")
ROBOTS = sorted(path.parent for path in FOLDER.glob("**/robot.yaml"))
# No configuration closes the loops of these: by least squares, 80 and 37 mm or mrad stay open.
OPEN = {"kangaroo_like": "loop6", "kangaroo_like_2legs": "loop"}
TOLERANCE = 1e-9
AXES = {"X": pin.JointModelRX, "Y": pin.JointModelRY, "Z": pin.JointModelRZ}


class ParallelRobot:
    """A robot in both libraries."""

    def __init__(self, urdf: Path, notes: dict[str, list]) -> None:
        self.urdf, self.notes = urdf, notes
        names = self.notes.get("joint_name", []), self.notes.get("joint_type", [])
        self.kinds = dict(zip(*names, strict=True))
        self.loops = list(zip(self.notes["closed_loop"], self.notes["type"], strict=True))
        self.mechanism = self._ours()
        self.peer, self.constraints = self._theirs()

    def _ours(self) -> ax.Mechanism:
        """The tree with other joints where the notes say so, its loops and its motors."""
        robot = ax.load(self.urdf)
        for group in (robot.dampers, robot.drives, robot.couplings):  # the notes know none
            group.clear()
        for number, connection in enumerate(robot.connections):
            kind = self.kinds.get(connection.name)
            if kind is not None:
                simple = {"SPHERICAL": ax.Spherical(), "FIXED": ax.Fixed()}
                joint = simple.get(kind) or ax.Universal(*kind[-2:].lower())
                robot.connections[number] = replace(connection, joint=joint)
        holding = {connection.name: connection.child for connection in robot.connections}
        for number, (pair, kind) in enumerate(self.loops):
            parent, child = (holding.get(name, name) for name in pair)
            joint = ax.Fixed() if kind.lower() == "6d" else ax.Spherical()
            robot.add_loop(f"loop{number}", joint, parent=parent, child=child)
        for name in self.notes["name_mot"]:
            robot.add_motor(name, name)
        return robot

    def _theirs(self) -> tuple[pin.Model, list]:
        tree, model = pin.buildModelFromUrdf(str(self.urdf)), pin.Model()
        model.gravity = tree.gravity
        last, fixed = {0: 0}, []
        for number in range(1, tree.njoints):
            name, joint = tree.names[number], tree.joints[number]
            parent, place = last[tree.parents[number]], tree.jointPlacements[number]
            kind = self.kinds.get(name)
            if kind == "SPHERICAL":
                joint = pin.JointModelSpherical()
            elif kind == "FIXED":
                fixed.append(name)
            elif kind:
                parent = model.addJoint(parent, AXES[kind[-2]](), place, f"{name} first")
                place, joint = pin.SE3.Identity(), AXES[kind[-1]]()
            last[number] = model.addJoint(parent, joint, place, name)
            model.appendBodyToJoint(last[number], tree.inertias[number], pin.SE3.Identity())
        for frame in tree.frames[1:]:
            joint = last[frame.parentJoint]
            model.addFrame(pin.Frame(frame.name, joint, frame.placement, frame.type), False)
        if fixed:
            held = [model.getJointId(name) for name in fixed]
            model = pin.buildReducedModel(model, held, pin.neutral(model))
        return model, [self._constraint(model, *loop) for loop in self.loops]

    @staticmethod
    def _constraint(model: pin.Model, pair: list[str], kind: str) -> pin.RigidConstraintModel:
        ends = [model.frames[model.getFrameId(name)] for name in pair]
        places = [part for frame in ends for part in (frame.parentJoint, frame.placement)]
        contact = pin.ContactType.CONTACT_6D if kind.lower() == "6d" else pin.ContactType.CONTACT_3D
        return pin.RigidConstraintModel(contact, model, *places, pin.ReferenceFrame.LOCAL)

    def places(self, model: ax.Model) -> tuple[np.ndarray, np.ndarray]:
        """Where Pinocchio keeps our coordinates and our speeds."""
        q: dict[str, int] = {}
        v: dict[str, int] = {}
        for connection in self.mechanism.connections:
            if not connection.joint.dof:
                continue
            names = [connection.name]
            if isinstance(connection.joint, ax.Universal):
                names.insert(0, f"{connection.name} first")
            joints = [self.peer.joints[self.peer.getJointId(name)] for name in names]
            own = [joint.idx_q + k for joint in joints for k in range(joint.nq)]
            if isinstance(connection.joint, ax.Spherical):
                own = [own[3], *own[:3]]
            q.update(zip(connection.coordinates, own, strict=True))
            rates = [joint.idx_v + k for joint in joints for k in range(joint.nv)]
            v.update(zip(connection.speeds, rates, strict=True))
        return (
            np.array([q[name] for name in model.coordinates]),
            np.array([v[name] for name in model.speed_names]),
        )


def beside_home(model: ax.Model, rng: np.random.Generator) -> np.ndarray:
    """Find a closed configuration near home."""
    home = dict(zip(model.coordinates, model.home, strict=True))
    free = [speed.removesuffix(".rate") for speed in model.independent]
    change = {name: rng.uniform(-0.2, 0.2) for name in free if name in home}
    for _ in range(6):
        try:
            near = {name: home[name] + value for name, value in change.items()}
            return np.asarray(ax.assemble(model, near).q)
        except LoopNotClosed:
            change = {name: value / 2 for name, value in change.items()}
    raise AssertionError("no configuration beside home closes")


def pinocchio_accelerations(robot, q, v, force):
    """Accelerations by Pinocchio, its constraints' Jacobian, mass matrix and bias.

    With redundant rows its solver iterates; where it starts from makes no difference then.
    """
    peer, data = robot.peer, robot.peer.createData()
    loops = [constraint.createData() for constraint in robot.constraints]
    pin.initConstraintDynamics(peer, data, robot.constraints, loops)
    settings = pin.ProximalSettings(1e-15, 1e-6, 100)
    found = pin.constraintDynamics(peer, data, q, v, force, robot.constraints, loops, settings)
    found = found.copy()
    J = pin.getConstraintsJacobian(peer, data, robot.constraints, loops)
    M = pin.crba(peer, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    return found, J, M, pin.nle(peer, data, q, v)


def compare(robot: ParallelRobot) -> int:
    """Compare accelerations at two states; return how many speeds are free."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = robot.mechanism.derive().compile("interpreter")
        rng = np.random.default_rng(3)
        states = [model.home, beside_home(model, rng)]
    of_q, of_v = robot.places(model)
    for q in states:
        nu, u = (rng.uniform(-1, 1, len(names)) for names in (model.independent, model.inputs))
        ours = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))
        their_q, their_v, force, a = np.zeros(robot.peer.nq), *np.zeros((3, robot.peer.nv))
        their_q[of_q], their_v[of_v] = q, model.joint_speeds(q, nu)
        for drive, value in zip(robot.mechanism.drives, u, strict=True):
            force[of_v[model.speed_names.index(f"{drive.coordinate}.rate")]] = value
        theirs, J, M, bias = pinocchio_accelerations(robot, their_q, their_v, force)
        s = np.linalg.svd(J, compute_uv=False)
        assert len(model.independent) == robot.peer.nv - int((s > 1e-9 * s[0]).sum())
        assert np.abs(J @ their_v).max() < TOLERANCE  # the same loops are closed
        a[of_v] = ours
        unbalanced = M @ a + bias - force  # is what the loops carry
        carried = J.T @ np.linalg.lstsq(J.T, unbalanced, rcond=1e-11)[0]
        assert np.abs(unbalanced - carried).max() < TOLERANCE * np.abs(unbalanced).max()
        # rods that spin about themselves with inertias of 1e-11 kg m^2 count by their energy
        difference = a - theirs
        assert difference @ M @ difference < TOLERANCE**2 * (theirs @ M @ theirs)
    return len(model.independent)


@pytest.mark.skipif(not ROBOTS, reason="AXODE_PARALLEL_ROBOTS names no folder of robots")
@pytest.mark.parametrize("folder", ROBOTS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_parallel_robot_accelerates_as_in_pinocchio(folder):
    yaml = pytest.importorskip("yaml")
    (urdf,) = folder.glob("*.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = ParallelRobot(urdf, yaml.safe_load((folder / "robot.yaml").read_text()))
    if folder.name in OPEN:
        with pytest.raises(LoopNotClosed, match=OPEN[folder.name]):
            robot.mechanism.derive()
    else:
        compare(robot)


# own robots --------------------------------------------------------------------------------------

END = (
    '<link name="{0}"/><joint name="{0} weld" type="fixed"><parent link="{1}"/><child link="{0}"/>'
)
PIN = f"""<link name="knuckle">{INERTIAL}</link>
  <joint name="c" type="continuous"><parent link="coupler"/>
  <child link="knuckle"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/></joint>"""
AT_KNUCKLE = PIN + END.format("A", "knuckle") + "</joint>"
AT_COUPLER = END.format("A", "coupler") + '<origin xyz="1 0 0"/></joint>'
AT_RIGHT = END.format("B", "right") + '<origin xyz="1 0 0" rpy="0 1.57079632679489662 0"/></joint>'
OWN = {
    "planar loop of rigid frames": (AT_KNUCKLE, "6d", {}, 1),  # three of six rows are redundant
    "planar loop of points": (AT_COUPLER, "3d", {}, 1),
    "universal joint in the loop": (AT_KNUCKLE, "6d", {"c": "UJOINT_YX"}, 1),
}


@pytest.mark.parametrize(("end", "kind", "joints", "free"), OWN.values(), ids=list(OWN))
def test_a_linkage_accelerates_as_in_pinocchio(end, kind, joints, free, tmp_path):
    path = tmp_path / "robot.urdf"
    text = TREE.replace("CLOSURE", end + AT_RIGHT).replace("iyy=", 'ixy="0" ixz="0" iyz="0" iyy=')
    limits = '<limit effort="5" velocity="1" lower="-3" upper="3"/>'  # Pinocchio needs both
    path.write_text(text.replace('"continuous">', f'"revolute">{limits}'))
    notes = {"joint_name": list(joints), "joint_type": list(joints.values()), "name_mot": ["a"]}
    robot = ParallelRobot(path, {**notes, "closed_loop": [["A", "B"]], "type": [kind]})
    assert compare(robot) == free
