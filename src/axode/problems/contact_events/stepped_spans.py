"""Steps of one length through spans of a run in which events come too often, or find no modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.mechanism.elements.wheels import ContactTable
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import ON_TIME
from axode.problems.contact_events.mode_model import TURNING, ModeValues
from axode.problems.inputs.inputs import InputPlan
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import Numbers, Session, Task
from axode.problems.runs.settings import DEFAULT_STEP, Settings
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.scenario import Scenario
from axode.problems.steps.compiled import STEPS
from axode.problems.steps.step_acceptance import RUNNING, STIFF

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
LENGTH = 0.1 * DEFAULT_STEP  # [s] of a step
CHUNK = 64  # steps between looks at the modes
CALM = 4  # steps with the same modes, after which events are tried again
PATIENCE = 1024  # steps with the same modes that are waited for, at most
NEAR = 1e-7  # [m or rad] of a gap that is closed after a step
MOVES = 1e-5  # of the speeds, or [m/s]: more than steps leave where nothing slides
CRAWL = 5.0  # [m/s^2] times a step: slip that turns faster than explicit steps can follow
SHORT = 20.0  # adaptive steps that are so much shorter than these are too many
STIFF_STEPS = 5000.0  # adaptive steps at the limit of stability, before their length is looked at


@dataclass(frozen=True)
class SteppedSpan:
    """A part of a run that was taken in steps.

    Attributes:
        start, end: From when to when [s].
        step: Length of the longest step [s].
        why: What events could not do there.
    """

    start: float
    end: float
    step: float
    why: str


@dataclass(frozen=True)
class Taken:
    """Some steps.

    Attributes:
        times: Ends of the steps, their start first [s].
        states: States there, (rows, size).
        runs: How they ended.
    """

    times: Array
    states: Array
    runs: Runs


@dataclass(frozen=True)
class ModesSeen:
    """Modes at the ends of some steps, as gaps and speeds show them.

    Attributes:
        closed: Which normal rows are closed, (rows, normals).
        slides: Which groups slide, (rows, groups).
        speeds: Speeds of all rows, (rows, m).
        kinetic: Kinetic coefficients of all rows, (rows, m).
        settled: Whether nothing is about to strike, and no slip is too slow for events.
    """

    closed: Flags
    slides: Flags
    speeds: Array
    kinetic: Array
    settled: Flags

    def calm(self) -> int:
        """Number of the last steps over which nothing changed."""
        same = (self.closed == self.closed[-1]).all(axis=1) & (self.slides == self.slides[-1]).all(
            axis=1
        )
        broken = np.flatnonzero(~(same & self.settled))
        return len(same) - (int(broken[-1]) + 1 if broken.size else 0)

    def values(self, row: int, table: ContactTable) -> ModeValues:
        """Modes at the end of a step."""
        made = ModeValues(table)
        made.active[list(table.normals)] = self.closed[row]
        for k, group in enumerate(table.rubbing):
            rows = list(group.rows)
            if group.normal >= 0 and not made.active[group.normal]:
                continue
            if self.slides[row, k]:
                v = self.speeds[row, rows]
                made.direction[rows] = v / np.linalg.norm(v)
                made.coefficient[rows] = self.kinetic[row, rows]
                made.slip[rows] = TURNING if len(rows) > 1 else 0.0
            else:
                made.active[rows] = 1.0
        return made


class ModeRuns(Runs):
    """Runs in modes, which end as `STIFF` where explicit steps become too short."""

    def _answer_stiffness(self, batch: Batch, runs: Numbers) -> None:
        b = batch.buffers
        for run in runs.tolist():
            count = float(b["stiff"][run, 0])
            if count >= STIFF_STEPS and float(b["h"][run, 0]) * SHORT < LENGTH:
                batch.resolve(run, STIFF)
            else:
                b["status"][run] = RUNNING
                b["stiff_limit"][run] = max(STIFF_STEPS, 2.0 * count)


class SteppedMotion:
    """Steps through contacts of the model of a run from event to event.

    Args:
        scenario: What runs, as it was given.
    """

    def __init__(self, scenario: Scenario) -> None:
        left_out = ("rtol", "atol", "method", "contacts")
        options = {k: v for k, v in scenario.options.items() if k not in left_out}
        self.scenario = Scenario(
            scenario.mechanism_model,
            scenario.duration,
            contacts=STEPS,
            **options,  # type: ignore[arg-type]
        )

    @property
    def model(self) -> Model:
        """The model without contact forces, with the memory of its law."""
        return self.scenario.model

    @property
    def plan(self) -> InputPlan:
        """The input."""
        return self.scenario.plan

    def settings(self, like: Settings, t: float) -> Settings | None:
        """Lengths of the next steps, which meet the samples; None if hardly any time is left."""
        times = like.times[like.times > t + ON_TIME * LENGTH]
        if not len(times):
            return None
        first = float(times[0]) - t
        count = max(1, int(np.ceil(first / LENGTH)))
        h, total = first / count, min(count, CHUNK)
        for spacing in np.diff(times[:CHUNK]):
            if count + total > CHUNK or abs(spacing - first) > ON_TIME * first:
                break
            total += count
        left = like.t_end - t
        duration = left if total * h > left * (1 - 1e-12) else total * h
        try:
            return Settings(
                STEPS, t, duration, h, h, like.rtol, like.atol, like.threads, like.place
            )
        except InvalidArgument:  # less than times are apart
            return None

    def take(
        self, settings: Settings, q: Array, nu: Array, p: Array | None, session: Session
    ) -> Taken:
        """Take steps from a state."""
        task = Task(self.model, self.plan.spread(()), settings, self.scenario.events)
        runs = Runs(task, self.scenario.input, q[np.newaxis], nu[np.newaxis], p)
        runs.advance(session)
        rows = int(runs.lengths[0])
        times, states = settings.times[:rows], runs.out[0, :rows]
        end = float(runs.outcomes.time[0])
        if end > times[-1]:
            times = np.append(times, end)
            states = np.concatenate([states, runs.outcomes.last[:1]])
        return Taken(times, states, runs)


def modes_seen(
    base: Model, table: ContactTable, states: Array, conditions: Conditions, step: float
) -> ModesSeen:
    """Find the modes at the ends of steps by gaps and speeds."""
    n_q, n = len(facts_of(base).coordinates), len(facts_of(base).independent)
    q, nu = states[:, :n_q], states[:, n_q : n_q + n]
    values = base.evaluate("contact_rows", {"q": q}, conditions.options)
    apart = table.split(values, n)
    v = (apart.J @ nu[..., np.newaxis])[..., 0] + apart.drift
    still = MOVES * np.maximum(1.0, np.abs(nu).max(axis=-1, initial=0.0))[:, np.newaxis]
    normal = v[:, list(table.normals)]
    near = apart.gap <= NEAR
    closed, settled = near & (normal <= still), ~(near & (normal < -still)).any(axis=1)
    beneath = dict(zip(table.normals, closed.T, strict=True))
    slides = np.zeros((len(q), len(table.rubbing)), dtype=bool)
    for k, group in enumerate(table.rubbing):
        speed = np.linalg.norm(v[:, list(group.rows)], axis=1)
        slides[:, k] = (speed > still[:, 0]) & beneath.get(group.normal, True)
        if len(group.rows) > 1:
            settled &= ~(slides[:, k] & (speed < CRAWL * step))
    kinetic = np.broadcast_to(apart.kinetic, v.shape)
    return ModesSeen(closed, slides, v, kinetic, settled)


def describe(spans: Sequence[SteppedSpan], name: str) -> str:
    """Warn of spans that were taken in steps, with the reason."""
    whole = sum(span.end - span.start for span in spans)
    first = spans[0]
    more = "" if len(spans) == 1 else f", {len(spans)} times,"
    return (
        f"'{name}' goes through {whole:.3g} s{more} in steps of {1e3 * LENGTH:g} ms, from "
        f"t = {first.start:.6g} s on: {first.why}. `run.info['stepped']` lists them.\n"
        "  contacts='steps' takes steps throughout, of a length that you choose; contacts='events' "
        "none"
    )


def joined(spans: Sequence[SteppedSpan]) -> list[SteppedSpan]:
    """Join spans between which no time passed."""
    made: list[SteppedSpan] = []
    for span in spans:
        if made and span.start <= made[-1].end:
            made[-1] = replace(made[-1], end=span.end, step=max(made[-1].step, span.step))
        else:
            made.append(span)
    return made
