"""Tables that a file repeats: the same mechanism as with every copy written out."""

import re
from pathlib import Path

import numpy as np
import pytest

import axode as ax

EXAMPLES = Path(__file__).parents[2] / "examples"
CART = """
[body.cart]
mass = 5.0
inertia = [1, 1, 1]
[joint.base]
type = "planar"
parent = "ground"
child = "cart"
"""
WHEELS = """
[repeat.wheels]
side = ["left", "right"]
y = ["w / 2", -0.3]
[repeat.wheels.wheel."{side} wheel"]
type = "rolling"
radius = 0.1
on = "cart"
at = [0, "{y}", 0.1]
mass = 0.5
inertia = ["1e-3 * {y} ** 2", "2 * {y} ** 2", "2 * {y} ** 2"]
motor = true
"""


def load(folder: Path, text: str) -> ax.Mechanism:
    (folder / "robot.toml").write_text(text)
    return ax.load(folder / "robot.toml")


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ax.MechanismError) as caught:
        load(folder, text)
    return [str(fault) for fault in caught.value.faults]


def saved(mechanism: ax.Mechanism, folder: Path) -> str:
    mechanism.save(folder / "saved.toml")
    return (folder / "saved.toml").read_text()


def written_by_hand(text: str) -> str:
    """Return the file of the platform with three legs, each written out, leg by leg."""
    top, legs = text.split("[repeat.leg]\n")
    lists, tables = legs.split("\n\n", 1)
    parts, homes = tables.split("[home]")
    hinge, homes = homes.split("[repeat.leg.home]")
    made, at_home = [], []
    for copy in range(3):
        part, home = parts.replace("repeat.leg.", ""), homes
        for key, items in re.findall(r"(\w+) = \[(.*)\]", lists):
            value = items.split(", ")[copy].strip('"')
            part = part.replace(f"{{{key}}}", value)
            home = home.replace(f'"{{{key}}}"', value).replace(f"{{{key}}}", value)
        made.append(part)
        at_home.append(home)
    return top + "".join(made) + "[home]" + hinge + "".join(at_home)


def test_three_legs_written_once(tmp_path):
    text = (EXAMPLES / "planar_3rrr.toml").read_text()
    once = saved(load(tmp_path, text), tmp_path)
    assert once == saved(load(tmp_path, written_by_hand(text)), tmp_path)
    joints = re.findall(r"\[joint\.(\w+)\]", once)
    assert joints[:5] == ["shoulder1", "elbow1", "hinge1", "shoulder2", "elbow2"]
    model = ax.load(EXAMPLES / "planar_3rrr.toml").derive().compile()
    named = ax.gallery.build("planar_3rrr").derive().compile()
    assert np.allclose(model.home[:2], named.home[:2], atol=1e-3)
    assert len(model.independent) == 3


def test_formulas_and_names(tmp_path):
    """Terms get parentheses in formulas, names do not; a lone place becomes the value itself."""
    bot = load(tmp_path, "[parameters]\nw = 0.4\n" + CART + WHEELS)
    names = [body.name for body in bot.bodies]
    assert names == ["cart", "left wheel", "right wheel"]
    left, right = (body.inertia for body in bot.bodies[1:])
    assert str(left.yy) == "2.0 * (w / 2.0) ** 2.0"
    assert right.yy == pytest.approx(2 * 0.3**2)


def test_order_is_that_of_the_file(tmp_path):
    """Copies stand where the repetition stands, one after the other."""
    tail = '[body.tail]\nmass = 1\ninertia = "point"\n'
    joint = '[joint.tail]\ntype = "revolute"\naxis = "z"\nparent = "cart"\nchild = "tail"\n'
    chain = """
[repeat.links]
k = [1, 2]
before = ["cart", "link1"]
[repeat.links.body."link{k}"]
mass = 1
inertia = [1, 1, 1]
[repeat.links.joint."link{k}"]
type = "revolute"
axis = "z"
parent = "{before}"
child = "link{k}"
[repeat.links.spring."link{k}"]
joint = "link{k}"
stiffness = "10 * {k}"
rest = "rest{k}"
[repeat.links.parameters]
"rest{k}" = "{k}"
[repeat.links.home]
"link{k}" = "{k} / 10"
"""
    bot = load(tmp_path, CART + chain + tail + joint)
    assert [body.name for body in bot.bodies] == ["cart", "link1", "link2", "tail"]
    assert [spring.stiffness for spring in bot.springs] == [10.0, 20.0]


def test_wheels_added_to_another_file(tmp_path):
    (tmp_path / "cart.toml").write_text(CART)
    text = 'extends = "cart.toml"\n[parameters]\nw = 0.4\n' + WHEELS
    assert len(load(tmp_path, text).derive().compile().inputs) == 2


FAULTS = {
    "x = 1\n": "expected a list with a value per copy, got 1",
    "": "needs a list with a value per copy",
    "k = [1, 2]\nj = [1]\n": "different numbers of values: k 2, j 1",
    "k = []\n": "has no values",
    "k = [1]\nbody = 3\n": "expected tables such as [repeat.a.body.NAME], got 3",
    "k = [1]\n[repeat.a.bodi.b]\n": "unknown table 'bodi'.",
    "k = [1]\n": "has no tables to copy, such as [repeat.a.body.NAME]",
    "'k 1' = [1]\n[repeat.a.body.b]\nmass = 1": "'k 1' is no name; use letters, digits and _",
    "k = [1, 2]\n[repeat.a.body.b]\nmass = '{k}'": "there is a body 'b' already; write a place",
    "k = [1]\n[repeat.a.body.'b{j}']\nmass = 1": "'{j}' stands for nothing. Lists: k.",
    "k = [1]\nj = [1]\n[repeat.a.body.'b{k}']\nmass = 1": "is not used: write {j} where",
    "k = [1, 2]\n[repeat.a.home]\nx = '{k}'": "'x' stands in [home] already",
}


@pytest.mark.parametrize("block", FAULTS)
def test_faults_are_named(tmp_path, block):
    found = faults(tmp_path, CART + "[repeat.a]\n" + block)
    assert any("[repeat.a]" in fault and FAULTS[block] in fault for fault in found), found
    assert all(fault.startswith("line ") for fault in found)


def test_what_is_no_table(tmp_path):
    assert "expected a table [repeat.a], got 3" in faults(tmp_path, CART + "[repeat]\na = 3\n")[0]
    said = faults(tmp_path, "repeat = 3\n" + CART)[0]
    assert "expected tables such as [repeat.NAME], got 3" in said


def test_faults_inside_copies_stand_at_the_line_that_is_copied(tmp_path):
    text = CART + WHEELS.replace('on = "cart"', 'on = "car"')
    found = faults(tmp_path, text)
    line = text.splitlines().index('on = "car"') + 1
    assert sum(fault.startswith(f"line {line:>3}") for fault in found) == 2
    assert '[wheel."left wheel"] on: ' in " ".join(found)
    assert any("'w' in '(w / 2)" in fault or "'w' in 'w / 2'" in fault for fault in found)


def test_copies_without_end(tmp_path):
    block = f"k = {list(range(20_000))}\n[repeat.a.body.'b{{k}}']\nmass = 1\n"
    (found,) = faults(tmp_path, CART + "[repeat.a]\n" + block)
    assert "makes 20000 tables; at most 10000 are read" in found
