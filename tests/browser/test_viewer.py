"""The viewer as its users have it: in a browser, with a mouse and keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import gallery
from tests.browser.conftest import Sight, colours

pytest.importorskip("viser", reason="pip install axode[view]")
pytestmark = pytest.mark.browser

SMALL = {"width": 600, "height": 400}  # drawn without a GPU, so the fewer pixels the better
PASSIVE = "preventDefault inside passive event listener"  # of viser, when a drag begins
PATIENCE = 60.0  # [s] on a busy machine


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """Viewers to close, whatever happens."""
    viewers: list[Any] = []
    yield viewers
    for viewer in viewers:
        viewer.close()


def open_page(sight: Sight, viewers: list[Any], what: Any, **options: Any) -> Any:
    viewer = ax.view(what, port=0, open_browser=False, block=False, **options)
    viewers.append(viewer)
    viewer.drawing.shadows(False)
    sight.page.set_viewport_size(SMALL)
    sight.page.set_default_timeout(1000 * PATIENCE)
    sight.page.goto(viewer.url)
    sight.page.wait_for_selector("canvas")
    until(lambda: drawn(sight))
    return viewer


def drawn(sight: Sight) -> bool:
    return colours(scenery(sight)) > 200


def scenery(sight: Sight) -> np.ndarray:
    """The part of the page without the panel and the notice about software drawing."""
    return sight.picture()[150:, :270]


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


def type_into(sight: Sight, label: str, value: str) -> None:
    """The number beside a slider, as if typed."""
    text = sight.page.locator("label").filter(has_text=label).first
    number = text.locator("xpath=../../..").locator("input[type=text]").first
    number.fill(value)
    number.press("Enter")


def drag(sight: Sight, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press Ctrl and the left button at a place of the page, and move to another."""
    sight.page.mouse.move(*start)
    sight.page.keyboard.down("Control")
    sight.page.mouse.down()
    sight.page.mouse.move(*end, steps=8)


def ticks(sight: Sight) -> list[bool]:
    """Whether the axes of the first chart have ticks."""
    chart = "Object.values(window.__viserTestpoints.uplots)[0].chart"
    return sight.page.evaluate(f"{chart}.axes.map(axis => Boolean(axis._splits))")


@pytest.mark.slow
def test_a_trajectory_is_played_and_scrubbed(sight: Sight, opened: list[Any]) -> None:
    threads = set(threading.enumerate())
    model = gallery.build("differential_drive").derive().compile()
    run = ax.simulate(model, 4.0, input={"tau_R": 0.1, "tau_L": 0.2})
    viewer = open_page(
        sight, opened, run, follow=False, trails="all contacts", signals="kinetic", forces=True
    )
    until(lambda: ticks(sight) == [True, True])  # of a chart that appeared while it played
    sight.page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer.stage.playback.playing)
    type_into(sight, "time", "0.5")
    until(lambda: abs(viewer.stage.playback.elapsed - 0.5) < 0.01)
    first = scenery(sight)
    sight.page.get_by_role("button", name="Play").click()
    until(lambda: viewer.stage.playback.elapsed > 0.7)
    sight.page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer.stage.playback.playing)
    type_into(sight, "time", "3.5")
    until(lambda: abs(viewer.stage.playback.elapsed - 3.5) < 0.01)
    until(lambda: (np.abs(scenery(sight).astype(int) - first) > 30).any(axis=-1).mean() > 0.01)
    sight.page.mouse.click(120, 300)  # away from the panel
    sight.page.keyboard.press("j")  # a step back
    until(lambda: viewer.stage.playback.elapsed < 3.47)
    assert sight.complaints == [] and sight.strangers == []
    viewer.close()
    assert not {t for t in threading.enumerate() if t.name == "axode-viewer"} - threads


@pytest.mark.slow
def test_a_robot_is_driven(sight: Sight, opened: list[Any]) -> None:
    viewer = open_page(
        sight, opened, gallery.build("differential_drive"), drive="torque", follow=False
    )
    before = viewer.poses
    type_into(sight, "tau_R", "0.4")
    type_into(sight, "tau_L", "0.4")
    until(lambda: np.abs(viewer.poses - before).max() > 0.1)
    sight.page.get_by_role("button", name="Reset").click()
    until(lambda: viewer.stage.drive.time < 1.0 and not viewer.stage.drive.wanted.any())
    until(lambda: np.abs(viewer.poses - before).max() < 1e-6)
    sight.page.mouse.click(120, 300)  # away from the panel
    sight.page.keyboard.press("i")  # ahead
    until(lambda: (viewer.stage.drive.wanted > 0).all())
    until(lambda: np.abs(viewer.poses - before).max() > 0.01)
    sight.page.get_by_role("button", name="Reset").click()
    until(lambda: not viewer.stage.drive.nu.any())
    drag(sight, (160, 230), (220, 330))
    until(lambda: viewer.drawing.pull() is not None)
    until(lambda: viewer.stage.drive.nu.any())
    sight.page.mouse.up()
    sight.page.keyboard.up("Control")
    until(lambda: viewer.drawing.pull() is None)
    sight.page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer.stage.drive.running)
    ours = [said for said in sight.complaints if PASSIVE not in said]
    assert ours == [] and sight.strangers == []


@pytest.mark.slow
def test_steering_returns_when_its_key_comes_up(sight: Sight, opened: list[Any]) -> None:
    viewer = open_page(sight, opened, gallery.build("tricycle"), drive=True, follow=False)
    drive = viewer.stage.drive
    sight.page.mouse.click(120, 300)  # away from the panel
    sight.page.keyboard.press("j")
    until(lambda: viewer.stage.keys._reported)
    sight.page.keyboard.down("j")
    until(lambda: drive.wanted[0] > 0.1)
    sight.page.keyboard.up("j")
    until(lambda: not drive.wanted.any())
    assert sight.complaints == [] and sight.strangers == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["differential_drive", "five_axis_arm"])
def test_keys_that_drive_leave_the_camera(sight: Sight, opened: list[Any], name: str) -> None:
    """W and the arrows drive what rolls; of an arm they move the camera."""
    viewer = open_page(sight, opened, gallery.build(name), drive=True, follow=False)
    rolls = name == "differential_drive"
    (client,) = viewer._server.get_clients().values()
    sight.page.mouse.click(120, 300)  # away from the panel
    sight.page.wait_for_timeout(300)
    before = np.array(client.camera.position)
    for key in ("w", "ArrowUp"):
        viewer.stage.stop()
        sight.page.keyboard.down(key)
        sight.page.wait_for_timeout(400)
        sight.page.keyboard.up(key)
        if rolls:
            until(lambda: (viewer.stage.drive.wanted > 0).all())
    if rolls:
        np.testing.assert_allclose(client.camera.position, before, atol=1e-9)
    else:
        until(lambda: np.abs(np.array(client.camera.position) - before).max() > 1e-3)
        assert not viewer.stage.drive.wanted.any()
    assert sight.complaints == [] and sight.strangers == []
