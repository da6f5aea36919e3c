"""What notebooks show: small tables that are well-formed, whatever names are in them."""

import functools
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import axode as ax
from axode.printing.mathml import MAX_ROWS
from tests.results import runs

TRICKY = '<b>&amp; "quoted"'


def shown(thing: Any) -> ElementTree.Element:
    """Its HTML, parsed: an error if a tag is open or a sign is not escaped."""
    return ElementTree.fromstring(thing._repr_html_())


def text_of(thing: Any) -> str:
    return " ".join(shown(thing).itertext())


@functools.cache
def pendulum(name: str = "pendulum") -> ax.Equations:
    bot = ax.Mechanism(name, gravity=(0, 0, -9.81))
    bot.add_body("rod", mass=1.0, com=(0, 0, -1.0), inertia=(1e-3,) * 3)
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child="rod")
    bot.add_motor("pin", "pin")
    return bot.derive()


def test_equations():
    found = text_of(pendulum())
    assert "pendulum: mobility 1, fully actuated" in found and "pin.rate" in found
    assert any(element.tag.endswith("math") for element in shown(pendulum()).iter())


def test_long_equations_are_not_written_out():
    arm = ax.gallery.build("five_axis_arm").derive()
    assert not any(element.tag.endswith("math") for element in shown(arm).iter())
    assert "use .latex()" in " ".join(text_of(arm).split())
    assert "latex()" not in text_of(pendulum())


def test_a_mechanism_lists_its_joints_and_wheels():
    rows = [[cell.text for cell in row] for row in shown(ax.gallery.build("unicycle")).iter("tr")]
    assert rows[0] == [None, "name", "type", "between"]
    assert {row[0] for row in rows[1:]} == {"joint", "wheel"}
    empty = ax.Mechanism(TRICKY)
    assert TRICKY in text_of(empty)


def test_a_model_lists_its_names_with_units():
    found = [[cell.text for cell in row] for row in shown(pendulum().compile()).iter("tr")]
    assert ["coordinate", "pin", "rad"] in found
    assert ["independent speed", "pin.rate", "rad/s"] in found
    assert "Model('pendulum': 1 coordinate, 1 speed, 1 input," in text_of(pendulum().compile())


def test_trajectory():
    model = pendulum().compile("interpreter")
    run = ax.simulate(
        model, 1.0, start={"pin": 0.5}, save_every=0.1, events=[ax.Event("down", "pin")]
    )
    found = text_of(run)
    assert "Trajectory('pendulum': 1 run, 11 samples" in found
    assert f"{run.final['pin']:.6g}" in found and f"{run['pin'].max():.6g}" in found
    assert f"down at t = {run.events[0].time:.6g} s" in found
    rows = [[cell.text for cell in row] for row in shown(run).iter("tr")]
    assert rows[0] == [None, "unit", "kind", "first", "last", "min", "max"]
    assert rows[1][:4] == ["pin", "rad", "coordinate", "0.5"]


def test_a_batch_and_many_columns():
    many = {f"c{k}": np.zeros(3) for k in range(MAX_ROWS + 5)}
    run = ax.Trajectory(
        time=np.arange(3.0),
        values=np.stack([*many.values()], axis=-1),
        names=tuple(many),
        units=("",) * len(many),
        kinds=dict.fromkeys(many, "measure"),
    )
    assert "and 5 more" in text_of(run)
    batch = runs.batch((2,))
    assert [cell.text for cell in next(shown(batch).iter("tr"))][3:] == ["min", "max"]


def test_linearization():
    linear = ax.linearize(pendulum().compile("interpreter"), states=["pin", "pin.rate"])
    found = text_of(linear)
    assert "pendulum, linearized at zero: an equilibrium" in found and "pin.torque" in found
    assert "poles" in found and "controllable" in found
    cells = [[cell.text for cell in row] for row in shown(linear).iter("tr")]
    assert cells[1][0] == "pin'" and float(cells[1][2]) == 1.0
    chosen = ax.linearize(
        pendulum().compile("interpreter"), states=["pin", "pin.rate"], outputs=["pin"]
    )
    assert len(list(shown(chosen).iter("table"))) == 3


def test_sweep():
    made = ax.sweep(
        pendulum().compile(),
        0.01,
        start={"pin": [0.1, 0.2]},
        step=1e-3,
        outputs={"least": ("min", "pin")},
    )
    rows = [[cell.text for cell in row] for row in shown(made).iter("tr")]
    assert rows[1] == ["swept", "pin", "rad", "0.1", "0.2"] and rows[2][:2] == ["output", "least"]
    assert "2 runs over pin (2)" in text_of(made)


@pytest.mark.parametrize("name", [TRICKY, "\u03c4 & \u03b3"])
def test_names_are_escaped(name: str):
    run = ax.Trajectory(
        time=np.arange(2.0),
        values=np.zeros((2, 1)),
        names=(name,),
        units=("<",),
        kinds={name: "measure"},
        info={"model": name},
    )
    assert name in text_of(run) and name in text_of(pendulum(name))
