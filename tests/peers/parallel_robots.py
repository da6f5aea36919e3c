"""Gepetto's example-parallel-robots: closed loops as in Pinocchio's constraint dynamics.

The robots are trees in URDF files; a YAML file beside each lists which frames coincide, which
joints are others than the tree says, and the motors. Here this becomes a TOML file that extends
the URDF file. `AXODE_PARALLEL_ROBOTS=FOLDER python -m tests.peers.parallel_robots --out FILE`
compares a checkout and writes what came of each robot; the tests do the same.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio as pin
import tomli_w

import axode as ax
from axode.errors import LoopNotClosed

FOLDER = Path(os.environ.get("AXODE_PARALLEL_ROBOTS", "") or "nowhere")
ROBOTS = sorted(path.parent for path in FOLDER.glob("**/robot.yaml"))
# No configuration closes the loops of these: by least squares, 80 and 37 mm or mrad stay open.
OPEN = {"kangaroo_like": "loop6", "kangaroo_like_2legs": "loop"}
TOLERANCE = 1e-9
AXES = {"X": pin.JointModelRX, "Y": pin.JointModelRY, "Z": pin.JointModelRZ}
ROOT = "root_joint"  # what Pinocchio calls the joint of a floating base


def additions(urdf: Path, notes: dict[str, list], base: str) -> str:
    """The TOML file that extends a URDF file by what the notes say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ax.load(urdf)
    kinds = dict(zip(notes.get("joint_name", []), notes.get("joint_type", []), strict=True))
    changed = [connection for connection in tree.connections if connection.name in kinds]
    groups = {"damper": tree.dampers, "motor": tree.drives, "coupling": tree.couplings}
    removed = [f"{table}.*" for table, parts in groups.items() if parts]
    removed += [f"joint.{connection.name}" for connection in changed]
    joints = {}
    for connection in changed:
        kind = kinds[connection.name]
        axes = {"axis": kind[-2].lower(), "second": kind[-1].lower()} if "UJOINT" in kind else {}
        joints[connection.name] = {
            "type": "universal" if axes else kind.lower(),
            "parent": connection.parent,
            "child": connection.child,
            "at": [float(x) for x in connection.at],
            "rotation": np.asarray(connection.rotation, float).tolist(),
            **axes,
        }
    holding = {connection.name: connection.child for connection in tree.connections}
    loops = {}
    for number, (pair, kind) in enumerate(zip(notes["closed_loop"], notes["type"], strict=True)):
        parent, child = (holding.get(name, name) for name in pair)
        joint = "fixed" if kind.lower() == "6d" else "spherical"
        loops[f"loop{number}"] = {"type": joint, "parent": parent, "child": child}
    extends = {"file": urdf.name, "base": base, "wheels": [], "remove": removed}
    motors = {name: {"joint": name} for name in notes["name_mot"]}
    return tomli_w.dumps({"extends": extends, "joint": joints, "loop": loops, "motor": motors})


class ParallelRobot:
    """A robot in both libraries."""

    def __init__(self, urdf: Path, notes: dict[str, list], base: str = "fixed") -> None:
        self.urdf, self.base = urdf, base
        names = notes.get("joint_name", []), notes.get("joint_type", [])
        self.kinds = dict(zip(*names, strict=True))
        self.loops = list(zip(notes["closed_loop"], notes["type"], strict=True))
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shutil.copy(urdf, folder)
            path = Path(folder, "additions.toml")
            path.write_text(additions(urdf, notes, base))
            self.mechanism = ax.load(path)
        self.peer, self.constraints = self._theirs()

    def _theirs(self) -> tuple[pin.Model, list]:
        root = [pin.JointModelFreeFlyer()] if self.base == "floating" else []
        tree, model = pin.buildModelFromUrdf(str(self.urdf), *root), pin.Model()
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
            if isinstance(connection.joint, ax.Floating):
                names = [ROOT]
            if isinstance(connection.joint, ax.Universal):
                names.insert(0, f"{connection.name} first")
            joints = [self.peer.joints[self.peer.getJointId(name)] for name in names]
            own = [joint.idx_q + k for joint in joints for k in range(joint.nq)]
            rates = [joint.idx_v + k for joint in joints for k in range(joint.nv)]
            if isinstance(connection.joint, ax.Spherical):
                own = [own[3], *own[:3]]
            if isinstance(connection.joint, ax.Floating):
                own = [own[6], *own[3:6], *own[:3]]
                rates = [*rates[3:], *rates[:3]]
            q.update(zip(connection.coordinates, own, strict=True))
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


def compare(robot: ParallelRobot) -> dict[str, float]:
    """Compare accelerations at two states with Pinocchio's.

    Returns:
        How many speeds are free, how many rows are redundant, and the largest differences: of the
        accelerations, and of the forces that the loops would have to carry and cannot, which
        needs no solver.

    Raises:
        AssertionError: if they differ.
        LoopNotClosed: if the loops cannot be closed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = robot.mechanism.derive().compile("interpreter")
        rng = np.random.default_rng(3)
        states = [model.home, beside_home(model, rng)]
    of_q, of_v = robot.places(model)
    found = {"free": len(model.independent), "redundant": 0, "accelerations": 0.0, "forces": 0.0}
    for q in states:
        nu, u = (rng.uniform(-1, 1, len(names)) for names in (model.independent, model.inputs))
        ours = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))
        their_q, their_v, force, a = np.zeros(robot.peer.nq), *np.zeros((3, robot.peer.nv))
        their_q[of_q], their_v[of_v] = q, model.joint_speeds(q, nu)
        for drive, value in zip(robot.mechanism.drives, u, strict=True):
            force[of_v[model.speed_names.index(f"{drive.coordinate}.rate")]] = value
        theirs, J, M, bias = pinocchio_accelerations(robot, their_q, their_v, force)
        s = np.linalg.svd(J, compute_uv=False)
        rank = int((s > 1e-9 * s[0]).sum())
        assert len(model.independent) == robot.peer.nv - rank
        assert np.abs(J @ their_v).max() < TOLERANCE  # the same loops are closed
        a[of_v] = ours
        unbalanced = M @ a + bias - force  # is what the loops carry
        carried = J.T @ np.linalg.lstsq(J.T, unbalanced, rcond=1e-11)[0]
        forces = float(np.abs(unbalanced - carried).max() / np.abs(unbalanced).max())
        # rods that spin about themselves with inertias of 1e-11 kg m^2 count by their energy
        difference = a - theirs
        energy = float(np.sqrt((difference @ M @ difference) / (theirs @ M @ theirs)))
        assert forces < TOLERANCE and energy < TOLERANCE
        found["redundant"] = len(J) - rank
        found["accelerations"] = max(found["accelerations"], energy)
        found["forces"] = max(found["forces"], forces)
    return found


def read(folder: Path, base: str) -> ParallelRobot:
    """Read the robot in a folder of the collection."""
    import yaml

    (urdf,) = folder.glob("*.urdf")
    return ParallelRobot(urdf, yaml.safe_load((folder / "robot.yaml").read_text()), base)


def main() -> None:
    """Compare all robots, their base fixed and floating; write what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, dict[str, dict]] = {}
    for folder in ROBOTS:
        name = folder.relative_to(FOLDER).as_posix()
        found[name] = {}
        for base in ("fixed", "floating"):
            try:
                outcome = {"outcome": "agrees", **compare(read(folder, base))}
            except LoopNotClosed as error:
                outcome = {"outcome": "cannot be closed", "message": str(error).splitlines()[0]}
            except Exception as error:
                outcome = {"outcome": "fault", "message": f"{type(error).__name__}: {error}"}
            found[name][base] = outcome
            print(name, base, outcome, flush=True)
    counts = Counter(one["outcome"] for both in found.values() for one in both.values())
    print(dict(counts))
    if given.out:
        text = json.dumps({"counts": dict(counts), "robots": found}, indent=1)
        given.out.write_text(text + "\n")
    sys.exit(1 if counts["fault"] or not ROBOTS else 0)


if __name__ == "__main__":
    main()
