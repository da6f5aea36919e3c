"""Mechanisms with loops, written and read back: the same freedoms, inertia and forces."""

import warnings

import mujoco
import numpy as np
import pytest

import axode as ax
from axode.mechanism.topology import speed_names, tree_order
from coupled_mechanisms import coupled_tree
from random_mechanisms import CLOSURES, MECHANISMS
from tests.peers.trees import relative_error
from variants import some

TOLERANCE = 1e-9
ENDINGS = {"to_urdf": ".urdf", "to_mjcf": ".xml", "to_sdf": ".sdf"}
LOOPS = [*(f"loop_{kind}" for kind in CLOSURES), "geared_five_bar"]
GALLERY = ["four_bar", "five_bar", "planar_3rrr", "platform_3rps", "agile_eye", "delta_robot"]


def build(name: str) -> ax.Mechanism:
    """A mechanism with loops, without what one of the formats cannot say of its forces."""
    bot = MECHANISMS[name]() if name in MECHANISMS else ax.gallery.build(name)
    for forces in (bot.wrenches, bot.springs, bot.struts, bot.dampers, bot.drives):
        forces.clear()
    return bot


def speeds_in_file(bot: ax.Mechanism, known: list[str]) -> dict[str, str | None]:
    """Names in a file of the speeds that are the rates of one joint there."""
    found: dict[str, str | None] = {}
    for c in tree_order(bot):
        for k, speed in enumerate(c.speeds):
            own = c.joint.speed_names[k]
            part = own.removesuffix("_rate")
            names = (f"{c.name}.{own}", f"{c.name}_joint.{own}", f"{c.name}.{part}.rate")
            found[speed] = next((name for name in names if name in known), None)
    return found


def set_home(bot: ax.Mechanism, home: dict[str, float], other: ax.Mechanism) -> None:
    """Set the home configuration of what was read to that of what was written."""
    values: dict[str, float] = {}
    for c in tree_order(bot):
        own = [home[name] for name in c.coordinates]
        if isinstance(c.joint, ax.Spherical):
            w, x, y, z = own
            first = np.arctan2(2 * (w * x - y * z), 1 - 2 * (x * x + y * y))
            second = np.arcsin(2 * (x * z + w * y))
            third = np.arctan2(2 * (w * z - x * y), 1 - 2 * (y * y + z * z))
            names = [f"{c.name}.turn_{e}" for e in "xyz"]
            values |= dict(zip(names, (first, second, third), strict=True))
        elif isinstance(c.joint, ax.Screw):
            values |= {c.name: own[0], f"{c.name}.advance": c.joint.pitch * own[0]}
        else:
            suffixes = c.joint.coordinate_names
            names = [f"{c.name}.{s}" if s else c.name for s in suffixes]
            values |= dict(zip(names, own, strict=True))
    known = {name for c in other.connections for name in c.coordinates}
    other.set_home({name: float(x) for name, x in values.items() if name in known})


def pairs(names: list[str], methods: list[str]) -> list[tuple[str, str]]:
    return [(name, method) for name in names for method in methods]


CASES = pairs(LOOPS + GALLERY, list(ENDINGS))
# URDF has no home configuration, and the angle of a screw in a loop is none of our coordinates
CASES.remove(("loop_screw", "to_urdf"))
QUICK = [
    ("loop_universal", "to_urdf"),
    ("loop_screw", "to_mjcf"),
    ("loop_cylindrical", "to_sdf"),
    ("geared_five_bar", "to_sdf"),
]


@pytest.mark.parametrize("case", some(CASES, *(c for c in CASES if c not in QUICK)), ids="-".join)
def test_loops_read_back_are_the_same(case, tmp_path):
    name, method = case
    bot = build(name)
    ours = bot.derive(self_check=False).compile("interpreter")
    path = tmp_path / f"robot{ENDINGS[method]}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(bot, method)(path)
        read = ax.load(path)
    if method == "to_urdf":
        read.gravity = bot.gravity
        set_home(bot, dict(zip(ours.coordinates, ours.home, strict=True)), read)
    names = speeds_in_file(bot, speed_names(read))
    independent = [names.get(speed) for speed in ours.independent]
    if None in independent:  # a ball joint is three hinges in URDF: only the freedoms are compared
        theirs = read.derive(self_check=False).compile("interpreter")
        assert len(theirs.independent) == len(ours.independent)
        return
    theirs = read.derive(independent=independent, self_check=False).compile("interpreter")
    order = [list(theirs.independent).index(speed) for speed in independent]
    nu, nu_there = np.random.default_rng(1).uniform(-1, 1, (2, len(order)))
    nu_there[order] = nu
    q, q_there = np.array(ours.home), np.array(theirs.home)
    M = theirs.mass_matrix(q_there)[np.ix_(order, order)]
    assert relative_error(M, ours.mass_matrix(q)) < TOLERANCE
    bias = theirs.bias(q_there, nu_there) - theirs.potential_force(q_there)
    assert relative_error(bias[order], ours.bias(q, nu) - ours.potential_force(q)) < TOLERANCE


@pytest.mark.parametrize(
    "name", some(LOOPS + GALLERY, *(n for n in LOOPS + GALLERY if n not in ("loop_planar",)))
)
def test_mujoco_closes_the_loops_at_home_and_leaves_as_many_freedoms(name):
    bot = build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mujoco.MjModel.from_xml_string(bot.to_mjcf().text)
    model.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    rows = data.efc_J[: data.ne * model.nv].reshape(-1, model.nv)
    assert np.abs(data.efc_pos[: data.ne]).max() < TOLERANCE
    freedoms = len(bot.derive(self_check=False).independent)
    assert np.linalg.matrix_rank(rows, 1e-8) == model.nv - freedoms


def test_couplings_read_back_are_the_same(tmp_path):
    """Those of two joints and of a planar base's coordinates; not curved ones, nor of speeds."""
    bot = coupled_tree()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = bot.to_mjcf(tmp_path / "robot.xml")
        read = ax.load(tmp_path / "robot.xml")
    lost = [s.split("'")[1] for s in made.left_out if s.startswith("coupling")]
    assert lost == ["three", "speeds"]
    bot.couplings[:] = [c for c in bot.couplings if c.name not in lost]
    assert {c.name for c in bot.couplings} <= {c.name for c in read.couplings}
    freedoms = [len(m.derive(self_check=False).independent) for m in (bot, read)]
    assert freedoms[0] == freedoms[1]
