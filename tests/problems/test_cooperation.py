"""Arms that hold one load: grasp wrenches, shares, internal forces, prescribed squeeze."""

import json
import warnings
from functools import cache
from importlib.resources import files

import numpy as np
import pytest

import axode as ax
from axode.cooperation.cooperation import cut, find_grasps, grasp_matrix
from problems.holding_arms import holding_arms
from variants import further, some

CASES = {
    c["id"]: c
    for c in json.loads(
        (files("axode") / "literature" / "acceptance" / "cases_open.json").read_text()
    )
}


@pytest.fixture(scope="module")
def planar():
    return ax.gallery.build("cooperating_arms").derive().compile()


@cache
def holding(**options):
    """A model of `holding_arms`; the laws themselves are checked elsewhere."""
    return holding_arms(**options).derive(self_check=False).compile("interpreter")


def moving_state(model, seed=3):
    """A state near home in motion, and inputs."""
    rng = np.random.default_rng(seed)
    nu = rng.normal(size=len(model.independent)) * 0.3
    return model.home, nu, rng.normal(size=len(model.inputs)) * 3


def load_needs(model, q, nu, nu_dot, load="load"):
    """Newton's and Euler's laws of the load: the wrench about its mass centre that it takes."""
    k = model.bodies.index(load)
    mechanism = model.equations.system.mechanism
    body = next(b for b in mechanism.bodies if b.name == load)
    h = 1e-5
    steps = []
    for sign in (1, -1):
        moved = q + sign * h * model.rates(q, nu) + h**2 / 2 * second_rates(model, q, nu, nu_dot)
        steps.append(model.twists(moved, nu + sign * h * nu_dot)[k])
    change = (steps[0] - steps[1]) / (2 * h)
    R = model.poses(q)[k, :3, :3]
    e = body.inertia
    I = R @ np.array([[e.xx, e.xy, e.xz], [e.xy, e.yy, e.yz], [e.xz, e.yz, e.zz]], float) @ R.T
    w = model.twists(q, nu)[k, :3]
    gravity = np.array(mechanism.gravity, float)
    moment = I @ change[:3] + np.cross(w, I @ w)
    return np.concatenate([moment, float(body.mass) * (change[3:] - gravity)])


def second_rates(model, q, nu, nu_dot):
    """Second rates of the coordinates, by differences."""
    h = 1e-6
    ahead = model.rates(q + h * model.rates(q, nu), nu + h * nu_dot)
    return (ahead - model.rates(q, nu)) / h


def test_wrenches_are_those_of_the_source():
    """The forces on the load of the acceptance case, which were found by other means."""
    case = CASES["D2-1"]
    p, e = case["parameters"], case["expected"]
    pose, lc = case["state"]["load_X_Y_F"], p.get("lc", 0.15)
    values = {name: p[name] for name in ("L1", "L2", "L3", "m1", "m2", "m3", "base", "mc", "Jc")}
    bot = ax.gallery.build("cooperating_arms", pose=pose, **values, lc=lc, g=p["g"])
    model = bot.derive().compile("interpreter")
    arms = ax.Cooperation(model, "load")
    start = {f"theta{a}{k}": e["theta"][3 * a + k - 4] for a in (1, 2) for k in (1, 2, 3)}
    start |= dict(zip(("X", "Y", "F"), pose, strict=True))
    start |= {f"theta{a}{k}_dot": e["theta_dot"][3 * a + k - 4] for a in (1, 2) for k in (1,)}
    start |= {"theta12_dot": e["theta_dot"][1]}
    found = arms.wrenches(start, case["input"]["tau"])
    wanted = np.reshape(e["tip_forces_on_load"], (2, 3))
    assert np.abs(found.on_load[:, [2, 3, 4]] - wanted).max() < 1e-6 * np.abs(wanted).max()
    assert np.abs(found.on_load[:, [0, 1, 5]]).max() < 1e-9


VARIANTS = {
    "two": {},
    "three": {"count": 3},
    "joint of the tree": {"tree": True},
    "on a cart": {"base": "cart"},
    "balls": {"count": 3, "grasp": ax.Spherical(), "tree": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", some(VARIANTS, "three", "two", "joint of the tree"))
def test_resultant_is_inertia_and_weight(name):
    model = holding(**VARIANTS[name])
    arms = ax.Cooperation(model, "load")
    q, nu, u = moving_state(model)
    found = arms.wrenches((q, nu), u)
    need = load_needs(model, q, nu, model.forward_dynamics(q, nu, u))
    assert np.abs(found.resultant - need).max() < 1e-5 * np.abs(need).max()
    # internal wrenches balance each other, whatever the load does
    G = arms.grasp_matrix((q, nu))
    size = np.abs(found.on_load).max()
    assert np.abs(G @ found.internal.ravel()).max() < 1e-9 * size
    assert np.abs(G @ found.on_load.ravel() - found.resultant).max() < 1e-9 * size
    assert np.abs(found.internal + found.motion_inducing - found.on_load).max() < 1e-9 * size
    assert abs(found.shares.sum() - 1) < 1e-9
    if name == "balls":  # no moments through balls
        assert np.abs(found.on_load[:, :3]).max() < 1e-9 * size
        assert np.abs(found.motion_inducing[:, :3]).max() < 1e-9 * size
        assert arms.internal_dimension == 3
    else:
        assert arms.internal_dimension == 6 * (len(arms.grasps) - 1)


@pytest.mark.soak
def test_cut_joints_of_the_tree_and_loops_give_the_same():
    results = []
    for tree in (True, False):
        model = holding(tree=True) if tree else holding()
        joints = [f"joint{a}{k}" for a in (1, 2) for k in range(1, 7)]
        state = {name: model.home[model.coordinates.index(name)] for name in joints}
        start = {"joint11.rate": 0.3, "joint12.rate": -0.2, "joint13.rate": 0.1}
        start |= {"joint14.rate": 0.2, "joint15.rate": 0.4, "joint16.rate": -0.5}
        u = np.arange(12.0) - 4
        results.append(ax.Cooperation(model, "load").wrenches({**state, **start}, u))
    a, b = results
    assert np.abs(a.on_load - b.on_load).max() < 1e-7 * np.abs(a.on_load).max()


@pytest.mark.soak
def test_the_split_does_not_depend_on_the_load_s_frame():
    splits = []
    for model in (holding(), holding(shift=(0.4, -0.3, 0.2))):
        arms = ax.Cooperation(model, "load", shares={"grip1": 3.0, "grip2": 1.0})
        splits.append(arms.wrenches(None, np.arange(12.0)))
    a, b = splits
    assert np.abs(a.internal - b.internal).max() < 1e-8 * np.abs(a.internal).max()
    assert np.abs(a.shares - b.shares).max() < 1e-8


def test_torques_for_shares_alone(planar):
    arms = ax.Cooperation(planar, "load", shares=(0.3, 0.7))
    u = arms.torques()
    found = arms.wrenches(None, u)
    assert np.abs(planar.forward_dynamics(planar.home, None, u)).max() < 1e-10
    assert np.abs(found.internal).max() < 1e-10
    assert np.allclose(found.shares, (0.3, 0.7))
    assert np.allclose(found["grip1"][3:], (0, 0.3 * 3.0 * 9.81, 0))
    shown = repr(found)
    assert "grip1: [0.    8.829 0.   ], [0. 0. 0.], 0.300" in shown
    rest = planar.home[np.newaxis].repeat(2, axis=0)
    batch = arms.wrenches(rest, u)
    assert repr(batch) == "GraspWrenches of grip1, grip2, states (2,)"


@pytest.mark.slow
@pytest.mark.parametrize("options", [VARIANTS["on a cart"], further(VARIANTS["three"])])
def test_prescribed_squeeze_of_spatial_arms(options):
    model = holding(**options)
    arms = ax.Cooperation(model, "load")
    q, nu, _ = moving_state(model)
    nu_dot = np.linspace(-0.4, 0.5, nu.size)
    wanted = {"grip1": (0.0, 1.0, 0.5, 20.0, 0.0, -3.0)}
    if len(arms.grasps) == 3:
        wanted["grip2"] = (0.0, 0.0, 0.0, 5.0, -8.0, 2.0)
    u = arms.torques((q, nu), nu_dot, squeeze=wanted)
    assert np.abs(model.forward_dynamics(q, nu, u) - nu_dot).max() < 1e-8
    found = arms.wrenches((q, nu), u)
    for k, name in enumerate(wanted):
        assert np.abs(found.internal[k] - wanted[name]).max() < 1e-7
    assert np.abs(arms.grasp_matrix((q, nu)) @ found.internal.ravel()).max() < 1e-7
    # batches of states are the states one by one
    many = arms.torques((np.stack([q, q]), np.stack([nu, 0 * nu])), nu_dot, squeeze=wanted)
    assert np.abs(many[0] - u).max() < 1e-9 * np.abs(u).max()
    # in the load's axes
    R = model.poses(q)[model.bodies.index("load"), :3, :3]
    rest = {name: (0.0, 0.0, 0.0) for name in arms.grasps[1:-1]}
    turned = {"grip1": R.T @ (1.0, 2.0, 3.0)} | rest
    body = arms.torques((q, nu), squeeze=turned, frame="body")
    world = arms.torques((q, nu), squeeze={"grip1": (1.0, 2.0, 3.0)} | rest)
    assert np.abs(body - world).max() < 1e-9 * np.abs(world).max()


@pytest.mark.slow
def test_a_simulation_has_the_prescribed_squeeze(planar):
    """The load goes along a line and turns, squeezed by 25 N, under sampled torques."""
    times = np.linspace(0, 0.5, 251)
    s = 1 - np.cos(2 * np.pi * times)
    motion = {"X": 0.62 + 0.03 * s, "Y": 0.55 - 0.02 * s, "F": 0.2 + 0.1 * s}
    planned = ax.inverse_dynamics(planar, motion, times=times)
    arms = ax.Cooperation(planar, "load", shares=(0.4, 0.6))
    q, nu = (
        np.stack([planned[n] for n in names], axis=-1)
        for names in (planar.coordinates, planar.independent)
    )
    u = np.stack([planned[n] for n in planar.inputs], axis=-1)
    nu_dot = planar.forward_dynamics(q, nu, u)
    torques = arms.torques(planned, nu_dot, squeeze=25.0)
    given = ax.Sampled(torques, period=0.002, between="linear")
    run = ax.simulate(planar, 0.5, start=(q[0], nu[0]), input=given, save_every=0.05)
    found = arms.wrenches(run)
    assert abs(run["X"][-1] - motion["X"][-1]) < 1e-4
    pressed = np.linalg.norm(found.internal[:, 0, 3:], axis=-1)
    assert np.abs(pressed - 25.0).max() < 0.05
    # the run's own constraint forces are these wrenches
    forces = np.stack([run["grip1.x.force"], run["grip1.y.force"]], axis=-1)
    total = np.linalg.norm(found["grip1"][:, 3:], axis=-1)
    assert np.abs(np.linalg.norm(forces, axis=-1) - total).max() < 1e-6 * total.max()
    again = arms.decompose(found.on_load, run)
    assert np.abs(again.internal - found.internal).max() < 1e-9


def test_parameters_in_batches(planar):
    arms = ax.Cooperation(planar, "load")
    masses = {"mc": np.array([3.0, 6.0])}
    u = arms.torques(squeeze=10.0, parameters=masses)
    found = arms.wrenches(None, u, parameters=masses)
    assert np.allclose(found.resultant[:, 4], 9.81 * masses["mc"])
    assert np.allclose(np.linalg.norm(found.internal[:, 0, 3:], axis=-1), 10.0)


def test_grasp_matrix_sums_wrenches_at_points():
    rng = np.random.default_rng(0)
    reaches, wrenches = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3, 6))
    total = (grasp_matrix(reaches) @ wrenches.reshape(4, 18, 1))[..., 0]
    moments = wrenches[..., :3] + np.cross(reaches, wrenches[..., 3:])
    assert np.allclose(total[:, :3], moments.sum(axis=1))
    assert np.allclose(total[:, 3:], wrenches[..., 3:].sum(axis=1))


def test_a_load_without_inertia_needs_a_radius():
    bot = ax.gallery.build("cooperating_arms", mc=0.0, Jc=0.0)
    model = bot.derive().compile("interpreter")
    with pytest.raises(ax.NotApplicable, match="radius="):
        ax.Cooperation(model, "load")
    arms = ax.Cooperation(model, "load", radius=0.1)
    u = arms.torques(squeeze=10.0)
    found = arms.wrenches(None, u)
    assert np.abs(np.linalg.norm(found.internal[:, 3:], axis=-1) - 10.0).max() < 1e-9
    assert repr(arms) == "Cooperation('load' of 'cooperating_arms': grip1, grip2)"


def test_mistakes(planar):
    arms = ax.Cooperation(planar, "load")
    with pytest.raises(ax.UnknownName, match="lod"):
        ax.Cooperation(planar, "lod")
    with pytest.raises(ax.NotApplicable, match="is held by 0 arms"):
        ax.Cooperation(ax.gallery.build("chaplygin_sleigh"), "body")
    with pytest.raises(ax.InvalidArgument, match="shares: one number > 0"):
        ax.Cooperation(planar, "load", shares=(1.0, -1.0))
    with pytest.raises(ax.InvalidArgument, match="radius: must be finite"):
        ax.Cooperation(planar, "load", radius=-1.0)
    with pytest.raises(ax.InvalidArgument, match="internal wrenches balance"):
        arms.torques(squeeze={"grip1": (1, 0, 0), "grip2": (1, 0, 0)})
    with pytest.raises(ax.InvalidArgument, match=r"expected a force \(..., 3\)"):
        arms.torques(squeeze={"grip1": (1, 0)})
    with pytest.raises(ax.InvalidArgument, match="expected the shape"):
        arms.decompose(np.zeros((2, 3)))
    with pytest.raises(ax.InvalidArgument, match="unknown keyword 'time'"):
        arms.wrenches(time=1.0)


@pytest.mark.slow
def test_more_mistakes():
    balls = ax.Cooperation(holding(**VARIANTS["balls"]), "load")
    with pytest.raises(ax.InvalidArgument, match="a number is for two grasps"):
        balls.torques(squeeze=3.0)
    with pytest.raises(ax.InvalidArgument, match="cannot transmit this wrench"):
        balls.torques(squeeze={"grip1": (1, 0, 0, 0, 0, 0), "grip2": (0, 0, 0)})
    bot = ax.gallery.build("cooperating_arms")
    bot.connections = [c for c in bot.connections if c.child != "load"]
    bot.add_joint("grip", ax.Revolute("z"), parent="link13", child="load", at=(0.2, 0, 0))
    bot.add_motor("twist", "grip")
    with pytest.raises(ax.NotApplicable, match="a motor, spring, damper, coupling or prescribed"):
        cut(bot, find_grasps(bot, "load"))


def test_wrenches_that_nothing_determines():
    """Arms in one plane share what holds the load upright as two stiff arms do."""
    bot = ax.gallery.build("cooperating_arms")
    bot.connections = [c for c in bot.connections if c.child != "load"]
    bot.add_joint("load", ax.Floating(), parent="ground", child="load")
    bot.home_coordinates = {n: v for n, v in bot.home_coordinates.items() if n[0] == "t"}
    with pytest.warns(ax.PlausibilityWarning, match="equally stiff arms"):
        arms = ax.Cooperation(bot.derive(self_check=False).compile("interpreter"), "load")
    assert arms.indeterminate == ("grip1", "grip2")


def test_an_arm_may_hang_on_the_load():
    """One chain through the load, closed at the second arm's foot: the same wrenches."""
    both = ax.gallery.build("cooperating_arms")
    one = ax.Mechanism("chain", gravity=(0, -9.81, 0))
    one.bodies = list(both.bodies)
    one.connections = [c for c in both.connections if c.name.startswith("joint1")]
    one.drives = [d for d in both.drives if d.name.startswith("motor1")]
    ends = {"at": (0.2, 0, 0), "child_at": (-0.15, 0, 0)}
    one.add_joint("grip1", ax.Fixed(), parent="link13", child="load", **ends)
    ends = {"at": (0.15, 0, 0), "child_at": (0.2, 0, 0)}
    one.add_joint("grip2", ax.Fixed(), parent="load", child="link23", **ends)
    for k, length in ((3, 0.4), (2, 0.5)):
        ends = {"parent": f"link2{k}", "child": f"link2{k - 1}", "child_at": (length, 0, 0)}
        one.add_joint(f"back{k}", ax.Revolute("z"), **ends)
        one.add_motor(f"tau2{k}", f"back{k}", gear=-1.0)
    one.add_loop("foot", ax.Revolute("z"), parent="ground", child="link21", at=(1.2, 0, 0))
    home = both.home_coordinates
    one.set_home({n: home[n] for n in ("theta11", "theta12", "theta13")})
    one.set_home({"back3": -home["theta23"], "back2": -home["theta22"]})
    u, found = {"tau11": 3.0, "tau12": 1.0, "tau13": -0.5, "tau22": 0.7, "tau23": 0.2}, []
    for bot in (both, one):
        model = bot.derive(self_check=False).compile("interpreter")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ax.PlausibilityWarning
            )  # what holds the chain in its plane
            found.append(ax.Cooperation(model, "load").wrenches(None, u))
    assert np.abs(found[0].on_load - found[1].on_load).max() < 1e-8
    assert np.abs(found[0].internal - found[1].internal).max() < 1e-8


def test_too_few_motors_for_a_squeeze():
    bot = ax.gallery.build("cooperating_arms")
    del bot.drives[-3:]
    arms = ax.Cooperation(bot.derive(self_check=False).compile("interpreter"), "load")
    with pytest.warns(ax.RequestNotMetWarning, match="forces fall short by"):
        u = arms.torques(squeeze=30.0)
    assert np.abs(arms.model.forward_dynamics(arms.model.home, None, u)).max() < 1e-9
