"""Rows that follow from others at the parameters' defaults, and not elsewhere."""

import numpy as np
import pytest

import axode as ax
from axode.model.model_parts import facts_of

WORDS = r"right\.lateral \(follows from left\.lateral\).*\n.*derive it again"


def cart(offset: float = 0.0) -> ax.Mechanism:
    """Two wheels, one of which may stand before the other."""
    bot = ax.Mechanism("cart")
    ahead, mass = ax.Parameter("ahead", offset), ax.Parameter("mass", 5.0)
    body = bot.add_body("body", mass=mass, inertia=(0.1, 0.1, 0.2))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body, at=(0, 0, 0.1))
    for name, x, y in (("left", 0.0, 0.2), ("right", ahead, -0.2)):
        bot.add_wheel(name, ax.Rolling(0.1), on=body, at=(x, y, 0), mass=0.2, motor=True)
    return bot


def steered_car() -> ax.Mechanism:
    """Front wheels steered by the clock so that all axles meet, unless one turns too far."""
    car = ax.Mechanism("car")
    toe = ax.Parameter("toe", 0.0)
    body = car.add_body("body", mass=1000.0, inertia=(300, 1000, 1200))
    car.add_joint("base", ax.Planar(), parent=car.ground, child=body)
    car.add_contact("rear", ax.Skate(), body=body)
    for side, y, more in (("left", 0.7, 0.0), ("right", -0.7, toe)):
        knuckle = car.add_body(f"knuckle_{side}", mass=10.0, inertia=(0.1, 0.1, 0.1))
        car.add_joint(f"steer_{side}", ax.Revolute("z"), parent=body, child=knuckle, at=(2.5, y, 0))
        car.add_contact(f"front_{side}", ax.Skate(), body=knuckle)
        car.prescribe(
            f"steer_{side}",
            lambda t, y=y, more=more: (
                (1 + more) * np.arctan(2.5 * 0.1 * np.sin(t) / (1 - y * 0.1 * np.sin(t)))
            ),
        )
    return car


@pytest.fixture(scope="module")
def model() -> ax.Model:
    return cart().derive().compile("interpreter", parameters="free")


def test_the_model_knows_what_its_rows_hang_on(model):
    assert facts_of(model).row_parameters == ("ahead",)
    assert any("right.lateral" in row for row in facts_of(model).dropped)


def test_values_at_which_the_wheels_no_longer_slide_together(model):
    with pytest.raises(ax.errors.InvalidArgument, match="ahead = 0.1 instead of 0.*" + WORDS):
        ax.assemble(model, parameters={"ahead": 0.1})
    with pytest.raises(ax.errors.InvalidArgument, match=WORDS):
        ax.simulate(model, 0.1, parameters={"ahead": -0.2}, method="rk4")
    with pytest.raises(ax.errors.InvalidArgument, match=r"ahead = 0\.3.*\(run 2 of 3\).*" + WORDS):
        ax.simulate(model, 0.1, parameters={"ahead": [0.0, 0.1, 0.3]}, method="rk4")
    with pytest.raises(ax.errors.InvalidArgument, match=WORDS):
        ax.sweep(model, 0.1, parameters={"ahead": [0.0, 0.1]}, outputs={"x": ("last", "base.x")})
    q, nu = np.zeros(5), np.zeros(2)
    with pytest.raises(ax.errors.InvalidArgument, match=WORDS):
        ax.simulate(model, 0.1, start=(q, nu), parameters={"ahead": 0.1}, method="rk4")


def test_inverse_looks_too(model):
    straight = {"base.surge": "0.5 * t", "base.yaw_rate": "0"}
    times = np.linspace(0.0, 1.0, 11)
    assert (
        ax.inverse_dynamics(model, straight, times=times, parameters={"mass": 3.0}).time.size == 11
    )
    with pytest.raises(ax.errors.InvalidArgument, match="ahead = 0.1 instead of 0:.*" + WORDS):
        ax.inverse_dynamics(model, straight, times=times, parameters={"ahead": 0.1})


def test_a_start_may_be_special():
    """Wheels that are straight at first, and fight each other as soon as they are not."""
    model = steered_car().derive().compile("interpreter", parameters="free")
    run = ax.simulate(model, 1.0, start={"base.surge": 1.0}, method="rk4", step=0.02)
    assert run.final["base.yaw"] > 0.01
    ax.assemble(model, parameters={"toe": 0.2})
    with pytest.raises(ax.errors.SimulationFailed, match=r"toe = 0\.2.*front_right\.lateral") as e:
        ax.simulate(
            model, 1.0, start={"base.surge": 1.0}, method="rk4", step=0.02, parameters={"toe": 0.2}
        )
    assert e.value.trajectory.final["base.x"] > 0.5


def test_other_parameters_change_no_rows(model):
    for parameters in ({"mass": [2.0, 9.0]}, {"mass": 3.0, "ahead": 0.0}):
        run = ax.simulate(model, 0.1, start={"base.surge": 1.0}, parameters=parameters)
        assert run.final["base.x"] == pytest.approx(0.1)


def test_the_remedy_helps():
    """With the values as defaults the row is kept, and the cart can no longer turn."""
    assert len(cart().derive().independent) == 2
    built = cart(0.1).derive()
    assert len(built.independent) == 1 and "right.lateral" in built.rows
    model = built.compile("interpreter", parameters="free")
    run = ax.simulate(model, 0.1, start={"base.surge": 1.0}, parameters={"ahead": 0.3})
    assert run.final["base.x"] == pytest.approx(0.1)


def test_a_model_from_a_file_knows_too(tmp_path):
    cart().derive().compile(parameters="free").save(tmp_path / "cart.axm")
    with pytest.raises(ax.errors.InvalidArgument, match=WORDS):
        ax.assemble(ax.load_model(tmp_path / "cart.axm"), parameters={"ahead": 0.1})
