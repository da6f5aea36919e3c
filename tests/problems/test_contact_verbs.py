"""Every public verb on a mechanism whose contacts slip, lift, rub and stop.

A verb either knows contacts, or refuses them by name with a remedy, or warns that it leaves their
forces out; none computes the ideal mechanism, or a falling one, in silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import motions
from axode.model.model_parts import memory_of
from axode.results.trajectory import Trajectory

WORKS, REFUSED, WARNED = "works", "refused", "warned"


@cache
def mechanism() -> ax.Mechanism:
    """A ball that rolls with friction, and carries an arm with a motor, dry friction and stops."""
    made = ax.Mechanism("roller")
    ball = made.add_body("ball", mass=2.0, inertia=ax.Inertia.sphere(2.0, 0.1))
    made.add_joint("ball", ax.Floating(), parent=made.ground, child=ball)
    made.add_contact("sole", ax.Ball(0.1, friction=ax.Parameter("mu", 0.6)), body=ball)
    arm = made.add_body("arm", mass=0.2, com=(0, 0, -0.05), inertia=(1e-3, 1e-3, 1e-3))
    hinge = ax.Revolute("y")
    made.add_joint("elbow", hinge, parent=ball, child=arm, friction=0.02, stops=(-1, 1))
    made.add_motor("elbow", "elbow", limit=1.0)
    made.set_home({"ball.z": 0.1})
    return made


@cache
def model() -> ax.Model:
    return mechanism().derive().compile()


@cache
def run() -> Trajectory:
    return ax.simulate(model(), 0.05, start={"vx": 0.5})


def q() -> np.ndarray:
    return model().home


def nu() -> np.ndarray:
    return np.zeros(len(model().independent))


def u() -> np.ndarray:
    return np.zeros(1)


def loaded(path: Path) -> ax.Model:
    model().save(path / "roller.axm")
    return ax.load_model(path / "roller.axm")


Verb = Callable[[Path], Any]

WAYPOINTS = [{"elbow": 0.0}, {"elbow": 0.5}]
SOLVING: dict[str, tuple[str, Verb]] = {
    "simulate": (WORKS, lambda _: ax.simulate(model(), 0.02)),
    "simulate in steps": (WORKS, lambda _: ax.simulate(model(), 0.02, contacts="steps")),
    "simulate a batch": (WORKS, lambda _: ax.simulate(model(), 0.02, start={"vx": [0.0, 0.1]})),
    "simulate a loaded model": (WORKS, lambda path: ax.simulate(loaded(path), 0.02)),
    "simulate with sensitivities": (
        REFUSED,
        lambda _: ax.simulate(model(), 0.02, sensitivities=["mu"]),
    ),
    "simulate on a GPU": (REFUSED, lambda _: ax.simulate(model(), 0.02, target="cuda")),
    "simulate backwards": (REFUSED, lambda _: ax.simulate(model(), -0.02, backwards=True)),
    "simulate by rk4": (REFUSED, lambda _: ax.simulate(model(), 0.02, method="rk4", step=1e-3)),
    "sweep": (
        WORKS,
        lambda _: ax.sweep(
            model(), 0.02, parameters={"mu": [0.1, 0.2]}, outputs={"x": ("last", "ball.x")}
        ),
    ),
    "sweep on a GPU": (
        REFUSED,
        lambda _: ax.sweep(
            model(),
            0.02,
            parameters={"mu": [0.1, 0.2]},
            outputs={"x": ("last", "ball.x")},
            target="cuda",
        ),
    ),
    "sweep of margins": (
        REFUSED,
        lambda _: ax.sweep(
            model(), 0.02, parameters={"mu": [0.1, 0.2]}, outputs={"m": ("min", "slipping_margin")}
        ),
    ),
    "assemble": (WORKS, lambda _: ax.assemble(model(), {"elbow": 0.1})),
    "linearize": (WORKS, lambda _: ax.linearize(model())),
    "linearize while it slips": (REFUSED, lambda _: ax.linearize(model(), {"ball.vx": 0.1})),
    "linearize, settled": (REFUSED, lambda _: ax.linearize(model(), settle=True)),
    "inverse_dynamics": (REFUSED, lambda _: ax.inverse_dynamics(model(), run())),
    "feasible": (REFUSED, lambda _: ax.feasible(model(), run(), friction=0.5)),
    "Cost": (REFUSED, lambda _: ax.Cost(ax.Scenario(model(), 0.02), final=lambda s: s["ball.x"])),
    "stepper": (REFUSED, lambda _: model().stepper(step=1e-3)),
    "inverse_kinematics": (
        WORKS,
        lambda _: ax.inverse_kinematics(model(), {"arm": ax.Target(position=(0, 0, 0.1))}),
    ),
    "Kinematics": (WORKS, lambda _: ax.Kinematics(mechanism(), output="arm")),
    "compare": (WORKS, lambda _: ax.compare(mechanism())),
    "motions.through": (
        WORKS,
        lambda _: motions.through(WAYPOINTS, speed=1.0, acceleration=5.0, model=model()),
    ),
    "motions.through under torques": (
        REFUSED,
        lambda _: motions.through(
            WAYPOINTS, speed=1.0, acceleration=5.0, torque=0.1, model=model()
        ),
    ),
    "motions.follow a path": (
        REFUSED,
        lambda _: motions.paths.follow(model(), motions.paths.straight(1.0, speed=1.0)),
    ),
    "motions.time_optimal": (
        REFUSED,
        lambda _: motions.time_optimal(model(), WAYPOINTS, torque=1.0),
    ),
    "resolved_rates": (
        REFUSED,
        lambda _: ax.resolved_rates(model(), {"arm": ax.Target(position=(0, 0, 0.1))}),
    ),
    "Cooperation": (REFUSED, lambda _: ax.Cooperation(mechanism(), load="arm")),
}

FUNCTIONS: dict[str, tuple[str, Verb]] = {
    "forward_dynamics": (WARNED, lambda _: model().forward_dynamics(q(), nu(), u())),
    "inverse_dynamics of a state": (WARNED, lambda _: model().inverse_dynamics(q(), nu(), nu())),
    "inverse_dynamics_with_residual": (
        WARNED,
        lambda _: model().inverse_dynamics_with_residual(q(), nu(), nu()),
    ),
    "hybrid_dynamics": (
        WARNED,
        lambda _: model().hybrid_dynamics(q(), nu(), nu_dot={"elbow": 0.0}, u={}),
    ),
    "contact_forces": (WARNED, lambda _: model().contact_forces(q(), nu(), u())),
    "multipliers": (WARNED, lambda _: model().multipliers(q(), nu(), u())),
    "derivatives": (WARNED, lambda _: model().derivatives("forward_dynamics", q(), nu(), u())),
    "jvp": (WARNED, lambda _: model().jvp("forward_dynamics", {"nu": nu()}, q(), nu(), u())),
    "c_code": (WARNED, lambda _: model().c_code("forward_dynamics")),
    "casadi_function": (WARNED, lambda _: model().equations.casadi_function("forward_dynamics")),
    "step": (REFUSED, lambda _: model().step(q(), nu(), u(), 1e-3)),
    "rhs": (REFUSED, lambda _: model().rhs(0.0, np.concatenate([q(), nu()]))),
    "legs": (REFUSED, lambda _: model().legs),
    "prepare contact_rows": (WORKS, lambda _: model().prepare("contact_rows")),
    "mass_matrix": (WORKS, lambda _: model().mass_matrix(q())),
    "energy": (WORKS, lambda _: model().energy(q(), nu())),
    "poses": (WORKS, lambda _: model().poses(q())),
    "hessian of the energy": (WORKS, lambda _: model().hessian("energy", [1.0, 0.0], q(), nu())),
    "latex": (WORKS, lambda _: model().equations.latex()),
    "to_sympy": (WORKS, lambda _: model().equations.to_sympy()),
    "derivation": (WORKS, lambda _: model().equations.derivation()),
}

WRITING: dict[str, tuple[str, Verb]] = {
    **{
        f"export {file}": (REFUSED, lambda path, file=file: model().export(path / file))
        for file in ("a.fmu", "a.c", "a.wasm", "a.ptx", "a.tgz", "project/")
    },
    "export a.axm": (WORKS, lambda path: model().export(path / "a.axm")),
    "page": (REFUSED, lambda path: ax.page(mechanism(), path / "a.html")),
    "save": (WORKS, lambda path: mechanism().save(path / "a.toml")),
    "to_urdf": (WORKS, lambda path: mechanism().to_urdf(path / "a.urdf")),
    "to_mjcf": (WORKS, lambda path: mechanism().to_mjcf(path / "a.xml")),
    "to_sdf": (WORKS, lambda path: mechanism().to_sdf(path / "a.sdf")),
    "plot": (WORKS, lambda path: run().plot(save=path / "a.png")),
    "plot_modes": (WORKS, lambda path: run().plot_modes(save=path / "a.png")),
    "animate": (WORKS, lambda path: run().animate(path / "a.gif", rate=40)),
    "report": (WORKS, lambda path: run().report(path / "a.html")),
    "motors": (WORKS, lambda _: str(run().motors)),
    "to_mcap": (WORKS, lambda path: run().to_mcap(path / "a.mcap")),
    "save the run": (WORKS, lambda path: run().save(path / "a.npz")),
    "between samples": (WORKS, lambda _: run().between(0.01, 0.02)),
}


@pytest.mark.parametrize("name", [*SOLVING, *FUNCTIONS, *WRITING])
def test_every_verb_knows_contacts_or_refuses_them(tmp_path, name):
    outcome, verb = (SOLVING | FUNCTIONS | WRITING)[name]
    memory_of(model()).pop("warned", None)  # each warning comes once
    kind = ax.PlausibilityWarning
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if outcome == REFUSED:
            with pytest.raises(ax.AxodeError) as refused:
                verb(tmp_path)
            text = str(refused.value)
            assert "contact" in text or "sole" in text or "target" in text, text
            assert "\n" in text or ";" in text or ":" in text, text  # with a remedy
            return
        verb(tmp_path)
    told = [str(w.message) for w in caught if issubclass(w.category, kind)]
    without = [text for text in told if "sole, elbow are left out" in text]
    assert bool(without) == (outcome == WARNED), told


@pytest.mark.slow  # PyTorch and JAX are imported
@pytest.mark.parametrize("wrapper", ["torch_function", "jax_function"])
def test_wrappers_of_other_libraries_warn(wrapper):
    pytest.importorskip(wrapper.removesuffix("_function"))
    fresh = mechanism().derive().compile()
    with pytest.warns(ax.PlausibilityWarning, match="sole, elbow are left out"):
        getattr(fresh, wrapper)("forward_dynamics")


def test_refusals_name_contacts_and_the_mechanism_without():
    with pytest.raises(ax.NotApplicable) as refused:
        ax.inverse_dynamics(model(), run())
    assert "sole, elbow" in str(refused.value)
    assert "mechanism.ideal()" in str(refused.value)


def test_a_warning_comes_once():
    fresh = mechanism().derive().compile()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in (0.0, 1.0, 2.0):
            fresh.forward_dynamics(q(), nu(), u(), t=t)
    assert len(caught) == 1


def test_driving_by_speed_is_refused_and_by_torque_goes_through_contacts():
    from axode.show.viewer.drive import RealTimeRun

    with pytest.raises(ax.NotApplicable, match='drive="torque"'):
        RealTimeRun(model(), 1.0)
    driven = RealTimeRun(model(), 1.0, mode="torque", start={"vx": 0.5})
    assert driven.modes == ("torque",)
    driven.running = True
    for _ in range(10):
        driven.advance(0.05)
    assert driven.running
    assert np.isnan(driven.forces()).all()  # steps do not record them
    assert driven.forces().shape == (1, 3)
    assert driven.q[model().coordinates.index("ball.z")] == pytest.approx(0.1, abs=1e-9)


# linear models of the current mode ---------------------------------------------------------------


def balancer(friction: float | None) -> ax.Model:
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        wheel = ax.Rolling(radius=0.1, friction=friction)
        bot.add_wheel(side, wheel, on=pole, at=(0, y, 0), mass=0.5, motor=True)
    bot.set_home({"base.z": 0.1})
    return bot.derive().compile()


@pytest.fixture(scope="module")
def slipping() -> ax.Model:
    return balancer(0.8)


def test_while_wheels_stick_the_linear_model_is_that_of_ideal_wheels(slipping):
    found, ideal = ax.linearize(slipping), ax.linearize(balancer(None))
    assert found.modes == {"left": "stick", "right": "stick"}
    assert found.states == ideal.states
    np.testing.assert_array_equal(found.A, ideal.A)
    np.testing.assert_array_equal(found.B, ideal.B)
    assert "left stick" in str(found)


def test_a_law_of_the_linear_model_balances_on_wheels_that_may_slip(slipping):
    linear = ax.linearize(slipping, states=["base.pitch", "base.wy", "base.wz", "base.vx"])
    law = linear.lqr(np.diag([10.0, 1.0, 1.0, 1.0]), np.eye(2))
    run = ax.simulate(slipping, 4.0, start={"base.pitch": 0.05}, input=law)
    assert abs(run["base.pitch"][-1]) < 1e-3
    assert {word for _, word in run.modes["left"]} == {"stick"}


def test_an_open_contact_is_not_there(slipping):
    with pytest.warns(ax.errors.NotAnEquilibriumWarning):
        found = ax.linearize(slipping, {"base.z": 0.3})
    assert found.modes == {"left": "open", "right": "open"}
    assert len(found.states) == 16  # free in space
    assert found.drift[found.states.index("base.vz")] == pytest.approx(-9.81)


def test_a_joint_that_sticks_is_locked():
    found = ax.linearize(model())
    assert found.modes == {"sole": "stick", "elbow": "stick"}
    assert not any("elbow" in name for name in found.states)
    # a ball with its arm as one rigid body: a pendulum on a rolling ball
    assert np.iscomplex(found.poles).any()


@pytest.mark.parametrize(
    ("state", "inputs", "what"),
    [
        (None, {"left.torque": 50.0, "right.torque": 50.0}, "'left' of 'balancer' would slip"),
        ({"base.vx": 1.0}, None, "'left' of 'balancer' slips"),
        ({"base.z": 0.05}, None, "'left' of 'balancer' is in the ground"),
        ({"base.vz": 1.0}, None, "'left' of 'balancer' strikes or lifts"),
    ],
)
def test_at_a_switch_there_is_no_linear_model(slipping, state, inputs, what):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ax.NotApplicable, match=what):
            ax.linearize(slipping, state, input=inputs)


def test_the_limit_of_friction_is_found_where_it_is():
    """A block of mass m on its contacts slips where its motor pulls with mu m g."""
    cart = ax.Mechanism("cart")
    body = cart.add_body("body", mass=2.0, inertia=ax.Inertia.sphere(2.0, 0.1))
    cart.add_joint("body", ax.Floating(), parent=cart.ground, child=body)
    cart.add_contact("sole", ax.Ball(0.1, friction=0.5), body=body)
    cart.add_wrench("pull", body)
    cart.set_home({"body.z": 0.1})
    made = cart.derive().compile()
    # a sphere that is pulled at its centre with F needs 2/7 F of friction
    limit = 0.5 * 2.0 * 9.81 * 7 / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = "pull.fx"
        assert ax.linearize(made, input={name: limit * (1 - 1e-4)}).modes == {"sole": "stick"}
        with pytest.raises(ax.NotApplicable, match="slip"):
            ax.linearize(made, input={name: limit * (1 + 1e-4)})
        with pytest.raises(ax.NotApplicable, match="slip"):
            ax.linearize(made, input={name: limit})
