"""Contacts in pictures: modes as colours, slip as marks on the ground, forces as arrows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.results.trajectory import Trajectory
from axode.show.contact_marks import (
    contact_modes,
    mode_colour,
    slip_marks,
    slip_speeds,
    touch_heights,
)
from axode.show.motion import RunPoses
from axode.show.render.animation import RunFrames
from axode.show.report import report_page

WEIGHT = 2.0 * 9.81


@cache
def model() -> ax.Model:
    ball = ax.Mechanism("ball")
    body = ball.add_body("ball", mass=2.0, inertia=ax.Inertia.sphere(2.0, 0.1))
    ball.add_joint("ball", ax.Floating(), parent=ball.ground, child=body)
    ball.add_contact("sole", ax.Ball(0.1, friction=0.3), body=body)
    return ball.derive().compile()


@cache
def run(contacts: str = "events") -> Trajectory:
    """A ball falls for 0.1428 s, slides, and rolls from 2 v0 / (7 mu g) = 0.1942 s later on."""
    start = {"ball.z": 0.2, "vx": 2.0}
    return ax.simulate(model(), 0.6, start=start, contacts=contacts)


FALL = float(np.sqrt(2 * 0.1 / 9.81))
# the impact slips: its friction takes mu g T of the speed, and sliding the rest
ROLLS = 2 * 2.0 / (7 * 0.3 * 9.81)


def test_modes_are_those_of_the_run():
    motion = RunPoses(run())
    times = np.array([0.5 * FALL, 1.05 * FALL, 0.59])
    found = contact_modes(motion, times, motion.poses(times))[:, 0]
    assert found.tolist() == ["open", "slip", "stick"]
    assert mode_colour("open") is None
    assert len({mode_colour(mode) for mode in ("stick", "slip", "closed")}) == 3


def test_without_modes_what_contacts_do_is_seen():
    motion = RunPoses(run("steps"))
    times = np.array([0.5 * FALL, 1.2 * FALL, 0.59])
    found = contact_modes(motion, times, motion.poses(times))[:, 0]
    assert found.tolist() == ["open", "slip", "stick"]
    v = slip_speeds(motion, times, motion.poses(times))[:, 0]
    assert v[0] == pytest.approx(2.0)  # of a ball that does not turn
    assert v[2] == pytest.approx(0.0, abs=1e-3)
    heights = touch_heights(model().scene, motion.poses(times))[:, 0]
    assert heights[0] == pytest.approx(0.1 - 9.81 * times[0] ** 2 / 2, abs=2e-3)


def test_slip_marks_are_as_long_as_the_slide():
    motion = RunPoses(run())
    times, poses = motion.all_poses(1000)
    lines, ends = slip_marks(model().scene, poses, contact_modes(motion, times, poses))
    length = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).sum()
    spans = run().modes["sole"]
    begin, end = (next(t for t, word in spans if word == mode) for mode in ("slip", "stick"))
    x = np.interp([begin, end], run().time, run()["ball.x"])
    assert length == pytest.approx(x[1] - x[0], abs=5e-3)
    assert (times[ends] <= end + 2e-3).all()
    assert (times[ends] >= begin).all()


def test_forces_of_the_ground_are_the_weight_while_it_rolls():
    forces = RunPoses(run()).forces(np.array([0.5 * FALL, 0.59]))
    assert forces.shape == (2, 1, 3)
    assert forces[0] == pytest.approx(np.zeros((1, 3)), abs=1e-9)
    assert forces[1, 0, 2] == pytest.approx(WEIGHT, rel=1e-9)


def test_logs_have_the_forces_of_contacts_with_friction():
    from axode.show.logs.logged_run import LoggedRun

    logged = LoggedRun(run(), None, 100.0)
    assert logged.contacts == {"sole": 0}
    assert logged.contact_forces[-1, 0, 2] == pytest.approx(WEIGHT, rel=1e-9)
    assert logged.contact_points[-1, 0, 2] == pytest.approx(0.0, abs=1e-9)
    assert LoggedRun(run("steps"), None, 100.0).contacts == {}


def test_pictures_show_the_mode_and_the_marks():
    motion = RunPoses(run())
    times = np.linspace(0.0, 0.6, 61)
    frames = RunFrames(motion, times, (320, 240), forces=True, clock=False)
    frames.aim()
    in_air, slides = 5, int(1.15 * FALL * 100)
    assert frames._mode_spots(in_air) == []
    assert [mesh.colour for mesh in frames._mode_spots(slides)] == [mode_colour("slip")]
    assert [mesh.colour for mesh in frames._mode_spots(60)] == [mode_colour("stick")]
    assert frames.frame(60).std() > 0
    # tracks: none before the ball lands, then dark ones, then those of a wheel that rolls
    assert frames._tracks_until(in_air) == []
    assert len(frames._tracks_until(60)) == 2


@pytest.mark.slow
def test_a_report_counts_what_contacts_did(tmp_path):
    text = run().report(tmp_path / "ball.html").read_text()
    assert "<th>Contact</th>" in text
    assert "Largest impulse" in text
    assert report_page.MODES


def test_the_viewer_draws_spots_and_marks():
    pytest.importorskip("viser")
    viewer = ax.view(run(), block=False, open_browser=False, forces=True, play=False, loop=False)
    try:
        playing = viewer.stage
        playing.playback.seek(0.59)
        playing._since = np.inf
        playing.tick(0.0)
        drawing = playing._drawing
        assert drawing._spots.visible
        assert drawing._spots.batched_colors.tolist() == [list(mode_colour("stick"))]
        assert len(drawing._marks.points) > 0
        playing.playback.seek(0.5 * FALL)
        playing._since = np.inf
        playing.tick(0.0)
        assert not drawing._spots.visible
        assert not drawing._marks.visible
    finally:
        viewer.close()
