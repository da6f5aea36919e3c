"""Runs with contacts: adaptive steps in constant modes, between events at which these change."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import (
    ContactStepsWarning,
    InvalidArgument,
    NotApplicable,
    SimulationFailed,
    level_outside,
)
from axode.model.conditions import Conditions
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.model.model_parts import facts_of, function_tape, memory_of
from axode.numerics.tolerances import ON_TIME
from axode.problems.contact_events.decisions import (
    BALANCED,
    MAYBE,
    ContactEvent,
    Instant,
    Undetermined,
    changed_words,
    largest_penetration,
    mode_words,
)
from axode.problems.contact_events.mode_model import (
    SHARED,
    TURNING,
    WATCHED,
    ModeModel,
    ModeValues,
    joined_watches,
    mode_model,
)
from axode.problems.contact_events.stepped_spans import (
    CALM,
    MOVES,
    PATIENCE,
    ModeRuns,
    ModesSeen,
    SteppedMotion,
    SteppedSpan,
    Taken,
    describe,
    joined,
    modes_seen,
)
from axode.problems.inputs.inputs import InputPlan
from axode.problems.inputs.tracing import TracedFunction, call_traced
from axode.problems.runs.session import Session, Task
from axode.problems.runs.settings import Settings
from axode.problems.simulate.record import STATUS_WORDS
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.saved_states import RecordedColumns, SavedStates
from axode.problems.simulate.scenario import DEEP, EVENTS, Scenario
from axode.problems.simulate.simulate import raise_if_failed, simulate
from axode.problems.steps.audit import STEPS_TOLERANCE, energy_rounding, warn_of_inaccuracy
from axode.problems.steps.compiled import AUTOMATIC
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import (
    EVENT,
    FINISHED,
    INACCURATE,
    NOT_FINITE,
    RUNNING,
    STIFF,
    UNDERFLOW,
)
from axode.results.columns import INACCURATE_TEXT, describe_inaccuracy

if TYPE_CHECKING:
    from axode.results.columns import Event
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
METHODS = (AUTOMATIC, "dopri5", "dop853")
SLOWEST = 200.0  # times rtol, of a metre per second: slip that counts as none
CROWD = 40  # events without progress, after which a run has failed
RATTLE, MOMENT = 250, 1e-3  # events within [s]: steps are quicker
BEYOND = 1e-6  # of the largest contact force: what forces may lack of the laws
PROGRESS = 1e-10  # of the time, or [s]: less is none
LOOKS = 256  # least number of steps under inputs that depend on time: at rest nothing limits them
CONTACT = "contact "  # how the watches of contacts are called


@dataclass(frozen=True)
class Kept:
    """Where a run goes back to."""

    t: float
    q: Array
    nu: Array
    w: Array
    now: ModeValues
    found: int  # numbers of events, crossings and samples
    crossings: int
    rows: int


@dataclass(frozen=True)
class ModeTask(Task):
    """Steps of a model in modes, which end where a contact's mode does."""

    own: int = 0  # events of the user, the first ones
    made: dict[bool, Dynamics] = field(default_factory=dict)

    def dynamics(self, *, stiffness: bool = False) -> Dynamics:
        if stiffness not in self.made:
            plain = Task(self.model, self.plan, self.settings, self.events[: self.own])
            d = plain.dynamics(stiffness=stiffness)
            own = function_tape(self.model, WATCHED)
            watched = joined_watches(d.events, own, self.plan.tape)
            directions = (*d.directions, *(-1 for _ in self.events[self.own :]))
            self.made[stiffness] = replace(d, events=watched, directions=directions)
        return self.made[stiffness]


def simulate_with_contacts(
    scenario: Scenario, settings: Settings, progress: bool | None, on_interrupt: str
) -> Trajectory:
    """Simulate a model with contacts from event to event, or without them; see `RunOptions`."""
    if scenario.contacts == EVENTS:
        return simulate_events(scenario, settings, progress, on_interrupt)
    options = {k: v for k, v in scenario.options.items() if k != "contacts"}
    return simulate(
        Scenario(_ideal(scenario.mechanism_model), scenario.duration, **options),  # type: ignore[arg-type]
        save_every=settings.save_every,
        t_eval=settings.at[:-1] if settings.at else None,
        progress=progress,
        on_interrupt=on_interrupt,
    )


def _ideal(model: Model) -> Model:
    """Return the model of the ideal mechanism, made once."""
    kept = memory_of(model)
    if "ideal" not in kept:
        if not model.has_equations:
            raise NotApplicable(
                "contacts='ideal': a model from a file has no mechanism; save that of "
                "mechanism.ideal() as well"
            )
        kept["ideal"] = model.equations.mechanism.ideal().derive().compile()
    made: Model = kept["ideal"]
    return made


def simulate_events(
    scenario: Scenario, settings: Settings, progress: bool | None, on_interrupt: str
) -> Trajectory:
    """Simulate one run of a model with contacts, from event to event."""
    _check(scenario, settings)
    base = scenario.mechanism_model
    modes = mode_model(base)
    options = {k: v for k, v in scenario.options.items() if k != "contacts"}
    inside = Scenario(modes, scenario.duration, **options)  # type: ignore[arg-type]
    asked = scenario.options.get("contacts", AUTOMATIC)
    steps = SteppedMotion(scenario) if asked == AUTOMATIC else None
    run = EventRun(inside, modes, settings, steps)
    with Session(base.name, settings, 1, progress) as session:
        with session.keep_results():
            run.advance(session)
        run.seconds = session.seconds
    trajectory = run.record()
    if run.stepped:
        text = describe(run.stepped, base.name)
        warnings.warn(text, ContactStepsWarning, stacklevel=level_outside())
    if session.interrupted:
        made: Trajectory = session.deliver(trajectory, on_interrupt)
        return made
    run.raise_if_failed(trajectory)
    return trajectory


def _check(scenario: Scenario, settings: Settings) -> None:
    """Refuse what this way of integrating does not know, with the remedy."""
    if settings.method not in METHODS:
        raise NotApplicable(
            f"method='{settings.method}': runs with contacts are integrated from event to event by "
            f"{' or '.join(METHODS[1:])}; leave method out"
        )
    if settings.duration < 0:
        raise NotApplicable("duration: contacts cannot be run backwards: slip forgets its past")
    if settings.place.target != "cpu":
        raise NotApplicable("target: contacts from event to event run on the CPU alone")
    plan = scenario.plan
    if plan.callback is not None or plan.sampled is not None or plan.updates is not None:
        raise NotApplicable(
            "input: contacts from event to event take numbers, formulas and functions of the "
            "state; for samples, callbacks and laws that take samples take contacts='steps'"
        )
    if scenario.options.get("singular", "stop") != "stop":
        raise NotApplicable("singular: contacts cannot be taken across singular configurations")
    if scenario.starts.batch:
        raise NotApplicable(
            "a batch of runs with contacts cannot be simulated from event to event; "
            "take contacts='steps', or simulate one run after the other"
        )


class EventRun:
    """One run, advanced from event to event.

    Args:
        scenario: What runs, on the model in modes.
        modes: That model, without the memory of a law.
        settings: How to integrate.
        steps: Steps through what events cannot follow; without them such a run fails.
    """

    def __init__(
        self,
        scenario: Scenario,
        modes: ModeModel,
        settings: Settings,
        steps: SteppedMotion | None = None,
    ) -> None:
        self.scenario, self.modes, self.settings = scenario, modes, settings
        self.by_steps, self._patience = steps, CALM
        self._jams = False  # whether rigid bodies have no motion, or several
        self.stepped: list[SteppedSpan] = []
        self.model, self.base, self.table = scenario.model, modes.base, modes.table
        self.n = len(facts_of(modes.base).independent)
        begun = scenario.starts
        self.q, self.nu, self.w = begun.q[0].copy(), begun.nu[0].copy(), np.zeros(2)
        p = np.asarray(self.model.parameter_vector() if begun.p is None else begun.p, dtype=float)
        count = len(ModeValues(self.table).vector)
        self.p = np.array(p.reshape(-1)[: p.shape[-1] - count])  # the user's
        self.now = ModeValues(self.table)
        self.t, self.status, self.cause = settings.t0, RUNNING, ""
        self.slow = SLOWEST * settings.rtol
        self.found: list[ContactEvent] = []
        self.crossings: list[Event] = []
        self.spans: dict[str, list[tuple[float, str]]] = {name: [] for name in self.table.names}
        self.steps = self.rejected = 0
        self.rows: list[tuple[float, Array, Array]] = []  # time, state, modes
        self.error = self.largest = self.rounding = 0.0
        self.seconds, self.failure = 0.0, ""
        self.largest_force = 0.0
        self._crowd: list[float] = []
        self._watches = self._make_watches()
        self.start_energy, self.start_potential = 0.0, 0.0

    @property
    def plan(self) -> InputPlan:
        """The input."""
        return self.scenario.plan

    def _make_watches(self) -> tuple[Event, ...]:
        from axode.results.columns import Event

        count = len(self.table.normals) + len(self.table.rubbing)
        contact = [Event(f"{CONTACT}{k}", stop=True, direction=-1) for k in range(count)]
        return (*self.scenario.events, *contact)

    @cached_property
    def _task(self) -> ModeTask:
        """The steps, compiled once for all modes and kept for the next run."""
        events = self.scenario.events
        kept = memory_of(self.model)
        key = ("mode steps", *map(id, events), id(self.plan.tape), self.settings.stepper)
        if key not in kept or kept[key][0] is not self.plan.tape:
            task = ModeTask(
                self.model, self.plan.spread(()), self.settings, self._watches, own=len(events)
            )
            kept[key] = (self.plan.tape, events, task)
        task = kept[key][2]
        return replace(task, plan=self.plan.spread(()), settings=self.settings, made=task.made)

    # running ------------------------------------------------------------------------------------

    def advance(self, session: Session) -> None:
        """Run to the end, a stop, or a failure."""
        s = self.settings
        self._audit(first=True)
        self._begun = self._state
        self._keep()
        self._decide((), session)
        if not self._failed:
            self.rows.append((self.t, self._state, self.now.vector))
            self._check_laws(self.rows)
        elif self.by_steps is not None:
            self.rows.append((self.t, self._begun, self._unknown))
        self._step_if_failed(session)
        while self.status == RUNNING:
            self._keep()
            self._phase(session)
            self._step_if_failed(session)
            if self.status == RUNNING and self.t >= s.t_end:
                self.status = FINISHED
        self._audit()

    @property
    def _state(self) -> Array:
        return np.concatenate([self.q, self.nu, self.w])

    @property
    def _failed(self) -> bool:
        return bool(self.failure)

    def _conditions(self, t: Any) -> Conditions:
        own = None if facts_of(self.base).fixed or not len(self.p) else self.p
        return Conditions(t, own)

    def _instant(
        self, t: float | None = None, q: Array | None = None, nu: Array | None = None
    ) -> Instant:
        """The present state, or another one."""
        t = self.t if t is None else t
        q, nu = (self.q, self.nu) if q is None or nu is None else (q, nu)
        u = self._input(t, q, nu)[: len(self.base.inputs)]
        return Instant(self.base, self.table, q, nu[: self.n], u, self._conditions(t))

    def _input(self, t: float, q: Array, nu: Array) -> Array:
        if self.plan.tape is None:
            return np.asarray(self.plan.constant, dtype=float).reshape(-1)
        p = np.concatenate([self.p, self.now.vector])
        there = Conditions(t, p, self.plan.gains)
        return np.asarray(call_traced(TracedFunction(self.plan.tape), q, nu, there))

    def _phase(self, session: Session) -> None:
        """Run in the present modes until an event or the end."""
        s = self.settings
        times = s.times[s.times > self.t]
        at = (*times[:-1].tolist(), s.t_end) if len(times) else (s.t_end,)
        try:
            longest = s.duration / LOOKS if self._is_timed else math.inf
            settings = replace(
                s, t0=self.t, duration=s.t_end - self.t, save_every=None, at=at, longest=longest
            )
        except InvalidArgument:  # the rest is shorter than times are apart
            self.t = s.t_end
            return
        p = np.concatenate([self.p, self.now.vector])
        task = replace(self._task, settings=settings)
        kind = Runs if self.by_steps is None else ModeRuns
        runs = kind(task, self.scenario.input, self.q[np.newaxis], self.nu[np.newaxis], p)
        self._begin(session)
        runs.advance(session)
        self.steps += int(runs.steps.sum())
        self.rejected += int(runs.rejected.sum())
        made = []
        for row in range(1, int(runs.lengths[0])):
            x = runs.out[0, row].copy()
            x[-2:] += self.w
            made.append((float(settings.times[row]), x, self.now.vector))
        self.rows += made
        ended = runs.outcomes
        last = ended.last[0].copy()
        last[-2:] += self.w
        n_q = len(self.q)
        self.t = float(ended.time[0])
        self.q, self.nu, self.w = last[:n_q], last[n_q:-2], last[-2:]
        status = int(ended.status[0])
        self._keep_crossings(runs)
        if np.isfinite(last).all():
            self._check_laws([*made, (self.t, self._state, self.now.vector)])
        if self._failed:
            return
        if status in (UNDERFLOW, NOT_FINITE) and self.by_steps is not None:
            self._fail(STATUS_WORDS[status].removeprefix("failed: "), "adaptive steps fail")
            return
        self._keep()
        if status in (FINISHED, INACCURATE):
            self.t = s.t_end
        elif status == STIFF:
            self._fail("stiff", "slow slip, or stiff forces, keep adaptive steps short")
        elif status == EVENT and str(ended.cause[0]).startswith(CONTACT):
            self._audit()
            self._decide((int(str(ended.cause[0])[len(CONTACT) :]),), session)
            if not self._failed:
                self._check_laws([(self.t, self._state, self.now.vector)])
        elif status == EVENT:
            self.status, self.cause = EVENT, str(ended.cause[0])
        elif session.interrupted or status == RUNNING:
            self.status, self.failure = RUNNING, "interrupted"
            raise KeyboardInterrupt
        else:
            self.status, self.cause = status, str(ended.cause[0])
            self._runs = runs

    def _begin(self, session: Session) -> None:
        share = (self.t - self.settings.t0) / self.settings.duration
        session.begin(1, share, 1.0 - share)

    def _keep_crossings(self, runs: Runs) -> None:
        """Keep the user's events of a phase."""
        for located in runs.crossings:
            for event in located.events(runs.task.events):
                if not event.name.startswith(CONTACT):
                    self.crossings.append(replace(event, index_of_run=None))

    def _decide(self, triggered: Sequence[int], session: Session) -> None:
        """Let contacts strike, and find the modes that follow."""
        session.check()
        instant = self._instant()
        normals = self.table.normals
        if self.found and (deep := largest_penetration(instant.rows)) > DEEP:
            row = self.table.rows[normals[int(np.argmin(instant.rows.gap))]]
            name = row.rpartition(".")[0]
            self._fail(
                f"'{name}' is {deep:.3g} below its ground, unseen.\n  Take a smaller rtol",
                f"'{name}' went below its ground unseen",
            )
            return
        instant.lifting = tuple(
            normals[k] for k in triggered if k < len(normals) and self.now.active[normals[k]] > 0.5
        )
        try:
            if instant.lifting == ():
                instant.strike(self.slow)
            modes = instant.decide(self.slow, self.now)
        except Undetermined as fault:
            names = str(fault) or "its contacts"
            self._jams = bool(str(fault))
            self._fail(
                f"rigid bodies determine no motion of {names}, or several: friction presses a "
                "contact onto its own ground (Painleve's paradox), or too many rigid contacts "
                "share a load.\n  Give the wheels suspensions, or less friction",
                f"no modes of {names} were found",
            )
            return
        self.q, self.nu = instant.q, np.concatenate([instant.nu, self.nu[self.n :]])
        self.w = self.w + np.array([instant.supplied, instant.lost])
        self.now = modes
        if facts_of(self.base).driven:  # time moves something even then
            modes.rest = 0.0
        elif modes.rest == MAYBE:
            modes.rest = float(self._is_balanced(instant))
        self.found += instant.events
        self.largest_force = max(self.largest_force, instant.largest)
        self._note_words(self.t, modes)
        self._crowd = [*self._crowd[1 - RATTLE :], self.t]
        since = [self.t - t for t in (self._crowd[0], self._crowd[-CROWD:][0])]
        stuck = len(self._crowd) >= CROWD and since[1] < PROGRESS * max(1.0, abs(self.t))
        rattles = len(self._crowd) == RATTLE and since[0] < MOMENT and self.by_steps is not None
        if stuck or rattles:
            names = ", ".join(dict.fromkeys(e.contact for e in self.found[-CROWD:]))
            self._fail(
                f"the contacts of {names} change their modes {CROWD} times in a moment.\n"
                "  Take contacts='steps', or give wheels suspensions",
                f"events of {names} crowd",
            )

    def _note_words(self, t: float, modes: ModeValues) -> None:
        for name, word in mode_words(self.table, modes).items():
            if not self.spans[name] or self.spans[name][-1][1] != word:
                self.spans[name].append((t, word))

    def _check_laws(self, rows: Sequence[tuple[float, Array, Array]]) -> None:
        """Fail where contacts are seen to break their laws: that no mode ended is a mistake."""
        saved, table = self._saved(rows), self.table
        q, nu = saved.arrays["q"], saved.arrays["nu"][..., : self.n]
        there = saved.conditions
        arrays = {"q": q, "nu": nu, "u": saved.u[..., : len(self.base.inputs)]}
        watched = self.modes.evaluate(WATCHED, arrays, there.options)[0]
        fixed = facts_of(self.base).fixed or not len(self.p)
        own = Conditions(there.t, None if fixed else self.p).options
        values = self.base.evaluate("contact_rows", {"q": q, "nu": nu}, own)[0]
        apart = table.split(values, self.n)
        v = (apart.J @ nu[0, ..., np.newaxis])[..., 0] + apart.drift
        still = MOVES * np.maximum(1.0, np.abs(nu[0]).max(axis=-1, initial=0.0))
        modes = np.array([modes for _, _, modes in rows])[:, : 4 * len(table.rows)]
        active, direction, coefficient, slip = np.split(modes, 4, axis=1)
        on, along = active > 0.5, (slip != TURNING) & (coefficient > 0.0)
        pressed = watched[:, : len(table.normals)][on[:, list(table.normals)]]
        self.largest_force = max(self.largest_force, float(pressed.max(initial=0.0)))
        least, count = -BEYOND * self.largest_force, len(table.normals)
        for k, (row, contact) in enumerate(zip(table.normals, table.normal_contacts, strict=True)):
            self._refuse(saved, contact, on[:, row] & (watched[:, k] < least), "pulls the ground")
            below = ~on[:, row] & (watched[:, k] < -DEEP)
            self._refuse(saved, contact, below, "is below its ground")
        for k, group in enumerate(table.rubbing, count):
            sticks = on[:, group.rows[0]] | on[:, group.rows[-1]]
            beyond = sticks & (watched[:, k] < least)
            self._refuse(saved, group.contact, beyond, "sticks beyond its friction")
            held = list(group.rows)
            moves = on[:, held] & (np.abs(v[:, held]) > still[:, np.newaxis])
            self._refuse(saved, group.contact, moves.any(axis=1), "moves where it should stick")
            forwards = (v[:, held] * direction[:, held]).sum(axis=1)
            pushed = ~sticks & along[:, held[0]] & (forwards < -still)
            self._refuse(saved, group.contact, pushed, "is pushed by its friction")

    def _refuse(
        self, saved: SavedStates, contact: int, broken: npt.NDArray[np.bool_], what: str
    ) -> None:
        """Fail if a contact breaks a law in some of the states."""
        if broken.any() and not self._failed:
            t = float(saved.conditions.t[0, int(np.argmax(broken))])
            self._fail(
                f"'{self.table.names[contact]}' {what} at t = {t:.6g} s, and no event was found "
                "there.\n  Take contacts='steps', or a smaller rtol",
                f"'{self.table.names[contact]}' {what}, and no event was found",
            )

    def _fail(self, text: str, why: str) -> None:
        self.failure, self.status, self._why = text, FAILED, why

    # steps where events do not get on ------------------------------------------------------------

    def _keep(self) -> None:
        """Note a state to go back to."""
        counts = (len(self.found), len(self.crossings), len(self.rows))
        self._kept = Kept(self.t, self.q, self.nu, self.w, self.now, *counts)

    def _go_back(self) -> None:
        """Go back to the state that was kept."""
        kept = self._kept
        self.t, self.q, self.nu, self.w, self.now = kept.t, kept.q, kept.nu, kept.w, kept.now
        del self.found[kept.found :], self.crossings[kept.crossings :], self.rows[kept.rows :]
        for spans in self.spans.values():
            while spans and spans[-1][0] > kept.t:
                del spans[-1]
        self.failure, self.status = "", RUNNING

    @property
    def _unknown(self) -> Array:
        """Modes in which no force is known."""
        modes = ModeValues(self.table)
        modes.springs = math.nan
        return modes.vector

    def _step_if_failed(self, session: Session) -> None:
        """Take steps from where events failed until contacts are calm, if that is allowed."""
        if not self._failed or self.by_steps is None or self._jams:
            return
        self._kept = replace(self._kept, rows=max(1, self._kept.rows))  # the start stays
        self._go_back()
        self._crowd = []
        begun, longest, calm = self.t, 0.0, 0
        while self.status == RUNNING and self.t < self.settings.t_end:
            settings = self.by_steps.settings(self.settings, self.t)
            if settings is None:
                self.t = self.settings.t_end
                break
            longest = max(longest, settings.step_size)
            self._begin(session)
            own = None if facts_of(self.base).fixed or not len(self.p) else self.p
            taken = self.by_steps.take(settings, self.q, self.nu, own, session)
            seen = self._enter(taken, settings.step_size)
            if session.interrupted:
                self.failure = "interrupted"
                raise KeyboardInterrupt
            calm = calm + seen.calm() - 1 if seen.calm() == len(seen.settled) else seen.calm()
            if calm > self._patience and self.status == RUNNING and self._returns(seen, session):
                break
        self._patience = min(PATIENCE, 2 * self._patience)
        self.stepped = joined([*self.stepped, SteppedSpan(begun, self.t, longest, self._why)])
        self._audit()

    def _enter(self, taken: Taken, step: float) -> ModesSeen:
        """Enter steps that were taken: samples, modes and what happened."""
        runs, times = taken.runs, taken.times
        self.steps += int(runs.steps.sum())
        states = taken.states.copy()
        states[:, -2:] += self.w
        seen = modes_seen(self.base, self.table, states, self._conditions(times), step)
        words = mode_words(self.table, self.now)
        for k in range(1, len(times)):
            changed = (seen.closed[k] != seen.closed[k - 1]).any()
            if k > 1 and not changed and (seen.slides[k] == seen.slides[k - 1]).all():
                continue
            modes = seen.values(k, self.table)
            self._note_words(float(times[k]), modes)
            was, words = words, mode_words(self.table, modes)
            self.found += changed_words(float(times[k]), was, words)
        n_q, last, samples = len(self.q), states[-1], self.settings.times
        for k, t in enumerate(times.tolist()):
            nearest = float(samples[np.argmin(np.abs(samples - t))])
            self.t = nearest if abs(nearest - t) <= ON_TIME * step else t
            if self.t == nearest and nearest > self.rows[-1][0]:
                self.rows.append((nearest, states[k], self._modes_at(nearest, states[k])))
        self.q, self.nu, self.w = last[:n_q], last[n_q:-2], last[-2:]
        self.now = seen.values(-1, self.table)
        self._keep_crossings(runs)
        self._audit()
        status = int(runs.outcomes.status[0])
        if status == EVENT:
            self.status, self.cause = EVENT, str(runs.outcomes.cause[0])
        elif status not in (FINISHED, INACCURATE, RUNNING):
            self.status, self.cause, self._runs = status, str(runs.outcomes.cause[0]), runs
        return seen

    def _modes_at(self, t: float, x: Array) -> Array:
        """Modes at a sample of steps, for its forces; NaN where none are found."""
        n_q = len(self.q)
        instant = self._instant(t, x[:n_q], x[n_q:-2])
        return self._unknown if (modes := self._settle(instant)) is None else modes.vector

    def _settle(self, instant: Instant) -> ModeValues | None:
        """Find the modes that go on from a state after a step."""
        states = np.concatenate([instant.q, instant.nu])[np.newaxis]
        there = self._conditions(np.array([instant.time]))
        seen = modes_seen(self.base, self.table, states, there, 0.0)
        before = seen.values(0, self.table)
        try:
            instant.keep(before)
            return instant.decide(self.slow, before)
        except Undetermined:
            return None

    def _returns(self, seen: ModesSeen, session: Session) -> bool:
        """Go on from event to event, if modes are found that do."""
        self._keep()
        instant, self.now = self._instant(), seen.values(-1, self.table)
        instant.keep(self.now)
        self.q, self.nu = instant.q, np.concatenate([instant.nu, self.nu[self.n :]])
        self.w = self.w + np.array([instant.supplied, instant.lost])
        why = self._why
        self._decide((), session)
        if not self._failed:
            self._check_laws([(self.t, self._state, self.now.vector)])
        if not self._failed:
            return True
        self._go_back()
        self._why, self._jams = why, False
        return False

    def _is_balanced(self, instant: Instant) -> bool:
        """Return whether what is at rest stays so: nothing accelerates, nothing depends on time."""
        if self._is_timed:
            return False
        p = np.concatenate([self.p, self.now.vector])
        p[-len(SHARED)] = 0.0
        arrays = {"q": self.q, "nu": self.nu, "u": self._input(self.t, self.q, self.nu)}
        made = self.model.evaluate("forward_dynamics", arrays, {"t": self.t, "parameters": p})
        free = self.base.evaluate("forward_dynamics", {**arrays}, instant.options)
        return bool(np.abs(made).max() <= BALANCED * max(np.abs(free).max(), 1e-30))

    @cached_property
    def _is_timed(self) -> bool:
        """Return whether forces may change while nothing moves."""
        tape = self.plan.tape
        timed = tape is not None and any(port.name == "t" for port in tape.inputs)
        return timed or facts_of(self.base).driven or isinstance(self.model, ModelWithMemory)

    # energy -------------------------------------------------------------------------------------

    def _audit(self, *, first: bool = False) -> None:
        """Enter the balance of energy at this instant."""
        arrays = {"q": self.q, "nu": self.nu[: self.n]}
        options = self._conditions(self.t).options
        kinetic, potential = self.base.evaluate("energy", arrays, options).tolist()
        if first:
            self.start_energy, self.start_potential = kinetic + potential, potential
        supplied, lost = self.w.tolist()
        error = abs(kinetic + potential - self.start_energy - supplied + lost)
        self.error = max(self.error, error)
        seen = (kinetic, potential - self.start_potential, supplied, lost)
        self.largest = max(self.largest, *map(abs, seen))
        rounding = energy_rounding("float64") * (abs(kinetic) + abs(potential))
        self.rounding = max(self.rounding, rounding)

    @property
    def _energy_tolerance(self) -> float:
        own = self.settings.energy_tolerance
        return max(own, STEPS_TOLERANCE) if self.stepped else own

    @property
    def inaccuracy(self) -> float:
        """Error of the balance relative to the largest energy; zero if it passes."""
        if self.error <= self._energy_tolerance * self.largest + self.rounding:
            return 0.0
        return self.error / max(self.largest, 1e-30)

    # the result ---------------------------------------------------------------------------------

    def record(self) -> Trajectory:
        """Make the trajectory, in the user's model."""
        from axode.results.columns import Origin
        from axode.results.trajectory import Trajectory

        rows = list(self.rows)
        if not rows or self.t > rows[-1][0]:
            rows.append((self.t, self._state, self.now.vector))
        times, saved = np.array([t for t, _, _ in rows]), self._saved(rows)
        # the balance begins before what strikes at the start
        first = self._saved([(rows[0][0], self._begun, rows[0][2])])
        names, units, kinds = self.model.signals.columns
        off = np.array([self.inaccuracy])
        warn_of_inaccuracy(off)
        text = self._status_text(float(off[0]))
        return Trajectory(
            time=times,
            values=RecordedColumns(saved, (len(times),), first),  # type: ignore[arg-type]
            names=names,
            units=units,
            kinds=kinds,
            statuses=(text,),
            status=text,
            lengths=np.array(len(times)),
            events=tuple(sorted(self.crossings, key=lambda event: event.time)),
            info=self._info(),
            origin=Origin(self.base, self.p if len(self.p) else None),
        )

    def _saved(self, rows: Sequence[tuple[float, Array, Array]]) -> SavedStates:
        """States in their modes, of the model in modes."""
        times = np.array([t for t, _, _ in rows])
        states = np.array([x for _, x, _ in rows])[np.newaxis]
        p = np.array([np.concatenate([self.p, modes]) for _, _, modes in rows])[np.newaxis]
        conditions = Conditions(times[np.newaxis], p, self.plan.gains)
        shape = (1, len(times), len(self.model.inputs))
        inputs: Array | Tape = (
            np.broadcast_to(np.asarray(self.plan.constant), shape)
            if self.plan.tape is None
            else self.plan.tape
        )
        return SavedStates(self.model, states, conditions, inputs)

    def _status_text(self, off: float) -> str:
        if self.failure:
            return f"failed at t = {self.t:.6g} s, {self.failure}"
        word = STATUS_WORDS.get(self.status, "")
        if self.status == EVENT:
            word += f" '{self.cause}'"
        if off > 0:
            doubt = f"{INACCURATE_TEXT}: {describe_inaccuracy(np.array([off]))[0]}"
            word = f"{word}, {doubt}" if self.status == EVENT else doubt
        return word

    def _info(self) -> dict[str, Any]:
        s = self.settings
        info: dict[str, Any] = {
            "model": self.base.name,
            "method": f"{s.stepper}, contacts from event to event",
            "contacts": "events",
            "seconds": self.seconds,
            "runs": 1,
            "steps": self.steps,
            "energy_tolerance": self._energy_tolerance,
            "rtol": s.rtol,
            "atol": s.atol,
            "rejected": self.rejected,
            "contact_events": [asdict(event) for event in self.found],
            "modes": {name: [list(span) for span in spans] for name, spans in self.spans.items()},
        }
        if self.stepped:
            info["stepped"] = [asdict(span) for span in self.stepped]
        if len(self.p) and not facts_of(self.base).fixed:
            info["parameters"] = dict(zip(self.base.parameters, self.p.tolist(), strict=True))
        if facts_of(self.base).bases:
            info["bases"] = facts_of(self.base).bases
        return info

    def raise_if_failed(self, trajectory: Trajectory) -> None:
        """Raise the error of a run that failed; it carries the trajectory."""
        if self.failure:
            raise SimulationFailed(
                f"'{self.base.name}' failed at t = {self.t:.6g} s: {self.failure}",
                trajectory,
                self.t,
            )
        runs = getattr(self, "_runs", None)
        if runs is not None:
            raise_if_failed(runs, trajectory)


FAILED = -1  # status of a run whose contacts have no motion
