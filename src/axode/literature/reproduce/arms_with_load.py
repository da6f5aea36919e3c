"""Two arms that hold a common load, after sections II and III of Yesiloglu and others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from axode.gallery import build
from axode.literature.reproduce.item import (
    ItemResult,
    apart,
    at_states,
    by_formulations,
    columns_of,
    from_start,
    item,
    largest,
    methods_panel,
    misprinted,
    our_curves,
    over_time,
    rows_beside,
    run_curves,
    states_of,
    vanishing,
)
from axode.mechanism.elements.joints import Fixed
from axode.mechanism.mechanism import Mechanism
from axode.numerics.tolerances import NEGLIGIBLE, NOTICEABLE
from axode.problems.inputs.inputs import Sampled
from axode.problems.inverse.inverse import inverse_dynamics
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.formulations.spatial_operators import SpatialOperatorFormulation

Array = npt.NDArray[np.float64]
DATA = {  # the source has no numbers
    "L1": 0.5,
    "L2": 0.4,
    "L3": 0.2,
    "m1": 2.0,
    "m2": 1.5,
    "m3": 0.6,
    "base": 1.2,
    "mc": 3.0,
    "Jc": 0.05,
    "lc": 0.15,
    "g": 9.81,
}
ONCE = "(1 - cos(2 * pi * t)) / 2"  # there and back in 1 s
MOTION = {"X": f"0.62 + 0.06 * {ONCE}", "Y": f"0.55 - 0.08 * {ONCE}", "F": f"0.2 - 0.3 * {ONCE}"}
INDEPENDENT = ("along", "across", "F_dot")
JOINTS = tuple(f"{arm}{k}" for arm in (1, 2) for k in (1, 2, 3))
DURATION, PERIOD = 1.0, 0.001  # [s], between samples of the torques
FEW = 40  # samples from one state at which the source's methods are taken to the next
REFERENCE = "recursive"
STRAYS = NOTICEABLE  # [m, rad] in 1 s, under torques joined by lines and nothing else
PRINT_OFF = 1e3  # [rad/s²] that (9) may be off by


class UnbiasedFormulation(SpatialOperatorFormulation):
    """The six steps as (9) sums them up: without the closure's own accelerations."""

    @property
    def closure(self) -> tuple[SX, SX]:
        """B alone."""
        B, beta = super().closure
        return B, SX.zeros(beta.shape)


def arms_in_grip(**values: float) -> Mechanism:
    """The arms alone, each gripping the other where the load's centre would be."""
    p = DATA | values
    bot = build("cooperating_arms", load=False, **p)
    ends = {"at": (p["L3"] + p["lc"], 0, 0), "child_at": (p["L3"] - p["lc"], 0, 0)}
    bot.add_loop("grip", Fixed(), parent="link13", child="link23", **ends)
    return bot


@item("arms-methods", "yesiloglu", "two arms with a common load, by every method")
def arms() -> ItemResult:
    """Torques that carry the load, the motion for them, and accelerations by every method."""
    robot = build("cooperating_arms", **DATA)
    model = robot.derive(independent=INDEPENDENT).compile("interpreter")
    asked = inverse_dynamics(model, MOTION, times=DURATION, save_every=PERIOD)
    torques = {f"tau{joint}": asked[f"tau{joint}"] for joint in JOINTS}
    start = tuple(values[0] for values in states_of(model, asked)[:2])
    found = simulate(
        model,
        DURATION,
        start=start,
        save_every=PERIOD,
        progress=False,
        input=Sampled(torques, PERIOD, between="linear"),
    )
    few = asked.resample(asked.time[::FEW])
    speeds = [f"theta{joint}_dot" for joint in JOINTS]
    by = by_formulations(robot, INDEPENDENT, few, speeds)
    known = by.pop(REFERENCE)
    off = {name: np.abs(values - known).max(axis=1) for name, values in by.items()}
    grip = arms_in_grip().derive()
    by_9 = at_states(grip, few, UnbiasedFormulation(grip.system).six_steps.total)[0][..., 0]
    forces = _tip_forces(few, {row: few[f"{row}.force"] for row in model.rows})
    together = robot.derive("multipliers", INDEPENDENT)
    values = at_states(together, few, together.multipliers)[0][..., 0]
    tips = _tip_forces(few, dict(zip(together.rows, values.T, strict=True)))
    strayed = max(apart(asked[name], found[name]) for name in MOTION)
    checks = [
        *(
            vanishing(
                f"{name}, joint accelerations off by",
                largest(values),
                "rad/s²",
                within=NEGLIGIBLE * largest(known),
            )
            for name, values in off.items()
        ),
        vanishing(
            "joint accelerations by (9) as printed off by",
            apart(by_9, known),
            "rad/s²",
            within=NEGLIGIBLE * largest(known),
            why="by erratum D-2 the rate of the closure at zero accelerations is missing, and the "
            "load weighs nothing",
            explained=PRINT_OFF,
        ),
        vanishing(
            "forces of the arms on the load off those by all equations at once by",
            apart(forces, tips),
            "N, N m",
            within=NEGLIGIBLE * largest(tips),
        ),
        vanishing(
            "direct dynamics under the torques of inverse dynamics strays by",
            strayed,
            "m or rad",
            within=STRAYS,
        ),
    ]
    labels = [rf"$\ddot\theta_{{{joint}}}$" for joint in JOINTS]
    accelerations = [
        *our_curves(few.time, known.T, labels),
        *misprinted(few.time, by_9.T, "as printed"),
    ]
    grips = our_curves(few.time, forces.T, ("moment 1", "x 1", "y 1", "moment 2", "x 2", "y 2"))
    torque_labels = {f"tau{joint}": rf"$T_{{{joint}}}$" for joint in JOINTS}
    named = {name: name for name in MOTION}
    panels = [
        over_time("motion of the load", "from the start [m, rad]", from_start(found, asked, named)),
        over_time("torques", "[N m]", run_curves(asked, torque_labels)),
        over_time("what the arms exert on the load", "[N, N m]", grips),
        over_time("accelerations of the joints", "[rad/s²]", accelerations),
        methods_panel("'recursive'", {name: largest(values) for name, values in off.items()}),
    ]
    table = columns_of(asked, (*MOTION, *(f"theta{joint}" for joint in JOINTS), *torques))
    table |= rows_beside(found, MOTION, "by direct dynamics", (found[name] for name in MOTION))
    return ItemResult(table, panels, CAPTION, checks)


CAPTION = (
    "Two arms of three links carry a load of 3 kg there and back in 1 s, with the least torques "
    "that do so; direct dynamics under these torques, applied at 1000 Hz, strays a little. "
    "The source derives its six steps and has neither numbers nor results; the data are the "
    "gallery's. Dashed: (9) as printed, without the closure's bias and the load (D-2). "
    "The last panel has the joint accelerations by all formulations that take the arms, "
    "among them the six steps that (9) and (10) sum up ('spatial_operators') and all equations at "
    "once ('multipliers'), each less the formulation 'recursive'. Velocities, "
    "accelerations and forces of the links are those of (1) to (4), (28) and (29); closure bias "
    "and load inertia, which the printed steps lack, are put in (errata D-1 and D-2)."
)


def _tip_forces(run: Trajectory, rows: Mapping[str, Array]) -> Array:
    """What the grips of the mechanism exert on the load: moment, x, y of either arm."""
    c, s = np.cos(run["F"]), np.sin(run["F"])
    found = []
    for arm in (1, 2):  # the grip's own rows are what the arm feels, in the load's axes
        moment, along, across = (-rows[f"grip{arm}.{row}"] for row in ("rz", "x", "y"))
        found += [moment, c * along - s * across, s * along + c * across]
    return np.array(found).T
