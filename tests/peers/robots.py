"""One URDF file in Axode and in Pinocchio, at the same state.

Pinocchio sorts the joints by name, writes quaternions last and behind positions, linear speeds
before angular ones, and angles without limits as cosine and sine; the root's joint is its own. Its
speeds are those of the joints that follow no other; ours are mapped onto them by `model.speeds`.
"""

import importlib.metadata
import os
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin

import axode as ax
from axode.mechanism.topology import tree_order

ROOTS = {"fixed": None, "floating": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar}
NAMES_OF_ROOT = ("base", "base_", "base__")


class NotReadByPinocchio(Exception):
    """A file that Pinocchio refuses."""


def read_by_pinocchio(path, base):
    """Pinocchio's model; joints that mimic others follow them, if it can express that."""
    root = () if ROOTS[base] is None else (ROOTS[base](),)
    try:
        return pin.buildModelFromUrdf(str(path), *root, mimic=True)
    except (ValueError, RuntimeError):
        pass
    try:
        return pin.buildModelFromUrdf(str(path), *root)
    except (ValueError, RuntimeError) as error:
        raise NotReadByPinocchio(str(error)) from None


def packaged_robots():
    """The folder of the robots of example-robot-data, or of ROBOTS, or None."""
    if os.environ.get("ROBOTS"):
        return Path(os.environ["ROBOTS"])
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [file for file in files if file.match("robots/panda_description/urdf/panda.urdf")]
    return Path(found[0].locate()).parents[2] if found else None


def their_name(joint):
    """What Pinocchio calls a joint: it names its root's joint itself, and allows any name."""
    if joint in NAMES_OF_ROOT:
        return "root_joint"
    return joint.removeprefix("_") if joint.startswith("_[") else joint


class Robot:
    """A robot in both libraries at one random state."""

    def __init__(self, path, base="fixed", seed=17, target="interpreter"):
        self.theirs = read_by_pinocchio(path, base)
        self.data = self.theirs.createData()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.bot = ax.load(path, base=base)
            self._prepare()
            self.model = self.bot.derive().compile(target)
        rng = np.random.default_rng(seed)
        self.q, self.their_q = self._configuration(rng)
        self.v, self.v_dot, self.u = rng.uniform(-1, 1, (3, self.theirs.nv))  # in their order
        self.T = self._map()
        self.nu, self.nu_dot = np.linalg.solve(self.T, np.array([self.v, self.v_dot]).T).T

    def _prepare(self):
        """A motor for each speed of Pinocchio, and no friction: its algorithms know none."""
        self.bot.dampers.clear()
        self.bot.drives.clear()
        known = set(self.theirs.names)
        followers = set()
        for j, joint in enumerate(self.theirs.joints):
            if j and joint.nv == 0:
                followers.add(self.theirs.names[j])
        self.bot.couplings[:] = [c for c in self.bot.couplings if c.name in followers]
        self.slots = {}  # our speeds and where Pinocchio keeps them
        for connection in self.bot.connections:
            name = their_name(connection.name)
            if not connection.speeds or connection.name in followers:
                continue
            if name not in known:
                raise AssertionError(f"{name} is no joint of Pinocchio's")
            joint = self.theirs.joints[self.theirs.getJointId(name)]
            own = np.arange(joint.idx_v, joint.idx_v + joint.nv)
            own = own[[3, 4, 5, 0, 1, 2]] if joint.nv == 6 else own
            for speed, place in zip(connection.speeds, own, strict=True):
                self.slots[speed] = int(place)
                self.bot.add_motor(speed, speed)
        assert len(self.slots) == self.theirs.nv

    def _configuration(self, rng):
        """Random coordinates of all joints; those of followers follow."""
        values, theirs = {}, pin.neutral(self.theirs)
        followers = {c.name for c in self.bot.couplings}
        for connection in self.bot.connections:
            if not connection.speeds or connection.name in followers:
                continue
            name = their_name(connection.name)
            joint = self.theirs.joints[self.theirs.getJointId(name)]
            x = rng.uniform(-1, 1, len(connection.coordinates))
            their_x = x
            if len(x) == 7:
                x[:4] /= np.linalg.norm(x[:4])
                their_x = x[[4, 5, 6, 1, 2, 3, 0]]
            elif joint.nq == len(x) + 1:
                their_x = [*x[:-1], np.cos(x[-1]), np.sin(x[-1])]
            theirs[joint.idx_q : joint.idx_q + joint.nq] = their_x
            values.update(zip(connection.coordinates, x, strict=True))
        waiting = list(self.bot.couplings)
        while waiting:
            coupling = waiting.pop(0)
            (follower, one), (leader, minus) = coupling.terms
            if leader not in values:
                waiting.append(coupling)
                continue
            values[follower] = (coupling.offset - minus * values[leader]) / one
        return np.array([values[name] for name in self.model.coordinates]), theirs

    def _map(self):
        """Pinocchio's speeds from our independent ones."""
        names = list(self.model.speed_names)
        rows = [names.index(speed) for speed, _ in sorted(self.slots.items(), key=lambda s: s[1])]
        units = np.eye(len(self.model.independent))
        return np.column_stack([self.model.joint_speeds(self.q, unit)[rows] for unit in units])

    def inputs(self, their_forces):
        """Motor inputs that are these forces on Pinocchio's speeds."""
        return [their_forces[self.slots[drive.coordinate]] for drive in self.bot.drives]

    def forces(self, inputs):
        """Forces on Pinocchio's speeds that these motor inputs are."""
        found = np.zeros(self.theirs.nv)
        for drive, value in zip(self.bot.drives, inputs, strict=True):
            found[self.slots[drive.coordinate]] = value
        return found

    # the quantities, ours and theirs -----------------------------------------------------------

    def mass_matrix(self):
        M = pin.crba(self.theirs, self.data, self.their_q)
        M = np.triu(M) + np.triu(M, 1).T  # it fills the upper triangle
        return self.model.mass_matrix(self.q), self.T.T @ M @ self.T

    def inverse_dynamics(self):
        theirs = pin.rnea(self.theirs, self.data, self.their_q, self.v, self.v_dot)
        return self.forces(self.model.inverse_dynamics(self.q, self.nu, self.nu_dot)), theirs

    def direct_dynamics(self):
        nu_dot = self.model.forward_dynamics(self.q, self.nu, self.inputs(self.u))
        if any(joint.nv == 0 for joint in list(self.theirs.joints)[1:]):  # aba knows no mimic
            M = pin.crba(self.theirs, self.data, self.their_q)
            M = np.triu(M) + np.triu(M, 1).T
            bias = pin.rnea(self.theirs, self.data, self.their_q, self.v, 0 * self.v)
            theirs = np.linalg.solve(M, self.u - bias)
        else:
            theirs = pin.aba(self.theirs, self.data, self.their_q, self.v, self.u)
        return self.T @ nu_dot, theirs

    def poses(self):
        pin.framesForwardKinematics(self.theirs, self.data, self.their_q)
        frames = [self.theirs.getFrameId(body, pin.FrameType.BODY) for body in self.model.bodies]
        found = self.model.poses(self.q)
        kept = [k for k, frame in enumerate(frames) if frame < len(self.theirs.frames)]
        wanted = np.array([self.data.oMf[frames[k]].homogeneous for k in kept])
        return found[kept], wanted

    def mass_centre(self):
        """Of all that is not fixed to the ground."""
        theirs = pin.centerOfMass(self.theirs, self.data, self.their_q)
        poses = dict(zip(self.model.bodies, self.model.poses(self.q), strict=True))
        still = {"ground"}
        for connection in tree_order(self.bot):
            if not connection.speeds and connection.parent in still:
                still.add(connection.child)
        total, moment = 0.0, np.zeros(3)
        for body in self.bot.bodies:
            if body.name not in still:
                total += body.mass
                moment += body.mass * (poses[body.name] @ [*body.com, 1.0])[:3]
        return (moment / total, theirs) if total else (np.ones(3), np.ones(3))  # there is none


QUANTITIES = ("poses", "mass_centre", "mass_matrix", "inverse_dynamics", "direct_dynamics")
