"""MuJoCo Menagerie: every file gives a model that equals MuJoCo's, or a list of faults.

`AXODE_MENAGERIE=FOLDER python -m tests.peers.menagerie --out FILE` compares a checkout of the
collection and writes what came of each file; the tests do the same if the variable is set.
"""

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np

import axode as ax
from axode.errors import AxodeError, OmissionWarning
from axode.formats.mjcf.mjcf_text import ACTUATORS, EQUALITIES
from axode.formats.xml.reading import DRY_FRICTION, LIMITS, PLUGINS, UNREAD_FRICTION, UNREAD_STOPS
from tests.peers.test_mjcf_models import TOLERANCE, Pair
from tests.peers.trees import relative_error

FOLDER = Path(os.environ.get("AXODE_MENAGERIE", "") or "nowhere")
FILES = sorted(FOLDER.glob("*/**/*.xml"))
REFUSED, UNREADABLE, AGREES = "refused, with a list", "not read by MuJoCo", "agrees"


def without_constraints(mechanism: ax.Mechanism, joints: int) -> ax.Mechanism:
    """The tree of MuJoCo's own joints, without loops, couplings and the slides of tendons."""
    tree = mechanism.copy()
    for group in (tree.loops, tree.couplings, tree.prescribed, tree.struts):
        group.clear()
    slides = [c for c in tree.connections if c.joint.dof][joints:]
    bodies, names = {c.child for c in slides}, {c.name for c in slides}
    tree.connections[:] = [c for c in tree.connections if c.child not in bodies]
    tree.bodies[:] = [b for b in tree.bodies if b.name not in bodies]
    for group in (tree.drives, tree.dampers, tree.springs):
        group[:] = [part for part in group if part.coordinate not in names]
    for name in names:
        tree.home_coordinates.pop(name, None)
    return tree


def lost(robot: ax.Mechanism, left_out: dict[str, list[str]], theirs: mujoco.MjModel) -> list[str]:
    """What MuJoCo's model has and neither the mechanism nor the warning knows."""
    listed = Counter({what: len(elements) for what, elements in left_out.items()})
    slides = len([c for c in robot.connections if c.joint.dof]) - theirs.njnt
    constraints = len(robot.loops) + len(robot.couplings) + len(robot.prescribed) - slides
    limited = int(theirs.jnt_limited.sum() + theirs.tendon_limited.sum())
    first = [theirs.jnt_dofadr[k] for k in range(theirs.njnt)]
    friction = int((theirs.dof_frictionloss[first] > 0).sum())
    friction += int((theirs.tendon_frictionloss > 0).sum())
    motors = len(robot.drives) + listed[ACTUATORS]
    of_plugins = min(max(theirs.nu - motors, 0), listed[PLUGINS])
    counts = {
        "actuators": (theirs.nu, motors + of_plugins),
        "equality constraints": (theirs.neq, constraints + listed[EQUALITIES]),
        "limits": (limited, listed[LIMITS] + listed[UNREAD_STOPS]),
        "dry friction": (friction, listed[DRY_FRICTION] + listed[UNREAD_FRICTION]),
    }
    return [f"{there - here} {what}" for what, (there, here) in counts.items() if there != here]


def compare(path: Path) -> dict[str, object]:
    """Read a file and compare mass matrix and bias with MuJoCo's at a random state.

    Raises:
        AssertionError: if something is lost, or a number differs.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            robot = ax.load(path)
        except AxodeError as error:
            assert str(path) in str(error)
            return {"outcome": REFUSED}
        try:
            theirs = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:  # a mesh or a texture is not there
            return {"outcome": UNREADABLE}
    left_out: dict[str, list[str]] = {}
    for warning in caught:
        if isinstance(warning.message, OmissionWarning):
            left_out |= warning.message.left_out
    assert not lost(robot, left_out, theirs)
    loops = len(robot.loops) + len(robot.couplings)
    about = {"speeds": theirs.nv, "loops_and_couplings": loops}
    if not theirs.nv:
        return {"outcome": "holds nothing that moves"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if loops:  # compared with the oracle
            robot.derive()
        inertia, bias = differences(robot, theirs)
    assert inertia < TOLERANCE and bias < TOLERANCE
    return {"outcome": AGREES, **about, "mass_matrix": inertia, "bias": bias}


def differences(robot: ax.Mechanism, theirs: mujoco.MjModel) -> tuple[float, float]:
    """Relative differences of mass matrix and bias, with springs and dampers of joints."""
    theirs.body_gravcomp[:] = 0.0
    theirs.tendon_stiffness[:] = theirs.tendon_damping[:] = 0.0
    theirs.opt.density = theirs.opt.viscosity = 0.0
    pair = Pair(robot, theirs)
    model = without_constraints(robot, theirs.njnt).derive().compile("interpreter")
    q, v = pair.put_random(np.random.default_rng(1))
    N, N_dot_v = pair.speed_map(v)
    N = N[:, [pair.speeds.index(speed) for speed in model.independent]]
    M, data = pair.mass_matrix(), pair.data
    inertia = relative_error(model.mass_matrix(q), N.T @ M @ N)
    wanted = N.T @ (data.qfrc_bias - data.qfrc_passive + M @ N_dot_v)
    found = model.bias(q, v) - model.potential_force(q) - model.dissipative_force(q, v)
    scale = np.abs(M).max() + np.abs(wanted).max()
    return float(inertia), float(np.abs(found - wanted).max() / scale)


def main() -> None:
    """Compare all files; print a summary and write what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    for path in FILES:
        name = path.relative_to(FOLDER).as_posix()
        try:
            found[name] = compare(path)
        except Exception as error:
            found[name] = {"outcome": "fault", "message": f"{type(error).__name__}: {error}"}
            print(name, found[name]["message"], flush=True)
    counts = Counter(str(one["outcome"]) for one in found.values())
    compared = [one for one in found.values() if one["outcome"] == AGREES]
    worst = {
        what: max((float(str(one[what])) for one in compared), default=0.0)
        for what in ("mass_matrix", "bias")
    }
    print(dict(counts), worst)
    if given.out:
        whole = {"counts": dict(counts), "worst": worst, "files": found}
        given.out.write_text(json.dumps(whole, indent=1) + "\n")
    sys.exit(1 if counts["fault"] or not FILES else 0)


if __name__ == "__main__":
    main()
