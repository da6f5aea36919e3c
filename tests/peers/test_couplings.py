"""Joints that mimic others against Pinocchio, and joints held together by MuJoCo."""

import re

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import axode as ax
from tests.mechanism.random_urdf import numbers, random_joint, random_link
from tests.peers.trees import relative_error

TOLERANCE = 1e-9  # rounding leaves about 1e-13, and any wrong term more than 1e-3
SOFT = 2e-3  # MuJoCo's equality gives way by one minus its impedance, 1e-4, times a condition


def random_mimics(seed):
    """A branching robot some of whose joints mimic others, as URDF, and the relations."""
    rng = np.random.default_rng(seed)
    names = [f"link{k}" for k in range(9)]
    parts, relations = [random_link(rng, names[0])], {}
    for k in range(1, len(names)):
        parent = names[rng.integers(max(0, k - 3), k)]
        kind = str(rng.choice(("revolute", "prismatic")))
        joint = random_joint(rng, f"joint{k}", kind, parent, names[k])
        if k > 2 and rng.random() < 0.4:
            leads = [n for n in range(1, k) if f"joint{n}" not in relations]
            leader = f"joint{rng.choice(leads)}"
            relations[f"joint{k}"] = (leader, *rng.uniform(-2, 2, 2))
            m, o = (numbers([x]) for x in relations[f"joint{k}"][1:])
            tag = f'<mimic joint="{leader}" multiplier="{m}" offset="{o}"/></joint>'
            joint = joint.replace("</joint>", tag)
        parts += [random_link(rng, names[k]), joint]
    text = "\n".join(parts)
    return f'<?xml version="1.0"?>\n<robot name="robot">{text}</robot>', relations


def load_without_mimics(text, path):
    """The robot with its joints free."""
    path.write_text(re.sub(r"<mimic [^>]*/>", "", text))
    return ax.load(path)


def inertia_by_rnea(theirs, data, q):
    """Column by column; `crba` of 4.1.0 differs from it where a mimicking link branches."""
    zero = np.zeros(theirs.nv)
    bias = pin.rnea(theirs, data, q, zero, zero)
    return np.column_stack([pin.rnea(theirs, data, q, zero, e) - bias for e in np.eye(theirs.nv)])


def test_a_chain_of_mimics_has_the_inertia_of_crba(tmp_path):
    """Seed 1 has no branch beyond a mimicking link: both ways of Pinocchio agree there."""
    text, _ = random_mimics(1)
    theirs = pin.buildModelFromXML(text, mimic=True)
    data, q = theirs.createData(), np.linspace(-1, 1, theirs.nq)
    upper = np.triu(pin.crba(theirs, data, q))
    assert relative_error(upper, np.triu(inertia_by_rnea(theirs, data, q))) < TOLERANCE


# Pinocchio takes only mimics of joints that come earlier in its walk through the tree.
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 7, 8, 9])
def test_mimics_agree_with_pinocchio(seed, tmp_path):
    text, relations = random_mimics(seed)
    assert relations
    theirs = pin.buildModelFromXML(text, mimic=True)
    data = theirs.createData()
    bot = load_without_mimics(text, tmp_path / "robot.urdf")
    for joint, (leader, multiplier, offset) in relations.items():
        bot.add_mimic(joint, joint, leader, multiplier=multiplier, offset=offset)
    free = [c.name for c in bot.connections if c.joint.dof and c.name not in relations]
    bot.drives[:] = [d for d in bot.drives if d.coordinate in free]
    model = bot.derive(independent=free).compile("interpreter")
    rng = np.random.default_rng(100 + seed)
    leading = dict(zip(free, rng.uniform(-1, 1, len(free)), strict=True))
    every = leading | {j: m * leading[lead] + o for j, (lead, m, o) in relations.items()}
    q = np.array([every[name] for name in model.coordinates])
    order = [theirs.joints[theirs.getJointId(name)].idx_v for name in free]
    their_q = np.zeros(theirs.nq)
    their_q[order] = [leading[name] for name in free]
    nu, nu_dot = rng.uniform(-2, 2, (2, len(free)))
    v, v_dot = np.zeros(theirs.nv), np.zeros(theirs.nv)
    v[order], v_dot[order] = nu, nu_dot
    assert np.abs(model.residual(q)).max() < 1e-14
    tau = pin.rnea(theirs, data, their_q, v, v_dot)[order]
    assert relative_error(model.inverse_dynamics(q, nu, nu_dot), tau) < TOLERANCE
    M = inertia_by_rnea(theirs, data, their_q)[np.ix_(order, order)]
    assert relative_error(model.mass_matrix(q), M) < TOLERANCE
    assert relative_error(model.forward_dynamics(q, nu, tau), nu_dot) < TOLERANCE


ARM = """
<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"><flag contact="disable"/></option>
<worldbody><body><joint name="a" axis="0 1 0"/>
  <inertial pos=".3 .01 .02" mass="2" diaginertia=".03 .04 .05"/>
  <body pos=".6 0 0"><joint name="b" axis="0 1 0"/>
    <inertial pos=".2 .02 0" mass="1" diaginertia=".01 .02 .03"/>
    <body pos=".4 0 0"><joint name="c" axis="1 0 0" type="slide"/>
      <inertial pos=".1 0 .02" mass=".5" diaginertia=".01 .01 .01"/>
    </body></body></body></worldbody>
<equality>
  <joint joint1="b" joint2="a" polycoef=".2 -.7 0 0 0" solimp=".9999 .9999 1" solref=".002 1"/>
  <joint joint1="c" joint2="a" polycoef=".05 .1 0 0 0" solimp=".9999 .9999 1" solref=".002 1"/>
</equality></mujoco>"""


def test_joints_that_mujoco_holds_together_accelerate_alike():
    theirs = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(theirs)
    m = ax.Mechanism("arm")
    parts = {
        "a": (ax.Revolute("y"), (0, 0, 0), 2.0, (0.3, 0.01, 0.02), (0.03, 0.04, 0.05)),
        "b": (ax.Revolute("y"), (0.6, 0, 0), 1.0, (0.2, 0.02, 0), (0.01, 0.02, 0.03)),
        "c": (ax.Prismatic("x"), (0.4, 0, 0), 0.5, (0.1, 0, 0.02), (0.01, 0.01, 0.01)),
    }
    parent = "ground"
    for name, (joint, at, mass, com, inertia) in parts.items():
        m.add_body(name, mass=mass, com=com, inertia=inertia)
        m.add_joint(name, joint, parent=parent, child=name, at=at)
        parent = name
    m.add_mimic("b", "b", "a", multiplier=-0.7, offset=0.2)
    m.add_rack("c", "a", "c", 0.1, offset=0.05)
    model = m.derive(independent=["a.rate"]).compile("interpreter")
    for angle, rate in ((0.4, 0.0), (-0.3, 1.5)):
        q = [angle, 0.2 - 0.7 * angle, 0.05 + 0.1 * angle]
        data.qpos[:], data.qvel[:] = q, np.array([1.0, -0.7, 0.1]) * rate
        mujoco.mj_forward(theirs, data)
        ours = model.accelerations(q, [rate], model.forward_dynamics(q, [rate], []))
        assert relative_error(ours, data.qacc) < SOFT


def test_polynomials_of_joints_are_read_and_accelerate_alike(tmp_path):
    """b follows a by a parabola from where both begin; MuJoCo leaves out what bends at speed."""
    text = ARM.replace(".2 -.7 0 0 0", ".2 -.7 .3 0 .1").replace(".05 .1 0 0 0", "0 0 .4 0 0")
    text = text.replace('name="a" axis', 'name="a" ref="0.1" axis')
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    (tmp_path / "arm.xml").write_text(text)
    model = ax.load(tmp_path / "arm.xml").derive(independent=["a.rate"]).compile("interpreter")
    for angle in (0.5, -0.3):
        q = ax.assemble(model, {"a": angle}).q
        x = angle - 0.1
        assert q == pytest.approx([angle, 0.2 - 0.7 * x + 0.3 * x**2 + 0.1 * x**4, 0.4 * x**2])
        data.qpos[:], data.qvel[:] = q, 0.0
        mujoco.mj_forward(theirs, data)
        ours = model.accelerations(q, [0.0], model.forward_dynamics(q, [0.0], []))
        assert relative_error(ours, data.qacc) < SOFT
