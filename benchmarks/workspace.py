"""Section `workspace`: margins and singularities of a hexapod over a million poses, compiled and
in plain NumPy; the boundary; inverse kinematics of a million poses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax

LIMITS = {"l_*": (0.9, 1.5), "cross_*": 0.7, "ball_*": 0.8}
BOUNDS = {"x": (-0.75, 0.75), "y": (-0.75, 0.75), "z": (0.5, 1.5)}
CELLS = 100  # per axis: 101^3 poses
Row = dict[str, Any]


class PlainHexapod:
    """The same hexapod in vectorized NumPy, from its points alone."""

    def __init__(self, robot: ax.Kinematics, length: float) -> None:
        home = robot.home_poses
        beta = np.radians([10, 110, 130, 230, 250, 350])
        pi = np.radians([50, 70, 170, 190, 290, 310])
        self.base = np.stack([np.cos(beta), np.sin(beta), 0 * beta], axis=1)
        self.top = np.stack([0.5 * np.cos(pi), 0.5 * np.sin(pi), 0 * pi - 0.05], axis=1)
        self.length = length
        span = home[robot.output][:3, 3] + self.top - self.base
        self.home = span / np.linalg.norm(span, axis=1, keepdims=True)

    def measure(self, r: np.ndarray) -> tuple[np.ndarray, ...]:
        """Margin, active limit, determinant and dexterity at the orientation of home."""
        q = r[:, np.newaxis] + self.top
        span = q - self.base
        lengths = np.linalg.norm(span, axis=-1)
        lines = span / lengths[..., np.newaxis]
        low, high = LIMITS["l_*"]
        angle = np.arccos(np.clip((lines * self.home).sum(axis=-1), -1, 1))
        margins = np.stack(
            [
                (lengths - low) / (high - low),
                (high - lengths) / (high - low),
                1 - angle / LIMITS["cross_*"],
                1 - angle / LIMITS["ball_*"],
            ],
            axis=-1,
        ).reshape(len(r), -1)
        active = margins.argmin(axis=1)
        arms = np.broadcast_to(self.top, lines.shape)
        J = np.concatenate([lines, np.cross(arms, lines) / self.length], axis=-1)
        s = np.linalg.svd(J, compute_uv=False)
        return margins.min(axis=1), active, np.linalg.det(J), s[:, -1] / s[:, 0]


def measured(work: Callable[[], Any], repeat: int) -> tuple[Row, Any]:
    """Median seconds of the clock and of the processors, and the last result."""
    clock, processors, made = [], [], None
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        made = work()
        clock.append(time.perf_counter() - wall)
        processors.append(time.process_time() - cpu)
    return {"seconds": float(np.median(clock)), "cpu seconds": float(np.median(processors))}, made


def workspace(console: Console, repeat: int) -> dict[str, object]:
    """Compare with NumPy, then measure."""
    robot = ax.Kinematics(ax.gallery.build("flight_simulator"))

    def whole() -> Any:
        return robot.workspace(limits=LIMITS, bounds=BOUNDS, grid=CELLS)

    began = time.perf_counter()
    first = whole()
    rows: list[Row] = [{"what": "first call, compilation included"}]
    rows[0] |= {"poses": first.info["poses"], "seconds": time.perf_counter() - began}
    found, ws = measured(whole, repeat)
    rows.append({"what": "margins and singularities", "poses": ws.info["poses"], **found})
    plain = PlainHexapod(robot, ws.info["length"])
    points = ws.points.reshape(-1, 3)
    parts = np.array_split(points, 64)

    def by_numpy() -> Any:
        return [np.concatenate(x) for x in zip(*map(plain.measure, parts), strict=True)]

    found, numbers = measured(by_numpy, 1)
    rows.append({"what": "the same in vectorized NumPy", "poses": len(points), **found})
    _check(ws, numbers)
    found, mesh = measured(lambda: whole().boundary, max(1, repeat // 2))
    rows.append({"what": "with the boundary", "poses": len(points), **found})
    poses = {name: points[:, k] for k, name in enumerate("xyz")}
    found, _ = measured(lambda: robot.inverse(poses), repeat)
    rows.append({"what": "inverse kinematics", "poses": len(points), **found})
    _print(console, rows)
    about = {
        "volume": ws.size,
        "volume error": ws.size_error,
        "triangles": len(mesh.faces),
        "limits": ws.active_shares,
    }
    return {"rows": rows, **about}


def _check(ws: Any, numbers: list[np.ndarray]) -> None:
    """Stop where NumPy finds something else."""
    margin, _, determinant, dexterity = numbers
    gaps = {
        "margin": np.abs(ws.margin.ravel() - margin).max(),
        "determinant": np.abs(ws.determinant.ravel() - determinant).max(),
    }
    for name, gap in gaps.items():
        assert gap < 1e-12, f"{name} differs by {gap:.2g}"
    off = np.abs(ws.dexterity.ravel() / dexterity - 1).max()
    assert off < 0.01, f"dexterity differs by {100 * off:.2g} %"


def _print(console: Console, rows: list[Row]) -> None:
    table = Table("", "poses", "s", "CPU s", "poses/s", title="Workspace of a hexapod")
    for row in rows:
        cpu = row.get("cpu seconds")
        table.add_row(
            row["what"],
            f"{row['poses']:,}",
            f"{row['seconds']:.3f}",
            "" if cpu is None else f"{cpu:.3f}",
            f"{row['poses'] / row['seconds']:.3g}",
        )
    console.print(table)


def summary(found: dict[str, Any], on_gpu: dict[str, Any] | None) -> list[list[str]]:
    """Rows of a table for the manual: what, poses, seconds, processor seconds, poses per second.

    Args:
        found: Numbers that this section saved.
        on_gpu: What `gpu/workspace.py` wrote, if that was run.
    """
    rows = [
        [
            row["what"],
            f"{row['poses']:.3g}",
            f"{row['seconds']:.3f}",
            f"{row['cpu seconds']:.3f}" if "cpu seconds" in row else "-",
            f"{row['poses'] / row['seconds']:.2g}",
        ]
        for row in found["rows"]
    ]
    for row in (on_gpu or {"rows": ()})["rows"]:
        what = f"margins and singularities, {row['precision']}, {(on_gpu or {})['gpu']}"
        seconds = row["seconds"]
        rows.append([what, f"{row['poses']:.3g}", f"{seconds:.3f}", "-", f"{row['poses/s']:.2g}"])
    return rows
