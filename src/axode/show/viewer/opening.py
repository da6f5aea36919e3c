"""View: a mechanism, or what it did, in the browser."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument
from axode.kinematics.workspaces.workspace_result import Workspace
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.scene.scene import Array, Scene
from axode.model.model import Model
from axode.problems.simulate.scenario import Scenario
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.show.motion import RunPoses, scene_with
from axode.show.render.animation import travels
from axode.show.render.camera import Camera
from axode.show.render.painter import camera_of
from axode.show.viewer.drawing import Drawing, check_trails
from axode.show.viewer.drive import RealTimeRun
from axode.show.viewer.driving import Driving
from axode.show.viewer.playing import Playing
from axode.show.viewer.server import serve
from axode.show.viewer.viewer import Viewer

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

VIEW_DISTANCE = 1.15  # times the distance from which it just fits
ROOM = 1.25  # times that, for what is yet to move


def view(
    what: Trajectory | Scenario | Mechanism | Equations | Model,
    *,
    model: Model | None = None,
    drive: bool | str = False,
    start: Any = None,
    parameters: Mapping[str, float] | None = None,
    play: bool = True,
    speed: float = 1.0,
    loop: bool = True,
    run: int = 0,
    trails: str | Sequence[str] = (),
    signals: str | Sequence[str] = (),
    forces: bool = False,
    follow: bool | None = None,
    workspace: Workspace | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    block: bool | None = None,
) -> Viewer:
    """Show a mechanism in the browser: a trajectory is played, anything else can be driven.

    Args:
        what: A trajectory, or a `Scenario`, which is simulated; or a mechanism, its equations or a
            model, which stands at its start until it is run or driven from the panel.
        model: What made the trajectory, if it comes from a file.
        drive: Run at once; "torque" or "speed" is what the motors' sliders set.
        start: State where a drive starts, by name or in any other form that `simulate` takes; home
            at rest unless given.
        parameters: Values by name that a drive starts with; the defaults unless given.
        play: Whether a trajectory plays at once.
        speed: Playback speed; 1 is real time.
        loop: Whether it starts again at its end.
        run: Which run of a batch is first shown.
        trails: Bodies whose mass centres leave a trail, or "left contact" for a wheel's.
        signals: Columns whose curves are drawn.
        forces: Whether forces at the contacts are drawn.
        follow: Keep the mechanism in view; unless given, if it travels.
        workspace: Positions whose boundary is drawn around the mechanism.
        host: Address to listen on; this machine only by default.
        port: Port to listen on; the first free one from 8080 by default.
        open_browser: Whether to open the page.
        block: Stay until Ctrl-C; unless given, in scripts and not in interactive sessions.

    Returns:
        The viewer, with `url`, `wait()` and `close()`; a context manager.

    Raises:
        NotApplicable: if viser, from the extra `view`, is not installed; or for a trajectory from
            a file without its model.
        UnknownName: for a trail or a signal that is not there.
        InvalidArgument: for anything else to show, and for a port that is in use.
    """
    surface = None if workspace is None else _surface(workspace)
    names = (signals,) if isinstance(signals, str) else tuple(signals)
    looks = {
        "trails": (trails,) if isinstance(trails, str) else tuple(trails),
        "signals": names,
        "forces": forces,
    }
    if isinstance(what, Scenario):
        what = simulate(what)
    if isinstance(what, Trajectory):
        viewer = _play(
            what,
            model,
            run,
            looks,
            follow,
            (host, port),
            {"playing": play, "speed": float(speed), "loop": loop},
        )
    else:
        viewer = _driven(what, start, parameters or {}, drive, looks, follow, (host, port))
    if surface is not None:
        viewer.drawing.surface(*surface)
    return _open(viewer, open_browser, block)


def _play(
    run: Trajectory,
    model: Model | None,
    first: int,
    looks: dict[str, Any],
    follow: bool | None,
    where: tuple[str, int | None],
    how: dict[str, Any],
) -> Viewer:
    looks["signals"] = tuple(map(run.column_names.resolve, looks["signals"]))
    if not how["speed"] > 0:
        raise InvalidArgument(f"speed: must be > 0, got {how['speed']}")
    motion = RunPoses(run.run(first), model)
    scene = scene_with(motion.model, motion.run.parameters)
    check_trails(scene, looks["trails"])
    _, poses = motion.all_poses(12)
    follow = travels(scene, poses) if follow is None else follow
    server = serve(*where, label=scene.name)
    drawing = Drawing(server, scene, motion.poses(float(run.time[0])))
    viewer = Viewer(server, drawing, _camera(scene, poses, follow))
    viewer.start(
        lambda gui: Playing(
            gui, drawing, run, motion.model, first, own=viewer.own, follow=follow, **how, **looks
        )
    )
    return viewer


def _driven(
    what: Any,
    start: Any,
    parameters: Mapping[str, float],
    drive: bool | str,
    looks: dict[str, Any],
    follow: bool | None,
    where: tuple[str, int | None],
) -> Viewer:
    model = _model(what)
    signals = model.signals
    looks["signals"] = tuple(signals.resolve(name).name for name in looks["signals"])
    mode = drive if isinstance(drive, str) else "speed"
    driven = RealTimeRun(model, model.scene.size, start=start, mode=mode, parameters=parameters)
    scene = scene_with(model, driven.parameters)
    check_trails(scene, looks["trails"])
    poses = driven.poses()
    follow = bool(scene.touches) if follow is None else follow
    server = serve(*where, label=scene.name)
    drawing = Drawing(server, scene, poses, draggable=True)
    camera = _camera(scene, poses, follow)
    camera = replace(camera, distance=(1.0 if follow else ROOM) * camera.distance)
    viewer = Viewer(server, drawing, camera)
    viewer.start(
        lambda gui: Driving(
            gui, drawing, driven, own=viewer.own, running=bool(drive), follow=follow, **looks
        )
    )
    server.axode_guard.on_release = viewer.stage.keys.let_go
    return viewer


def _surface(workspace: Any) -> tuple[Array, Any]:
    """Vertices and triangles of a workspace's boundary."""
    if not isinstance(workspace, Workspace):
        raise InvalidArgument(f"workspace: expected a Workspace, got {type(workspace).__name__}")
    if tuple(workspace.axes) != ("x", "y", "z"):
        raise InvalidArgument(
            f"workspace: a surface in space needs one over x, y, z, got {', '.join(workspace.axes)}"
        )
    return workspace.boundary.vertices, workspace.boundary.faces


def _model(what: Any) -> Model:
    if isinstance(what, Model):
        return what
    if isinstance(what, Mechanism):
        what = what.derive()
    if hasattr(what, "compile") and hasattr(what, "mobility"):
        made: Model = what.compile()
        return made
    raise InvalidArgument(
        f"view shows a Trajectory, a Mechanism, its Equations or a Model, not {type(what).__name__}"
    )


def _camera(scene: Scene, poses: Array, follow: bool) -> Camera:
    """One that sees all poses, moved to where the first is if the view follows."""
    if follow:
        every = np.array(poses.reshape(-1, *poses.shape[-3:]))
        middle = every[:, :, :3, 3].mean(axis=1, keepdims=True)
        every[:, :, :3, 3] += middle[:1] - middle
        poses = every
    camera = camera_of(scene, poses, 1.0)
    return replace(camera, distance=VIEW_DISTANCE * camera.distance)


def _open(viewer: Viewer, open_browser: bool, block: bool | None) -> Viewer:
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    waits = not interactive and "ipykernel" not in sys.modules if block is None else block
    try:
        ending = "; Ctrl-C closes it" if waits else ""
        print(f"Axode shows '{viewer.drawing.scene.name}' at {viewer.url}{ending}", flush=True)
        if open_browser:
            viewer.open_browser()
        if waits:
            viewer.wait()
    except KeyboardInterrupt:  # before the wait began, or while it ended
        viewer.close()
        if not waits:
            raise
    return viewer
