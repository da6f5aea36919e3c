"""Two arms that hold a common load, after sections II and III of Yesiloglu and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.gallery import build
from axode.literature.cooperating_arms import Arm, ArmLink, ArmsOfSource, Lump
from axode.literature.reproduce.item import FigureCurve, FigurePanel, ItemResult
from axode.literature.reproduce.measuring import apart, largest
from axode.literature.reproduce.verdict import Check
from axode.model.model import Model
from axode.problems.inverse.inverse import inverse
from axode.problems.simulate.inputs import Sampled
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.formulations import FORMULATIONS

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
STRAYS = 1e-3  # [m, rad] in 1 s, under torques joined by lines and nothing else
PRINT_OFF = 1e3  # [rad/s²] that (9) may be off by
AGREE = 1e-9  # of the largest acceleration or force
PLANE = [2, 3, 4]  # of a spatial vector: about z, along x, along y
TIME = "t [s]"


def arms() -> ItemResult:
    """Torques that carry the load, the motion for them, and accelerations by every method."""
    model = _equations(REFERENCE).compile("interpreter")
    asked = inverse(model, MOTION, times=DURATION, save_every=PERIOD)
    torques = {f"tau{joint}": asked[f"tau{joint}"] for joint in JOINTS}
    start = tuple(
        np.array([asked[name][0] for name in names])
        for names in (model.coordinates, model.independent)
    )
    found = simulate(
        model,
        DURATION,
        start=start,
        save_every=PERIOD,
        progress=False,
        input=Sampled(torques, PERIOD, between="linear"),
    )
    few = asked.resample(asked.time[::FEW])
    ours = _by_formulations(model, few)
    theirs, tips = _by_the_source(few)
    by_9 = theirs.pop("(9) as printed")
    known = ours.pop(REFERENCE)
    off = {name: np.abs(values - known).max(axis=1) for name, values in (ours | theirs).items()}
    held = _tip_forces(few)
    strayed = max(apart(asked[name], found[name]) for name in MOTION)
    checks = [
        *(
            Check(
                f"{name}, joint accelerations off by",
                largest(values),
                0.0,
                AGREE * largest(known),
                "rad/s²",
            )
            for name, values in off.items()
        ),
        Check(
            "joint accelerations by (9) as printed off by",
            apart(by_9, known),
            0.0,
            AGREE * largest(known),
            "rad/s²",
            why="by erratum D-2 the rate of the closure at zero accelerations is missing, and the "
            "load weighs nothing",
            explained=PRINT_OFF,
        ),
        Check(
            "forces of the arms on the load off those by all equations at once by",
            apart(held, tips),
            0.0,
            AGREE * largest(tips),
            "N, N m",
        ),
        Check(
            "direct dynamics under the torques of inverse dynamics strays by",
            strayed,
            0.0,
            STRAYS,
            "m or rad",
        ),
    ]
    return ItemResult(_table(asked, found), _panels(asked, found, few, held, off), CAPTION, checks)


CAPTION = (
    "Two arms of three links carry a load of 3 kg there and back in 1 s, with the least torques "
    "that do so; direct dynamics under these torques, applied at 1000 Hz, strays a little. "
    "The source derives its six steps and has neither numbers nor results; the data are the "
    "gallery's. The last panel has the joint accelerations by all formulations that take the arms, "
    "by the six steps that (9) and (10) sum up and by the reduced order with half of the load on "
    "either arm, and by all equations at once, each less the formulation 'recursive'. Velocities, "
    "accelerations and forces of the links are those of (1) to (4), (28) and (29); closure bias "
    "and load inertia, which the printed steps lack, are put in (errata D-1 and D-2)."
)


def _equations(formulation: str) -> Any:
    return build("cooperating_arms", **DATA).derive(formulation, INDEPENDENT)


def _by_formulations(model: Model, run: Trajectory) -> dict[str, Array]:
    """Accelerations of the six joints, (samples, 6), by formulation."""
    q, nu, u = (
        np.stack([run[name] for name in names], axis=-1)
        for names in (model.coordinates, model.independent, model.inputs)
    )
    columns = [model.speed_names.index(f"theta{joint}_dot") for joint in JOINTS]
    found = {}
    for name in FORMULATIONS:
        try:
            own = _equations(name).compile("interpreter")
            found[name] = own.accelerations(q, nu, own.forward_dynamics(q, nu, u))[:, columns]
        except NotApplicable:  # made for other mechanisms
            continue
    return found


def _by_the_source(run: Trajectory) -> tuple[dict[str, Array], Array]:
    """Accelerations by the source's methods, and what the arms exert on the load, (samples, 6)."""
    rows, forces = [], []
    for k in range(len(run.time)):
        state = {name: float(run[name][k]) for name in run.names}
        torques = [state[f"tau{joint}"] for joint in JOINTS]
        whole, shared = cooperation(DATA, state, shared=False), cooperation(DATA, state)
        accelerations, _, tips = whole.with_load(torques)
        rows.append(
            {
                "six steps": shared.six_steps(torques).total,
                "reduced order": shared.by_reduced_order(torques),
                "all at once": accelerations,
                "(9) as printed": whole.equation_9(torques),
            }
        )
        forces.append(tips.reshape(2, 6)[:, PLANE].ravel())
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}, np.array(forces)


def cooperation(
    p: Mapping[str, float], state: Mapping[str, float], *, shared: bool = True
) -> ArmsOfSource:
    """Both arms at a state as spatial operators; the load on their last links, or by itself."""
    meet = (state["X"], state["Y"], 0.0)
    arms = []
    for arm in (1, 2):
        at, angle, links = np.array([(arm - 1) * p["base"], 0.0, 0.0]), 0.0, []
        for k in (1, 2, 3):
            length, mass = p[f"L{k}"], p[f"m{k}"]
            angle += state[f"theta{arm}{k}"]
            rod = length * np.array([np.cos(angle), np.sin(angle), 0.0])
            lumps = [_lump(mass, at + rod / 2, mass * length**2 / 12)]
            if shared and k == 3:
                lumps.append(_lump(p["mc"] / 2, meet, p["Jc"] / 2))
            links.append(
                ArmLink(tuple(at), np.eye(6)[:, 2:3], [state[f"theta{arm}{k}_dot"]], lumps)
            )
            at = at + rod
        arms.append(Arm(links, tuple(at)))
    load = None if shared else _lump(p["mc"], meet, p["Jc"])
    return ArmsOfSource(arms, meet, (0.0, -p["g"], 0.0), load)


def _lump(mass: float, centre: Sequence[float] | Array, moment: float) -> Lump:
    return Lump(mass, tuple(centre), moment * np.eye(3))


def _tip_forces(run: Trajectory) -> Array:
    """What the grips of the mechanism exert on the load: moment, x, y of either arm."""
    c, s = np.cos(run["F"]), np.sin(run["F"])
    rows = []
    for arm in (1, 2):  # the grip's own rows are what the arm feels, in the load's axes
        moment, along, across = (-run[f"grip{arm}.{row}.force"] for row in ("rz", "x", "y"))
        rows += [moment, c * along - s * across, s * along + c * across]
    return np.array(rows).T


def _panels(
    asked: Trajectory, found: Trajectory, few: Trajectory, held: Array, off: Mapping[str, Array]
) -> list[FigurePanel]:
    t = asked.time
    moved = [FigureCurve(t, found[name] - asked[name][0], name) for name in MOTION]
    grey = [
        FigureCurve(t, asked[name] - asked[name][0], "asked for" * (name == "X"), "printed")
        for name in MOTION
    ]
    names = ("moment 1", "x 1", "y 1", "moment 2", "x 2", "y 2")
    return [
        FigurePanel("motion of the load", TIME, "from the start [m, rad]", (*moved, *grey)),
        FigurePanel(
            "torques",
            TIME,
            "[N m]",
            tuple(FigureCurve(t, asked[f"tau{joint}"], rf"$\tau_{{{joint}}}$") for joint in JOINTS),
        ),
        FigurePanel(
            "what the arms exert on the load",
            TIME,
            "[N, N m]",
            tuple(FigureCurve(few.time, held[:, k], name) for k, name in enumerate(names)),
        ),
        FigurePanel(
            "each method less 'recursive'",
            "largest difference [rad/s²]",
            "",
            (),
            dots=tuple((name, largest(values)) for name, values in off.items()),
        ),
    ]


def _table(asked: Trajectory, found: Trajectory) -> dict[str, Array]:
    names = (*MOTION, *(f"theta{joint}" for joint in JOINTS), *(f"tau{joint}" for joint in JOINTS))
    table = {TIME: asked.time} | {f"{name} [{asked.unit(name)}]": asked[name] for name in names}
    return table | {
        f"{name} by direct dynamics [{found.unit(name)}]": found[name] for name in MOTION
    }
