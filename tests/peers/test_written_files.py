"""Mechanisms written as URDF and MJCF against Pinocchio and MuJoCo, which read them."""

import warnings

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import axode as ax
from axode.mechanism.topology import tree_order
from kinematics_by_hand import numbers
from random_mechanisms import ALL_JOINTS, random_tree
from tests.peers.trees import relative_error
from tests.peers.written_states import SpeedMap, random_state
from variants import some

TOLERANCE = 1e-9
IN_MJCF = {"spherical", "free in the world"}
IN_URDF = {"planar", "floating"}
ARMS = ("seven_axis_arm", "five_axis_arm")
VEHICLES = ("caster_robot", "mobile_manipulator", "snakeboard", "ballbot", "rolling_disk")


def quiet(write, *arguments, **options):
    """Write without the warning about what is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ax.errors.OmissionWarning)
        return write(*arguments, **options)


def rounded_arm() -> ax.Mechanism:
    """Right angles written with five digits, and nearly parallel axes."""
    bot = ax.Mechanism("rounded")
    parent = bot.ground
    angles = [(1.5708, 0, 0), (0, 1.5708, 1e-7), (3.1416, 1.5707963, 0), (0, 0, 0.78540)]
    for k, rotation in enumerate(angles):
        body = bot.add_body(
            f"link {k}", mass=1.0 + k, com=(0.1, 1e-9, -0.2), inertia=(0.02, 0.03, 0.05)
        )
        bot.add_joint(
            f"joint <{k}> & more",
            ax.Revolute((1e-6, 0, 1)) if k % 2 else ax.Universal("y", (0, 1e-5, 1)),
            parent=parent,
            child=body,
            at=(0.3, 0, 0.1),
            rotation=rotation,
            child_rotation=(0, -1.5708, 0) if k == 2 else (0, 0, 0),
        )
        parent = body
    return bot


def trees() -> dict:
    """Builders of mechanisms without loops and wheels."""
    several = [("planar", "cylindrical", "screw"), ("floating", "universal", "spherical")]
    several += [(kind, "revolute", kind) for kind in ALL_JOINTS]
    found = {
        " ".join(kinds): lambda kinds=kinds, seed=seed: random_tree(
            np.random.default_rng(seed), 3, kinds
        )
        for seed, kinds in enumerate(several)
    }
    found |= {f"tree {s}": lambda s=s: random_tree(np.random.default_rng(s), 5) for s in (40, 41)}
    found |= {name: lambda name=name: ax.gallery.build(name) for name in ARMS}
    found |= {name: lambda name=name: lifted(name) for name in VEHICLES}
    return {"rounded": rounded_arm, **found}


def lifted(name: str) -> ax.Mechanism:
    """A vehicle of the gallery that does not touch the ground: a tree."""
    bot = ax.gallery.build(name)
    bot.contacts.clear()
    bot.measures.clear()
    return bot


TREES = trees()
SOME = some(TREES, *list(TREES)[3:])


def plain(bot: ax.Mechanism) -> None:
    """Remove what MJCF cannot say of the forces of a tree."""
    bot.dampers[:] = [d for d in bot.dampers if d.name != "drag"]


@pytest.mark.parametrize("name", SOME)
def test_mujoco_reads_the_inertia_and_forces_of_a_tree(name):
    bot = TREES[name]()
    plain(bot)
    theirs = mujoco.MjModel.from_xml_string(quiet(bot.to_mjcf).text)
    data = mujoco.MjData(theirs)
    model = bot.derive().compile("interpreter")
    rng = np.random.default_rng(4)
    for _ in range(2):
        q = random_state(bot, rng)
        v = rng.uniform(-2, 2, len(model.independent))
        maps = SpeedMap(bot, q, v, IN_MJCF)
        order = []
        for joint, x in maps.coordinates.items():
            entry = theirs.joint(joint)
            data.qpos[entry.qposadr[0] : entry.qposadr[0] + len(x)] = x
            order += range(entry.dofadr[0], entry.dofadr[0] + len(entry.damping))
        data.qvel[order] = maps.rates
        data.ctrl[:] = rng.uniform(-1, 1, theirs.nu)
        mujoco.mj_forward(theirs, data)
        M = np.zeros((theirs.nv, theirs.nv))
        mujoco.mj_fullM(theirs, data, M)
        M, N = M[np.ix_(order, order)], maps.N
        ours = np.concatenate([q[c.name] for c in tree_order(bot)])
        assert relative_error(model.mass_matrix(ours), N.T @ M @ N) < TOLERANCE
        wanted = N.T @ ((data.qfrc_bias - data.qfrc_passive)[order] + M @ maps.N_dot_v)
        found = model.bias(ours, v) - model.potential_force(ours)
        found = found - model.dissipative_force(ours, v)
        assert relative_error(found, wanted) < TOLERANCE
        given = {theirs.actuator(k).name: data.ctrl[k] for k in range(theirs.nu)}
        inputs = {drive.name: given.get(drive.name, 0.0) for drive in bot.drives}
        u = np.zeros(len(model.inputs))
        u[: len(inputs)] = list(inputs.values())
        assert given.keys() <= inputs.keys()
        if given:
            wanted = N.T @ data.qfrc_actuator[order]
            assert relative_error(model.input_force(ours, u), wanted) < TOLERANCE


@pytest.mark.parametrize("name", SOME)
def test_pinocchio_reads_the_inertia_and_bias_of_a_tree(name):
    bot = TREES[name]()
    for forces in (bot.drives, bot.dampers, bot.springs, bot.struts, bot.wrenches):
        forces.clear()
    theirs = pin.buildModelFromXML(quiet(bot.to_urdf).text)
    theirs.gravity.linear = numbers(bot.gravity)
    data = theirs.createData()
    model = bot.derive().compile("interpreter")
    rng = np.random.default_rng(4)
    q = random_state(bot, rng)
    v = rng.uniform(-2, 2, len(model.independent))
    maps = SpeedMap(bot, q, v, IN_URDF)
    theirs_q, order = pin.neutral(theirs), []
    for joint, x in maps.coordinates.items():
        entry = theirs.joints[theirs.getJointId(joint)]
        own = list(range(entry.idx_v, entry.idx_v + entry.nv))
        if len(x) == 7:
            x, own = x[[4, 5, 6, 1, 2, 3, 0]], own[3:] + own[:3]
        elif entry.nq == len(x) + 1:
            x = np.array([*x[:-1], np.cos(x[-1]), np.sin(x[-1])])
        theirs_q[entry.idx_q : entry.idx_q + entry.nq] = x
        order += own
    rates = np.zeros(theirs.nv)
    rates[order] = maps.rates
    M = pin.crba(theirs, data, theirs_q)
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(order, order)]
    ours = np.concatenate([q[c.name] for c in tree_order(bot)])
    assert relative_error(model.mass_matrix(ours), maps.N.T @ M @ maps.N) < TOLERANCE
    bias = pin.nonLinearEffects(theirs, data, theirs_q, rates)[order]
    wanted = maps.N.T @ (bias + M @ maps.N_dot_v)
    found = model.bias(ours, v) - model.potential_force(ours)
    assert relative_error(found, wanted) < TOLERANCE
