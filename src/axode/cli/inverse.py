"""`axode inverse`, `axode feasible` and `axode size`: forces, contacts and motors of motions."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from axode.cli.model_sources import Built
from axode.cli.options import (
    WRONG_DATA,
    AsJson,
    Conditions,
    PlotFile,
    Texts,
    numbers,
    one_or_named,
    refuse,
    words,
)
from axode.cli.output import format_number, print_json, show_table
from axode.cli.trajectories import Course, RunSummary, Table, save_columns
from axode.errors import MotorLimitWarning
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.motors.duty import MotorReport
    from axode.motors.sizing import Sizing
    from axode.problems.feasible.feasible import Feasibility
    from axode.results.trajectory import Trajectory


KINDS = ("input", "force", "power")  # of the columns that answer the question


def inverse(
    *,
    built: Built,
    course: Course,
    every: float | None = None,
    state: Texts = None,
    acceleration: Texts = None,
    weight: Texts = None,
    summary: RunSummary,
) -> None:
    """Compute the motor torques and forces along a motion, along a path, or at one state.

    axode inverse five_axis_arm --state theta2=0.5 --acceleration theta1_dot=1

    axode inverse differential_drive --path circle:radius=2,speed=0.5

    Options:
        time SECONDS: Duration of a motion given by formulas.
        every SECONDS: Time between samples; 1/500 of the duration, or a file's own times, by
            default.
        start NAME=VALUE: Coordinates that the motion does not determine; home by default.
        state NAME=VALUE: One state, instead of a motion; home at rest by default.
        acceleration NAME=VALUE: Accelerations at that state, by the names of speeds; zero by
            default.
        weight MOTOR=VALUE: Weight of a motor where there are more than needed; 1 by default.
    """
    for alone in ({"--state": state}, {"--acceleration": acceleration}):
        given = {"--motion": course.motion, "--path": course.path} | alone
        named = [flag for flag, value in given.items() if value]
        if len(named) > 1:
            raise typer.BadParameter(f"choose one of {' and '.join(named)}", param_hint=named[1])
    options: dict[str, Any] = {
        "parameters": course.parameters,
        "weights": numbers("--weight", weight) or None,
    }
    where = numbers("--state", state)
    rates = numbers("--acceleration", acceleration)
    if not course.check():
        needs_motion = ("out", "plot", "time", "every", "start", "columns", "point")
        refuse("it needs --motion or --path", *needs_motion)
        _one_state(built.model(), where, rates, options, as_json=summary.as_json)
        return
    run = course.follow(built.model(), **options, save_every=every)
    summary.deliver(run, kinds=KINDS)


# one state ---------------------------------------------------------------------------------------


def _one_state(
    model: Model,
    state: dict[str, float],
    rates: dict[str, float],
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    from axode.model.force_deficit import find_deficit, force_size
    from axode.model.signals import STATE_KINDS
    from axode.problems.assemble.assemble import assemble

    values = {"parameters": options["parameters"]} if options["parameters"] else {}
    signals = [model.signals.resolve(name, *STATE_KINDS) for name in state]
    given = [signal.name for signal in signals if signal.kind == "coordinate"]
    there = assemble(model, state, fix=given, parameters=options["parameters"])
    nu_dot = model.signals.names("independent").by_full_name(rates)
    u, missing = model.inverse_dynamics_with_residual(
        there.q, there.nu, nu_dot, weights=options["weights"], **values
    )
    inputs = dict(zip(model.inputs, u.tolist(), strict=True))
    lacking = dict(zip(model.independent, missing.tolist(), strict=True))
    size = force_size(model, there.q, there.nu, u, missing, values)
    short = find_deficit(model, missing, size) is not None
    units = dict(zip(model.inputs, facts_of(model).input_units, strict=True))
    if as_json:
        data = {"model": model.name, "state": there.as_dict(), "accelerations": nu_dot}
        print_json(data | {"inputs": inputs, "missing": lacking, "units": units})
        return
    rows = [(name, format_number(x), units[name]) for name, x in inputs.items()]
    if short:
        units = dict(zip(model.speed_names, facts_of(model).speed_units, strict=True))
        rows += [
            (f"{name}.missing", format_number(x), "N" if units[name] == "m/s" else "N m")
            for name, x in lacking.items()
        ]
    where = ", ".join(f"{name} = {x:g}" for name, x in {**state, **rates}.items())
    note = f"It is {model.actuation}: what is missing the motors cannot give." if short else ""
    show_table(
        ("input", ">value", "unit"), rows, title=f"{model.name} at {where or 'home'}", note=note
    )


# forces of the ground -----------------------------------------------------------------------------


MARGINS = ("slipping_margin", "tipping_margin")


@dataclass(frozen=True)
class CourseOrRun(Course):
    """A motion that is given, or a simulated run."""

    input: Texts = None

    def check(self) -> bool:
        """Require a motion, or the duration of a run."""
        given = super().check()
        if not given and self.time is None:
            raise typer.BadParameter("give --path, --motion, or --time for a simulation")
        return given

    def run(self, model: Model) -> Trajectory:
        """Return the motion, or simulate."""
        from axode.cli.show import simulated

        if self.check():
            refuse("it is for a simulation, not for a given motion", "input")
            return self.follow(model, parameters=self.parameters)
        refuse("it needs --path", "point")
        return simulated(
            model, self.time or 0.0, Conditions(self.start, self.input, self.parameter)
        )


def feasible(
    *, built: Built, friction: list[str], stiffness: Texts = None, course: CourseOrRun, table: Table
) -> None:
    """Check whether a vehicle can really roll along a path, a motion or a simulated run.

    axode feasible tricycle --friction 0.5 --path circle:radius=2,speed=1.5

    axode feasible mecanum_rover --friction 0.4 --time 2 --input tau1=5,tau2=5

    The exit code is 1 if a wheel slips, the robot tips or a motor is overloaded.

    Options:
        friction VALUE|WHEEL=VALUE: Coefficient of friction, one or by wheel.
        stiffness VALUE|WHEEL=VALUE: Stiffness of the wheels across the ground, one or by wheel, in
            N/m; equal by default.
        time SECONDS: Duration of a simulation, or of a motion given by formulas.
        columns NAME,NAME: Columns to plot; both margins by default.
    """
    from axode.problems.feasible.feasible import feasible as check_motion

    course.check()
    if table.plot is None:
        refuse("it needs --plot", "columns")
    mu, stiff = one_or_named("--friction", friction), one_or_named("--stiffness", stiffness)
    model = built.model()
    run = course.run(model)
    found = check_motion(model, run, mu, stiffness=stiff, parameters=course.parameters)
    if table.out is not None:
        save_columns(found.trajectory, table.out)
    if table.plot is not None:
        found.trajectory.plot(*(words(table.columns) or MARGINS), save=table.plot)
    if table.as_json:
        print_json(_summary(found) | {"files": table.files})
    else:
        _show(found)
        for file in table.files:
            print(f"wrote {file}")
    if not found.ok:
        raise typer.Exit(WRONG_DATA)


def _summary(found: Feasibility) -> dict[str, Any]:
    wheels = {
        name: {"least_load": load.min(), "largest_load": load.max(), "friction_used": share.max()}
        for name, load, share in zip(found.wheels, found.normal.T, found.share.T, strict=True)
    }
    return {
        "model": found.trajectory.name,
        "feasible": found.ok,
        "time": [found.time[0], found.time[-1]],
        "friction": dict(found.friction),
        "wheels": wheels,
        "slipping_margin": found.slipping_margin.min(),
        "slips_at": found.slips_at,
        "slips": found.slips,
        "tipping_margin": found.tipping_margin.min(),
        "tips_at": found.tips_at,
        "lifts": found.lifts,
        "overloaded": list(found.overloaded),
        "notes": list(found.notes),
    }


def _show(found: Feasibility) -> None:

    title, _, *lines = str(found).splitlines()
    rows = []
    for wheel, load, share in zip(found.wheels, found.normal.T, found.share.T, strict=True):
        low, high = format_number(load.min()), format_number(load.max())
        rows.append((wheel, low, high, "N", f"{share.max():.1%}"))
    show_table(
        ("wheel", ">least load", ">largest load", "unit", ">friction used"),
        rows,
        title=title,
        note="\n".join(lines[len(found.wheels) :]),
    )


def size(
    *,
    built: Built,
    catalogue: Path | None = None,
    margin: float = 1.0,
    motors: str | None = None,
    course: CourseOrRun,
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Size motors: what a motion asks of each, and which motors of a catalogue can do it.

    axode size examples/rover.toml --path circle:radius=2,speed=0.8

    axode size five_axis_arm --motion "theta2=0.5*sin(2*t)" --time 6

    Options:
        catalogue FILE: Motors to choose from, preferred ones first: a TOML file with a table
            [motor.NAME] for each, the numbers of a motor and gears = [10, 20].
        margin NUMBER: How many times the motion's torque, heat and speed a motor must bear.
        motors NAME,NAME: Motors to replace; all by default.
        time SECONDS: Duration of a simulation, or of a motion given by formulas.
        plot FILE: File for torque against speed of each motor: .png, .svg or .pdf.
    """
    course.check()
    if catalogue is None:
        refuse("it needs --catalogue", "margin")
    model = built.model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotorLimitWarning)  # they are in the table
        run = course.run(model)
    report, chosen = run.motors, tuple(words(motors))
    sized = report.size(catalogue, margin=margin, motors=chosen) if catalogue else None
    if plot is not None:
        report.plot(*chosen, save=plot)
    if as_json:
        print_json(_data(report, sized))
        return
    _show_motors(report)
    if sized:
        _show_sizing(sized)
    if plot is not None:
        print(f"wrote {plot}")


def _data(report: MotorReport, sized: Sizing | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "model": report.name,
        "motors": report.rows,
        "exceeded": [asdict(excess) for excess in report.excesses],
    }
    if sized:
        data["choices"] = [
            {
                "motor": choice.motor,
                "candidate": choice.candidate,
                "gear": choice.gear,
                "fits": choice.ok,
                "margin": choice.margin,
                "reasons": list(choice.reasons),
            }
            for choice in sized.choices
        ]
        data["best"] = {
            name: None if best is None else {"candidate": best.candidate, "gear": best.gear}
            for name, best in sized.best.items()
        }
    return data


def _show_motors(report: MotorReport) -> None:
    heads, table = report.cells
    show_table(
        (heads[0], *(f">{head}" for head in heads[1:])),
        table,
        title=f"Motors of {report.name}, torques and speeds of their shafts",
        note="\n".join(excess.sentence for excess in report.excesses),
    )


def _show_sizing(sized: Sizing) -> None:
    none = [f"no candidate can do it for '{name}'" for name, best in sized.best.items() if not best]
    show_table(
        ("motor", "candidate", ">gear", ">peak", ">rms", ">speed", ">margin", "verdict"),
        sized.rows,
        title=f"Motors for {sized.name}, margin {sized.margin:g}",
        note="\n".join(none),
    )
