"""MuJoCo Menagerie, if a folder with it is named: every file gives a model or a list of faults.

Set AXODE_MENAGERIE to a checkout of the collection; without it nothing here runs.
"""

import os
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import axode as ax
from axode.errors import AxodeError
from tests.peers.test_mjcf_models import TOLERANCE, Pair
from tests.peers.trees import relative_error

FOLDER = Path(os.environ.get("AXODE_MENAGERIE", "") or "nowhere")
FILES = sorted(FOLDER.glob("*/**/*.xml"))
LARGEST = 60  # speeds of models whose equations are compared


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


@pytest.mark.skipif(not FILES, reason="AXODE_MENAGERIE names no folder with MJCF files")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_gives_a_model_that_equals_mujoco_or_a_list(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = ax.load(path)
        except AxodeError as error:
            assert str(path) in str(error)
            return
        try:
            theirs = mujoco.MjModel.from_xml_path(str(path))
        except ValueError as error:  # a mesh or a texture is not there
            pytest.skip(str(error)[:100])
        if not 0 < theirs.nv <= LARGEST:
            return
        theirs.body_gravcomp[:] = 0.0
        theirs.tendon_stiffness[:] = theirs.tendon_damping[:] = 0.0
        theirs.opt.density = theirs.opt.viscosity = 0.0
        if robot.loops:  # they are compared with the oracle
            robot.derive()
        pair = Pair(robot, theirs)
        model = without_constraints(robot, theirs.njnt).derive().compile("interpreter")
    q, v = pair.put_random(np.random.default_rng(1))
    N, N_dot_v = pair.speed_map(v)
    N = N[:, [pair.speeds.index(speed) for speed in model.independent]]
    M, data = pair.mass_matrix(), pair.data
    assert relative_error(model.mass_matrix(q), N.T @ M @ N) < TOLERANCE
    wanted = N.T @ (data.qfrc_bias - data.qfrc_passive + M @ N_dot_v)
    found = model.bias(q, v) - model.potential_force(q) - model.dissipative_force(q, v)
    scale = np.abs(M).max() + np.abs(wanted).max()
    assert np.abs(found - wanted).max() / scale < TOLERANCE
