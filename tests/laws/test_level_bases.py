"""Floating bases that contacts keep from tilting: the same robot, in far fewer operations."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.symbolic.functions import RECIPES, function_graph
from laws.cases import agree
from random_mechanisms import random_vehicle
from variants import further, slow

# measures and residuals look at configurations that are open, too, and are not written shorter
ALIKE = {"residual", "residual_jacobian", "state_rate_jacobian", "measures_jacobian", "pivots"}
SHUTTLE, FOUR_WHEELS = 170, 75  # operations per rate of a state


def shuttle(radius=0.08, height=0.0, **floor):
    """The first robot of the manual."""
    bot = ax.Mechanism("shuttle")
    box = ax.Box((0.36, 0.24, 0.06), at=(-0.08, 0, 0.02))
    plate = bot.add_body("plate", mass=6.0, com=(-0.08, 0, 0), shape=box)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=plate)
    for side, y in (("left", 0.15), ("right", -0.15)):
        bot.add_wheel(
            side, ax.Rolling(radius), on=plate, at=(0, y, height), mass=0.4, motor=True, **floor
        )
    bot.add_caster(
        "caster", ax.Rolling(0.03), on=plate, at=(-0.2, 0, 0), trail=0.03, drop=0.05, mass=0.1,
        **floor,
    )  # fmt: skip
    return bot


def wagon(front=0.1, on=None, **floor):
    """Four wheels, the front ones perhaps of another size, which tilts it."""
    bot = on or ax.Mechanism("wagon")
    deck = bot.add_body("deck", mass=9.0, com=(0.02, 0.01, 0.1), inertia=(0.2, 0.3, 0.4))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=deck)
    for end, x, radius in (("front", 0.2, front), ("rear", -0.2, 0.1)):
        for side, y in (("left", 0.15), ("right", -0.15)):
            wheel = ax.Rolling(radius, lateral="free" if end == "front" else "rigid")
            bot.add_wheel(
                f"{end}_{side}", wheel, on=deck, at=(x, y, 0), mass=0.5, motor=True, **floor
            )
    return bot


def acted_on():
    """Springs on coordinates of the base, a strut, a wrench, dampers and a measure."""
    bot = shuttle()
    bot.add_spring(
        "strut", parent=bot.ground, child="plate", at=(0.3, 0.5, 0.6), stiffness=40.0, damping=3.0,
        rest=0.2,
    )  # fmt: skip
    bot.add_spring("on base.z", "base.z", stiffness=50.0, rest=0.3)
    bot.add_spring("on base.x", "base.x", stiffness=20.0)
    bot.add_spring("on base.qx", "base.qx", stiffness=2.0, rest=0.3)
    bot.add_damper("turning", "base.wz", coefficient=0.5)
    bot.add_damper("rolling", "base.wx", coefficient=0.5)
    bot.add_wrench("push", "plate", at=(0.1, 0.2, 0.3))
    return bot


def both(bot, **options):
    level, free = bot.derive(**options), bot.derive(reduce=False, **options)
    assert level.system.level
    assert not free.system.level
    return level, free


def check(level, free, seed=0):
    """All functions of both at closed states, and the operations that they take."""
    assert (level.independent, level.rows) == (free.independent, free.rows)
    shown, wanted = (
        [x for x in str(e).splitlines() if x.split()[0] not in ("level", "integral")]
        for e in (level, free)
    )
    assert shown == wanted
    generator = np.random.default_rng(seed)
    for name in RECIPES:
        if name in ALIKE:
            continue
        graphs = [function_graph(e, name, fixed=True) for e in (level, free)]
        shorter, longer = (graph.function.n_instructions() for graph in graphs)
        assert shorter <= longer, name
        for q in free.system.samples[:2]:
            instant = 0.3 if free.system.rheonomic else 0.0
            q, _ = free.system.assembly.close(q, instant)
            sizes = {"nu": free.nu, "nu_dot": free.nu_dot, "u": free.u, "weights": free.weights}
            state = {n: generator.normal(size=x.shape[0]) for n, x in sizes.items()}
            state |= {"q": q, "t": instant, "weights": np.ones(free.weights.shape[0])}
            shown, wanted = (
                np.array(graph.function(*[state[a] for a in graph.arguments])) for graph in graphs
            )
            agree(shown, wanted, 1e-11, name)


@pytest.mark.parametrize("seed", [0, *slow((5, 16), 5, 16), *(further(k) for k in range(60, 120))])
def test_random_vehicles_on_any_ground_are_the_same_written_shorter(seed):
    bot = random_vehicle(np.random.default_rng(seed), "floating")
    level, free = bot.derive(), bot.derive(reduce=False)
    if seed < 60:
        assert level.system.level
    check(level, free)


@pytest.mark.parametrize("make", [shuttle, wagon, acted_on])
def test_robots_are_the_same_written_shorter(make):
    check(*both(make()))


@pytest.mark.slow
def test_a_tilted_floor_a_tilted_robot_and_a_frame_upside_down():
    slope = ax.Plane(normal=(0.3, -0.2, math.sqrt(1 - 0.13)), point=(0.1, 0, 0.4))
    check(*both(shuttle(ground=slope)))
    check(*both(wagon(front=0.14)))
    over = wagon()
    over.set_home({"base.qw": 0.0, "base.qx": 1.0})
    level, free = both(over)
    assert level.system.level[0].joint.in_child[2] == -1.0
    check(level, free)


@pytest.mark.slow
def test_a_prescribed_motion_and_speeds_of_the_users():
    led = wagon()
    led.prescribe("base.x", lambda t: 0.3 * t + 0.1 * t**2)
    check(*both(led))
    turning = {"v": "0.08 / 2 * (left.rate + right.rate)", "w": "base.wz"}
    check(*both(shuttle(), independent=turning))


def test_operations_per_rate():
    assert shuttle().derive().compile().operations("state_rate") <= SHUTTLE
    assert wagon().derive().compile().operations("state_rate") <= FOUR_WHEELS


def tilting():
    """Bases that tilt as they move: a disk, a raked caster, two planes, a driven floor."""
    disk = ax.Mechanism("disk")
    coin = disk.add_body("coin", mass=1.0, inertia=(0.1, 0.2, 0.1))
    disk.add_joint("base", ax.Floating(), parent=disk.ground, child=coin)
    disk.add_contact("rim", ax.Rolling(0.3), body=coin)
    yield disk
    raked = ax.Mechanism("raked")
    plate = raked.add_body("plate", mass=6.0, inertia=(0.1, 0.1, 0.1))
    raked.add_joint("base", ax.Floating(), parent=raked.ground, child=plate)
    for y in (0.15, -0.15):
        raked.add_wheel(f"wheel{y:+}", ax.Rolling(0.08), on=plate, at=(0, y, 0), mass=0.4)
    fork = raked.add_body("fork", mass=1.0, inertia=(0.01, 0.01, 0.01))
    raked.add_joint(
        "steer", ax.Revolute((-0.28, 0, 0.96)), parent=plate, child=fork, at=(0.4, 0, 0.1)
    )
    raked.add_wheel("front", ax.Rolling(0.08), on=fork, at=(-0.05, 0, -0.1), mass=0.4)
    yield raked
    floor = ax.Mechanism("floor")
    board = floor.add_body("board", mass=4.0, inertia=(0.4, 0.4, 0.7))
    floor.add_joint("tilt", ax.Revolute("x"), parent=floor.ground, child=board)
    yield wagon(on=floor, ground=board)
    driven = floor.copy()
    driven.prescribe("tilt", lambda t: 0.2 * np.sin(t))
    yield driven


@pytest.mark.parametrize(
    "bot", list(tilting()), ids=lambda bot: f"{bot.name} {len(bot.prescribed)}"
)
def test_bases_that_tilt_stay_floating(bot):
    assert not bot.derive().system.level


def test_numbers_that_are_rounded_tilt_a_base():
    """A caster whose axis leans by a little tilts its robot by as much when it swivels."""
    bot = shuttle()
    leaning = next(k for k, c in enumerate(bot.connections) if c.name == "caster_bracket")
    axis = (1e-9, 0.0, 1.0)
    bot.connections[leaning] = replace(bot.connections[leaning], joint=ax.Revolute(axis))
    assert not bot.derive().system.level


def test_parameters_that_lift_a_base_and_those_that_tilt_it():
    size = ax.Parameter("radius", 0.1)
    assert not wagon(front=size).derive().system.level  # another radius in front tilts it
    more = ax.Parameter("more", 0.0)  # which no factor changes
    assert not wagon(front=0.1 + more).derive().system.level
    level, free = both(
        shuttle(height=ax.Parameter("up", 0.0), radius=ax.Parameter("up", 0.0) + 0.08)
    )
    models = [e.compile("interpreter") for e in (level, free)]
    rates = []
    for model in models:
        state = ax.assemble(model, {"base.wz": 0.3, "base.vx": 0.2}, parameters={"up": 0.02})
        assert abs(state["base.z"] - 0.08) < 1e-12
        rates.append(model.forward_dynamics(state.q, state.nu, np.ones(2), parameters={"up": 0.02}))
    agree(*rates, 1e-12, "rates")


@pytest.mark.slow
def test_runs_contact_forces_and_linear_models_agree():
    made = []
    for equations in both(shuttle()):
        model = equations.compile("interpreter")

        def drive(s):
            return {"left.torque": 0.1 + 0.3 * s["base.qz"], "right.torque": 0.2 - s["base.x"]}

        run = ax.simulate(model, 1.0, start={"yaw": 0.4, "base.vx": 0.3}, input=drive, rtol=1e-11)
        final = [run.final[name] for name in (*model.coordinates, *model.speed_names, "yaw")]
        forces = [run.final[f"{n}.normal"] for n in ("left", "right", "caster")]
        gains = ax.linearize(model, {"base.vx": 0.3}).A
        made.append((final, forces, gains))
    for shown, wanted in zip(*made, strict=True):
        agree(shown, wanted, 1e-8)


def test_derivatives_agree():
    made = []
    for equations in both(acted_on()):
        model = equations.compile("interpreter")
        state = ax.assemble(model, {"base.vx": 0.3, "base.wz": 0.7, "yaw": 0.4})
        u = np.linspace(0.1, 0.8, len(model.inputs))
        forward = model.derivatives("forward_dynamics", state.q, state.nu, u, multipliers=True)
        inner = forward.multipliers
        made.append(
            [forward.by_q, forward.by_nu, forward.by_u, inner.by_q, inner.by_nu, inner.by_u]
        )
    for shown, wanted in zip(*made, strict=True):
        agree(shown, wanted, 1e-9)


@pytest.mark.parametrize("name", ["base.pitch", "base.roll", "pitch"])
def test_a_tilt_that_wheels_do_not_allow_says_so(name):
    with pytest.raises(ax.LoopNotClosed, match=r"Wheels keep 'base' level, so that .* = 0\.2 rad"):
        ax.simulate(shuttle().derive().compile("interpreter"), 0.1, start={name: 0.2})


def test_the_other_side_is_refused_with_a_remedy():
    model = wagon().derive().compile("interpreter")
    for start in ({"base.qw": 0.0, "base.qx": 1.0}, {"base.qw": 0.1, "base.qy": 1.0}):
        with pytest.raises(ax.LoopNotClosed, match=r"derive\(reduce=False\)"):
            ax.simulate(model, 0.1, start=start)
    q = model.home.copy()
    q[:4] = 0.0, 1.0, 0.0, 0.0
    with pytest.raises(ax.LoopNotClosed, match=r"base\.tilt"):
        ax.simulate(model, 0.1, start=(q, np.zeros(len(model.independent))))
    free = wagon().derive(reduce=False).compile("interpreter")
    assert ax.assemble(free, {"base.qw": 0.0, "base.qx": 1.0})["base.qx"] == pytest.approx(1.0)


def test_copies_and_other_processes_derive_as_asked():
    for equations in both(wagon()):
        copied = pickle.loads(pickle.dumps(equations))
        assert len(copied.system.level) == len(equations.system.level)
        model = pickle.loads(pickle.dumps(equations.compile()))
        assert model.operations("state_rate") == equations.compile().operations("state_rate")


def balancer(lean=0.0, reach=0.0, **floor):
    """The README's balancer, perhaps with its frames elsewhere and an arm."""
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(lean, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    turns = {"child_at": (reach, 0.1 * reach, -reach), "child_rotation": (lean, reach, -lean)}
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole, **turns)
    for side, y in (("left", 0.2), ("right", -0.2)):
        wheel = {"at": (lean, y, -reach), "mass": 0.5, "motor": True, **floor}
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, **wheel)
    if lean:
        bob = bot.add_body("bob", mass=1.0, com=(0, 0, 0.2), inertia=(0.1, 0.1, 0.02))
        axis = ax.Revolute((0, 0.6, 0.8))
        bot.add_joint("arm", axis, parent=pole, child=bob, at=(0, 0.1, 0.5), armature=0.1)
        bot.add_damper("friction", "left", coefficient=0.1)
        bot.add_wrench("push", pole, at=(0, 0, 0.5))
    return bot


def same_rates(bot, independent=None):
    """Whether rates are shorter, and whether they are those of the floating base."""
    short, free = (bot.derive(independent=independent, reduce=r) for r in (True, False))
    assert str(short) == str(free)
    if short.pitching_rate is None:
        return False
    generator = np.random.default_rng(5)
    for name in ("state_rate", "forward_dynamics", "rates"):
        graphs = [function_graph(e, name, fixed=True) for e in (short, free)]
        fewer, more = (graph.function.n_instructions() for graph in graphs)
        assert fewer < more, name
        for q in free.system.samples:
            state = {"q": q, "nu": generator.normal(size=short.nu.shape[0])}
            state["u"] = generator.normal(size=short.u.shape[0])
            shown, wanted = (
                np.array(graph.function(*[state[a] for a in graph.arguments])) for graph in graphs
            )
            agree(shown, wanted, 1e-11, name)
    return True


def test_a_balancer_has_short_rates():
    assert same_rates(balancer())
    assert balancer().derive().compile().operations("state_rate") <= 150


@pytest.mark.slow
def test_balancers_on_slopes_and_with_frames_elsewhere_have_the_same_rates():
    slope = ax.Plane(normal=(0.3, -0.2, math.sqrt(1 - 0.13)), point=(0.1, 0, 0.4))
    assert same_rates(balancer(ground=slope))
    assert same_rates(balancer(lean=0.05, reach=0.1))
    assert same_rates(
        balancer(lean=0.05, reach=0.1), ["left.rate", "right.rate", "base.wy", "arm.rate"]
    )


def test_balancers_whose_rates_stay_those_of_a_floating_base():
    sprung = balancer()
    sprung.add_spring("upright", "base.qy", stiffness=3.0)
    assert not same_rates(sprung)
    led = balancer()
    led.prescribe("left", lambda t: 0.3 * t)
    assert not same_rates(led)
    disk = next(iter(tilting()))
    assert not same_rates(disk)


@pytest.mark.slow
def test_runs_of_a_balancer_agree_however_they_are_integrated():
    def balance(s):
        forward = 60 * s["pitch"] + 15 * s["pitch_rate"] + 15 * (s["surge"] - 0.6)
        return {"left.torque": forward + 0.3, "right.torque": forward}

    made = []
    for reduce in (True, False):
        model = balancer().derive(reduce=reduce).compile()
        start = {"pitch": 0.2, "yaw": 0.3}
        runs = [
            ax.simulate(model, 2.0, start=start, input=balance, method=method, rtol=1e-10)
            for method in ("dopri5", "radau9")
        ]
        names = (*model.coordinates, *model.speed_names, "pitch", "left.normal")
        made += [[run.final[name] for name in names] for run in runs]
    for shown in made[1:]:
        agree(shown, made[0], 1e-6)
