"""A run as a recording of Rerun: solids once, then poses, forces and numbers over time."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.disk.atomic import as_path, write_atomically
from axode.errors import FileError, require_package
from axode.mechanism.scene.scene import cord_ends
from axode.show.logs.logged_run import LoggedRun
from axode.show.motion import usual_force
from axode.show.render.meshes import FORCES, force_vectors, meshes
from axode.show.viewer.drawing import SPRING

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

TIMELINE = "time"  # its name in Rerun
WORLD, BODIES, SIGNALS = "world", "bodies", "signals"  # entities below which everything is
PANELS = {  # titles of plots, and kinds of columns in each
    "coordinates": ("coordinate",),
    "speeds": ("speed", "independent"),
    "inputs": ("input",),
    "energies": ("energy",),
    "measures": ("measure",),
    "residual": ("residual",),
    "forces": ("force",),
    "powers": ("power",),
}


def write_rerun(
    run: Trajectory,
    path: str | PathLike[str] | None,
    *,
    model: Model | None,
    rate: float | None,
    signals: Sequence[str] | None,
    forces: bool,
) -> Path | None:
    """Write a run to a file of Rerun, or show it in a window; see `Trajectory.to_rerun`."""
    rr = require_rerun()
    target = None if path is None else as_path(path)
    if target is not None and target.suffix.lower() != ".rrd":
        raise FileError(f"'{path}': the name of a recording of Rerun ends in .rrd")
    logged = LoggedRun(run, model, rate)
    if signals is None:
        left_out = () if forces else run.columns("force")
        signals = [name for name in run.names if name not in left_out]
    recording = rr.RecordingStream("axode")
    memory = recording.spawn() if target is None else recording.memory_recording()
    log = _RerunLog(rr, recording, logged)
    log.solids()
    log.motion()
    if forces and logged.contacts:
        log.arrows()
    log.numbers(run, logged.signals(signals, forces=forces))
    recording.flush()
    if target is not None:
        write_atomically(target, memory.drain_as_bytes())
    return target


def require_rerun() -> Any:
    """Import Rerun.

    Raises:
        NotApplicable: if it is not installed.
    """
    return require_package("rerun", "to_rerun needs rerun-sdk", "rerun")


class _RerunLog:
    """What is sent of one run; all samples of an entity at once."""

    def __init__(self, rr: Any, recording: Any, logged: LoggedRun) -> None:
        self._rr, self._recording, self._logged = rr, recording, logged
        stamps = np.rint(logged.time * 1e9).astype("timedelta64[ns]")
        self._times = [rr.TimeColumn(TIMELINE, duration=stamps)]
        name = logged.model.name
        recording.send_recording_name(name or "run")

    def solids(self) -> None:
        """Send what does not change: solids of all bodies, the direction that points up."""
        rr, scene = self._rr, self._logged.scene
        self._static("/", rr.ViewCoordinates.RIGHT_HAND_Z_UP)
        self._static(WORLD, rr.Transform3D(mat3x3=scene.stance[:3, :3]))
        for k, mesh in enumerate(meshes(scene)):
            solid = rr.Mesh3D(
                vertex_positions=mesh.vertices,
                vertex_normals=mesh.normals,
                triangle_indices=mesh.triangles,
                albedo_factor=mesh.colour,
            )
            self._static(self._path(WORLD, BODIES, mesh.body, f"mesh{k}"), solid)

    def motion(self) -> None:
        """Send the poses of all bodies, and the ends of springs."""
        rr, logged = self._rr, self._logged
        for k, body in enumerate(logged.model.bodies):
            poses = rr.Transform3D.columns(
                translation=logged.positions[:, k], quaternion=logged.quaternions[:, k]
            )
            self._send(self._path(WORLD, BODIES, body), poses)
        ends = cord_ends(logged.scene, logged.poses)
        for k in range(len(logged.scene.cords)):
            entity = self._path(WORLD, f"spring{k}" if k else "spring")
            self._static(entity, rr.LineStrips3D.from_fields(colors=[SPRING]))
            self._send(entity, rr.LineStrips3D.columns(strips=ends[:, k]))

    def arrows(self) -> None:
        """Send the contact forces as arrows: longitudinal, lateral and normal."""
        rr, logged = self._rr, self._logged
        forces = np.full((len(logged.time), len(logged.scene.touches), 3), np.nan)
        forces[:, list(logged.contacts.values())] = logged.contact_forces
        usual = usual_force(forces)
        starts, vectors = force_vectors(logged.scene, logged.poses, forces, usual)
        count = vectors.shape[1] * vectors.shape[2]
        colours = np.tile(np.array(FORCES, np.uint8), (vectors.shape[1], 1))
        entity, radius = self._path(WORLD, "contact_forces"), 0.012 * logged.scene.size
        self._static(entity, rr.Arrows3D.from_fields(colors=colours, radii=[radius]))
        columns = rr.Arrows3D.columns(
            origins=np.broadcast_to(starts[:, :, np.newaxis], vectors.shape).reshape(-1, 3),
            vectors=vectors.reshape(-1, 3),
        )
        self._send(entity, columns.partition(np.full(len(logged.time), count)))

    def numbers(self, run: Trajectory, names: Sequence[str]) -> None:
        """Send columns as numbers, and one plot for each kind of them."""
        rr = self._rr
        for name in names:
            entity, unit = self._signal(name), run.unit(name)
            label = f"{name} [{unit}]" if unit else name
            self._static(entity, rr.SeriesLines(names=label))
            self._send(entity, rr.Scalars.columns(scalars=self._logged.column(name)))
        self._recording.send_blueprint(self._layout(run, names))

    def _layout(self, run: Trajectory, names: Sequence[str]) -> Any:
        import rerun.blueprint as rrb

        plots = []
        for title, kinds in PANELS.items():
            shown = [self._signal(name) for name in names if run.kinds[name] in kinds]
            if shown:
                plots.append(rrb.TimeSeriesView(name=title, origin="/", contents=shown))
        scene = rrb.Spatial3DView(name=run.name or "run", origin="/", contents=f"/{WORLD}/**")
        return rrb.Blueprint(rrb.Horizontal(scene, rrb.Tabs(*plots)) if plots else scene)

    def _signal(self, name: str) -> str:
        return self._path(SIGNALS, *filter(None, name.split(".")))

    def _path(self, *parts: str) -> str:
        path: str = self._rr.new_entity_path(list(parts))
        return path

    def _static(self, entity: str, what: Any) -> None:
        self._recording.log(entity, what, static=True, strict=True)

    def _send(self, entity: str, columns: Any) -> None:
        self._recording.send_columns(entity, indexes=self._times, columns=columns, strict=True)
