"""The player of a run and its data: a section of a report, or alone in the cell of a notebook."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument, shortened
from axode.mechanism.scene.scene import Array, touch_points
from axode.names import title_words
from axode.results.interpolation import resample_picture
from axode.show.motion import RunPoses, scene_with
from axode.show.plot.choice import columns_of
from axode.show.render.painter import picture
from axode.show.style import need_matplotlib
from axode.show.web.scene_data import asset, pack_arrays, scene_data

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


PLAYER_SCRIPTS = ("scene.js", "curves.js")  # before that of the player
USUAL = ("independent", "coordinate", "input", "measure", "energy")  # signals unless named
MAX_SIGNALS = 40  # of these
LOWEST, HIGHEST = 240, 4000  # [px]

PLAYER = """<section id="player">
<canvas id="scene" aria-label="The mechanism in three dimensions"></canvas>
<img id="still" alt="The mechanism" src="data:image/png;base64,{still}">
<div id="controls"><button id="play" type="button">Play</button>
<input id="scrub" type="range" min="0" value="0" aria-label="Time">
<span id="clock"></span>
<label>Speed <select id="speed"><option value="0.1">0.1</option><option value="0.25">0.25</option>
<option value="0.5">0.5</option><option value="1" selected>1</option><option value="2">2</option>
<option value="5">5</option><option value="10">10</option></select></label>
<label><input id="loop" type="checkbox"> loop</label>
<label><input id="follow" type="checkbox" checked> follow</label>
<label><input id="trails" type="checkbox" checked> tracks</label></div>
<div id="signals"><label>Signal <select id="signal"></select></label><span id="value"></span>
<canvas id="chart"></canvas></div>
<noscript><img alt="The mechanism" src="data:image/png;base64,{still}"></noscript>
</section>
<script type="application/json" id="playback">{data}</script>
<script>{script}</script>"""

# As high as its frame: the mechanism gets what controls and curve leave.
CELL_STYLE = """body { max-width: none; padding: 0 2px; font-size: 14px; }
#player { display: flex; flex-direction: column; height: calc(100vh - 4px); }
#player canvas#scene { flex: 1 1 0; min-height: 6rem; }
#chart { height: 9rem; }"""
CELL = """body { max-width: none; padding: 0 2px; font-size: 14px; }
#player canvas#scene { height: max(8rem, calc(100vh - 16.5rem)); }"""
CELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{style}</style></head><body>{player}</body></html>"""
FRAME = """<iframe srcdoc="{page}" sandbox="allow-scripts" title="{title}" loading="lazy"
style="width: 100%; height: {height}px; border: 0"></iframe>"""
RATE = 50.0  # frames per second, unless that would be too many
MOST, FEWEST = 1500, 200
COMPACT = 1_000_000  # characters of what moves, in a notebook
CHARACTERS = 16 / 3  # per number


def player_section(model: Model, run: Trajectory | None, **limits: Any) -> str:
    """A section of a page with the mechanism in motion, and its scripts."""
    from matplotlib.image import imsave

    scene, poses = model.scene, model.poses(model.home)
    if run is not None:
        scene = scene_with(model, run.parameters)
        poses = RunPoses(run, model).poses(float(run.time[0]))
    # no tag and no comment, which would change how a browser reads the script, begins without <
    data = json.dumps(playback(model, run, **limits), separators=(",", ":"))
    scripts = [*(asset("web", name) for name in PLAYER_SCRIPTS), asset("report", "player.js")]
    png = io.BytesIO()
    imsave(png, picture(scene, poses), format="png")
    return PLAYER.format(
        still=base64.b64encode(png.getvalue()).decode("ascii"),
        data=data.replace("<", "\\u003c"),
        script="\n".join(scripts),
    )


def page_style() -> str:
    """Style sheet of pages with a player."""
    return asset("report", "report.css")


def check_run(model: Model, run: Trajectory, what: str) -> None:
    """Check that there is one run, and that it is one of this model.

    Raises:
        InvalidArgument: with the remedy.
    """
    if run.batch:
        raise InvalidArgument(
            f"a {what} covers one run, and this is a batch of shape {run.batch}.\n"
            "  Remedy: batch.run(0)"
        )
    if run.name and run.name != model.name:
        raise InvalidArgument(f"the run is one of '{run.name}', not of '{model.name}'")
    missing = [name for name in model.coordinates if name not in run]
    if missing:
        raise InvalidArgument(f"the run has no column for {', '.join(missing)}")


@dataclass(frozen=True)
class CellPlayer:
    """The player of a run, which a notebook shows in a cell.

    Attributes:
        name: Name of the mechanism.
        page: The player as a page of its own, which needs no network.
        height: Height of the cell [px].
    """

    name: str
    page: str
    height: int

    def __repr__(self) -> str:
        return f"Player('{self.name}': {len(self.page) / 1000:.0f} kB; a notebook shows it)"

    def _repr_html_(self) -> str:
        """A frame that holds the page, so that several players share a notebook."""
        title = html.escape(f"{title_words(self.name)} in motion")
        return FRAME.format(page=html.escape(self.page), title=title, height=self.height)


def cell_player(
    run: Trajectory, model: Model | None, signals: Sequence[str], height: int
) -> CellPlayer:
    """Make the player of a run; see `Trajectory.player`."""
    need_matplotlib()
    model = model or run.model
    if model is None:
        raise InvalidArgument(
            "a trajectory from a file does not know its model.\n  Remedy: run.player(model=model)"
        )
    check_run(model, run, "player")
    if not isinstance(height, int) or not LOWEST <= height <= HIGHEST:
        raise InvalidArgument(
            f"player, height: from {LOWEST} to {HIGHEST} pixels, not {shortened(height)}"
        )
    if not all(isinstance(word, str) for word in signals):
        raise InvalidArgument(f"player: names of signals are texts, got {shortened(signals)}")
    names = [name for word in signals for name in columns_of(run, word)]
    if not signals:
        names = [name for kind in USUAL for name in run.columns(kind)][:MAX_SIGNALS]
    section = player_section(model, run, signals=list(dict.fromkeys(names)), compact=True)
    page = CELL.format(
        title=html.escape(title_words(model.name)), style=page_style() + CELL_STYLE, player=section
    )
    return CellPlayer(model.name, page, height)


def playback(
    model: Model,
    run: Trajectory | None,
    signals: Sequence[str] | None = None,
    *,
    compact: bool = False,
) -> dict[str, Any]:
    """All that moves, in JSON's own types.

    Args:
        model: Whose motion.
        run: What it did; without a run, the mechanism is at home.
        signals: Columns to take along; all unless given.
        compact: Whether a long run has fewer frames.
    """
    names = () if run is None else run.names if signals is None else tuple(signals)
    if run is None:
        frames, times, scene = None, np.zeros(1), model.scene
        poses = model.poses(model.home)[np.newaxis]
    else:
        numbers = len(names) + 7 * len(model.bodies) + 3 * len(model.scene.touches)
        fitting = max(FEWEST, int(COMPACT / (CHARACTERS * max(numbers, 1))))
        frames = resample_picture(run, _times(run, min(MOST, fitting) if compact else MOST))
        scene = scene_with(model, run.parameters)
        times, poses = RunPoses(frames, model).all_poses(len(frames))
    tracks = touch_points(scene, poses)
    return {
        **scene_data(scene),
        "time": pack_arrays(times),
        "poses": pack_arrays(_vectors(scene.stance @ poses)),
        "tracks": [
            {"name": touch.name, "points": pack_arrays(tracks[:, k])}
            for k, touch in enumerate(scene.touches)
            if frames is not None
        ],
        "signals": [] if frames is None else _signals(frames, names),
    }


def _times(run: Trajectory, most: int) -> Array:
    start, end = float(run.time[0]), float(run.ended)
    count = min(most, max(2, round(abs(end - start) * RATE) + 1))
    return np.linspace(start, end, count) if end != start else np.array([start])


def _vectors(poses: Array) -> Array:
    """Position and quaternion x, y, z, w of each body: (T, bodies, 7)."""
    from scipy.spatial.transform import Rotation

    flat = poses.reshape(-1, 4, 4)
    turns = Rotation.from_matrix(flat[:, :3, :3]).as_quat()
    return np.concatenate([flat[:, :3, 3], turns], axis=-1)


def _signals(run: Trajectory, names: Sequence[str]) -> list[dict[str, Any]]:
    onward = 1 if run.time[-1] >= run.time[0] else -1  # a run backwards is played forwards
    return [
        {
            "name": name,
            "unit": run.unit(name),
            "kind": run.kinds[name],
            "values": pack_arrays(run[name][::onward]),
        }
        for name in names
    ]
