"""A fixed step of a model in C, and the same step as a tape, from which its errors are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import Array
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.c import NUMBERS, c_comment, c_function, c_helpers
from axode.exports.fmu_description import ARGUMENTS, fmu_functions
from axode.model.model_parts import facts_of, function_tape
from axode.model.parameter_checks import parameter_checks
from axode.problems.runs.settings import DEFAULT_STEP

if TYPE_CHECKING:
    from axode.model.model import Model

CORE = "fixed_step.h"
LIMITS = {  # of fixed_step.h
    "float64": {"CLOSED": "1e-13", "INWARDS": "1e-15", "JUMPED": "1e-12", "TORN": "1e-9"},
    "float32": {"CLOSED": "2e-6f", "INWARDS": "5e-7f", "JUMPED": "1e-5f", "TORN": "1e-4f"},
}
FLOOR = {"float64": "floor", "float32": "floorf"}
TORN = (
    "singular in the step; 3 if a prescribed position jumps. The step is divided where prescribed",
    "motions switch, and speeds jump there with prescribed rates.",
)
SAMPLED = (
    "It is divided where the law takes samples, at whole multiples of its periods, and has to go",
    "forwards in time.",
)
MOTION = 0.05  # of a coordinate in such a step [rad, or lengths of the model]


class CStep:
    """The step of a model, and the closing of its loops, in C.

    Attributes:
        name: C name of the step.
        audited: C name of the step that reports its energy error and smallest pivot, "" if the
            model has no function of energy.
        checking: C name of the function that checks parameters, "" if there is nothing to check.
        closing: C name of the function that closes loops, "" if nothing opens.
        sampling: C name of the function that takes the first samples, "" if a law takes none.
        precision: "float64" or "float32".
        tape: The whole step as a tape of t, x, u, p and dt.
    """

    def __init__(self, model: Model, prefix: str, precision: str) -> None:
        self._model, self.precision = model, precision
        self._functions = fmu_functions(model, ())
        self._n_q = len(model.coordinates)
        opens = self._functions.projection is not None
        self._checks = parameter_checks(model)
        self.name = f"{prefix}step"
        self.audited = f"{prefix}audited_step" if self._functions.audit.results.size else ""
        self.checking = f"{prefix}check" if self._checks else ""
        self.closing = f"{prefix}close" if opens else ""
        self.sampling = f"{prefix}sample" if self._functions.periods else ""
        self._prefix = prefix
        read = {port.name for port in function_tape(model, "state_rate").inputs}
        read |= {"t"} if self.sampling else set()
        self.arguments = tuple(name for name in ("q", "nu", "u", "t", "p") if name in read)
        self._near = tuple(port.name for port in function_tape(model, "projection").inputs)
        self.tape = self._whole_step()

    # the step as a tape ------------------------------------------------------------------------

    def _whole_step(self) -> Tape:
        """The operations of fixed_step.h in their order, four rates and a projection."""
        builder = TapeBuilder()
        ports = (*self._functions.rate.inputs, Port("dt", (1,)))
        t, x, u, p, dt = (
            [Formula(builder, builder.input(k, i)) for i in range(port.size)]
            for k, port in enumerate(ports)
        )

        def call(tape: Tape, time: Formula, at: Vector) -> Vector:
            given = [[time.number], *([v.number for v in vector] for vector in (at, u, p))]
            return [Formula(builder, number) for number in builder.replay(tape, given)]

        def move(length: Formula, along: Vector) -> Vector:
            return [a + length * b for a, b in zip(x, along, strict=True)]

        rate, h = self._functions.rate, dt[0]
        half, sixth, end = 0.5 * h, h / 6.0, t[0] + h
        begin, inner_end = t[0], end
        if self._functions.n_places:
            off = float(LIMITS[self.precision]["INWARDS"].rstrip("f")) * abs(t[0]).most(abs(end))
            begin, inner_end = begin + off, end - off
        k1 = call(rate, begin, x)
        k2 = call(rate, t[0] + half, move(half, k1))
        k3 = call(rate, t[0] + half, move(half, k2))
        k4 = call(rate, inner_end, move(h, k3))
        slopes = [a + 2.0 * (b + c) + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
        after = move(sixth, slopes)
        if self._functions.projection is not None:
            closed = call(self._functions.projection, end, after)
            after = [*closed, *after[self._n_q :]]
        outputs = (Port("q", (self._n_q,)), Port("nu", (len(after) - self._n_q,)))
        return Tape.build("step", ports, outputs, builder, [v.number for v in after])

    def samples(self, arguments: Mapping[str, Array]) -> list[Array]:
        """Arguments of the tape from those of the model."""
        x = np.concatenate([arguments["q"], arguments["nu"]], axis=1)
        given = {**arguments, "x": x, "dt": np.full((len(x), 1), DEFAULT_STEP)}
        arrays = [given[port.name][:, : port.size] for port in self.tape.inputs]
        rates = self._functions.rate.evaluate(*arrays[:-1])[0] / self._lengths()
        rates = np.broadcast_to(np.abs(rates), x.shape)
        fastest = rates[:, : self._n_q].max(axis=1, initial=0.0, keepdims=True)
        sharpest = rates[:, self._n_q :].max(axis=1, initial=0.0, keepdims=True)
        # at this speed and acceleration, MOTION at the most
        with np.errstate(divide="ignore"):
            np.minimum(arrays[-1], MOTION / fastest, out=arrays[-1])
            np.minimum(arrays[-1], np.sqrt(2 * MOTION / sharpest), out=arrays[-1])
        for period in self._functions.periods:  # the states are those of a time of zero
            np.minimum(arrays[-1], 0.5 * period, out=arrays[-1])
        while self._switches_in(arrays):
            arrays[-1] *= 0.5
        return arrays

    def _switches_in(self, arrays: Sequence[Array]) -> bool:
        """Check whether prescribed motions switch in steps of some length."""
        made, (t, *rest, dt) = self._functions, arrays
        sides = (made.places.evaluate(x, *rest)[0] for x in (t + 1e-6 * dt, t + dt))
        before, after = (places[..., : made.n_places] for places in sides)
        return bool((before != after).any())

    def _lengths(self) -> Array:
        """What each state is measured by: the length of the mechanism where its unit has metres."""
        model = self._model
        units = {signal.name: signal.unit for signal in model.signals}
        names = (*model.coordinates, *model.independent)
        return np.array(
            [facts_of(model).length if units[n] in ("m", "m/s") else 1.0 for n in names]
        )

    @property
    def check_statements(self) -> tuple[str, ...]:
        """Statements of a self-test that make the step of a sample."""
        places = {name: f"in{k}[s]" for k, name in enumerate((*ARGUMENTS, "dt"))}
        passed = {"t": "in0[s][0]", "q": "out0", "nu": "out1"}
        called = [passed.get(name) or places[name] for name in self.arguments]
        n_q, n_nu = (port.size for port in self.tape.outputs)
        return (
            f"for (i = 0; i < {n_q}; ++i) out0[i] = in1[s][i];",
            f"for (i = 0; i < {n_nu}; ++i) out1[i] = in1[s][{n_q} + i];",
            f"wrong += {self.name}({', '.join((*called, 'in4[s][0]'))}) != 0;",
        )

    # C -----------------------------------------------------------------------------------------

    def declarations(self, notes: Sequence[str]) -> list[str]:
        """What the header says about the functions, with their comments."""
        closes = [
            "Coordinates are brought back onto the constraints by one step of Newton's method."
        ]
        held = ", with inputs held" if self._model.inputs else ""
        lines = [
            f"{self.name}: a step of the classical Runge-Kutta method by dt [s]{held}.",
            "",
            "The state q, nu becomes that at the end of the step.",
            *(closes if self.closing else []),
            *(SAMPLED if self.sampling else ()),
            "Returns 0; 1 if the motion is not finite or leaps; 2 if the independent speeds become",
            *(TORN if self._functions.n_places else ["singular in the step."]),
            "The state then stays as it is.",
            *notes,
        ]
        made = [f"{c_comment(lines)}\nint {self.name}({self._signature(self.arguments, dt=True)});"]
        if self.audited:
            lines = [
                f"{self.audited}: the same step, with an audit of it.",
                "",
                "`due` is the energy at the start, where `begun` is 0, and the work since;",
                "`energy_error` is what the energy differs from it after the step [J], and",
                "`smallest_pivot` the smallest pivot of the solves there: singular at zero.",
                "Begin with a structure of zeros.",
            ]
            real = NUMBERS[self.precision].type
            made.append(
                f"typedef struct {{\n    {real} due;\n    {real} energy_error;\n"
                f"    {real} smallest_pivot;\n    int begun;\n}} {self._prefix}audit;"
            )
            signature = f"{self._signature(self.arguments, dt=True)}, {self._prefix}audit *audit"
            made.append(f"{c_comment(lines)}\nint {self.audited}({signature});")
        if self._checks:
            lines = [
                f"{self.checking}: find parameters that no mechanism can have.",
                "",
                "Returns 0, or the number of the first of these checks that fails:",
                *(f"{k + 1}: {text}" for k, text in enumerate(self._checks.texts)),
            ]
            real = NUMBERS[self.precision].type
            made.append(f"{c_comment(lines)}\nint {self.checking}(const {real} *p);")
        if self.sampling:
            lines = [
                f"{self.sampling}: take the samples of the law at the start.",
                "",
                "Call it once before the first step; the end of nu is what the law remembers then.",
                "Returns 0; 1 if the state is not finite.",
            ]
            made.append(
                f"{c_comment(lines)}\nint {self.sampling}({self._signature(self.arguments)});"
            )
        if self.closing:
            lines = [
                f"{self.closing}: bring coordinates onto the constraints by Newton's method.",
                "",
                "Returns 0; 1 if it does not converge.",
            ]
            made.append(f"{c_comment(lines)}\nint {self.closing}({self._signature(self._near)});")
        return made

    def _signature(self, arguments: Sequence[str], *, dt: bool = False) -> str:
        real = NUMBERS[self.precision].type
        typed = {"q": f"{real} *q", "nu": f"{real} *nu", "t": f"{real} t"}
        made = [typed.get(name, f"const {real} *{name}") for name in arguments]
        return ", ".join([*made, *([f"{real} dt"] if dt else [])])

    def source(self, header: str) -> str:
        """Text of the source, which includes `fixed_step.h`."""
        made = self._functions
        checks = self._checks.tape if self._checks else None
        optional = {
            "projection": made.projection,
            "pivots": made.pivots,
            "audit": made.audit,
            "places": made.places,
            "momentum": made.momentum,
            "update": made.update,
            "faults": checks,
        }
        tapes = {"flow": made.flow} | {
            name: tape for name, tape in optional.items() if tape is not None and tape.results.size
        }
        sizes = {
            "N_Q": self._n_q,
            "N_X": made.rate.outputs[0].size,
            "N_PIVOTS": made.pivots.outputs[0].size,
            "N_PLACES": made.n_places,
            "N_SLOPES": made.places.outputs[0].size - made.n_places,
            "CAN_OPEN": int(bool(self.closing)),
            "N_CHECKS": len(self._checks.texts) if self._checks else 0,
            "N_PERIODS": len(made.periods),
            "N_MEMORY": made.n_memory,
        }
        text = [
            f'#include "{header}.h"\n',
            "#include <math.h>\n",
            *c_helpers(tapes.values(), self.precision),
            *(c_function(tape, f"model_{name}", self.precision) for name, tape in tapes.items()),
            f"typedef {NUMBERS[self.precision].type} real;",
            *(f"#define {name} {limit}" for name, limit in LIMITS[self.precision].items()),
            f"#define FLOOR {FLOOR[self.precision]}",
            *(f"#define {name} {size}" for name, size in sizes.items()),
            *sample_periods(made.periods),
            f'#include "{CORE}"\n',
            _STEP.replace("NAME", self.name)
            .replace("SIGNATURE", self._signature(self.arguments, dt=True))
            .replace("    MISSING\n", _absent("tup", self.arguments)),
        ]
        if self.audited:
            text.append(
                _AUDITED.replace("NAME", self.audited)
                .replace("SIGNATURE", self._signature(self.arguments, dt=True))
                .replace("AUDIT_TYPE", f"{self._prefix}audit")
                .replace("    MISSING\n", _absent("tup", self.arguments))
            )
        if self._checks:
            text.append(_CHECK.replace("NAME", self.checking))
        if self.sampling:
            text.append(
                _SAMPLE.replace("NAME", self.sampling)
                .replace("SIGNATURE", self._signature(self.arguments))
                .replace("    MISSING\n", _absent("up", self.arguments))
            )
        if self.closing:
            text.append(
                _CLOSE.replace("NAME", self.closing)
                .replace("SIGNATURE", self._signature(self._near))
                .replace("    MISSING\n", _absent("tp", self._near))
            )
        return "\n".join(text)

    @property
    def call(self) -> str:
        """A call of the step, with the names of its arguments."""
        return f"{self.name}({', '.join((*self.arguments, 'dt'))})"

    @property
    def core(self) -> str:
        """Text of `fixed_step.h`."""
        return (files("axode.exports") / CORE).read_text("utf-8")

    @property
    def stack_tapes(self) -> tuple[Tape, ...]:
        """Tapes of which one at a time is evaluated in a step."""
        made = self._functions
        tapes = (
            *(made.flow, made.projection, made.pivots, made.audit),
            *(made.places, made.momentum, made.update),
        )
        return tuple(t for t in tapes if t is not None)

    @property
    def stack_numbers(self) -> int:
        """Numbers in the arrays of a step, besides those of the tapes."""
        made = self._functions
        twice = made.pivots.outputs[0].size + made.places.outputs[0].size
        return 6 * (made.rate.outputs[0].size + 1) + self._n_q + 2 * twice


def sample_periods(periods: Sequence[float]) -> list[str]:
    """Statements of C that define the times between samples, if there are any."""
    listed = ", ".join(map(repr, periods))
    return [f"static const real sample_periods[] = {{{listed}}};"] if periods else []


def _absent(names: str, arguments: Sequence[str]) -> str:
    """Definitions of arguments that a function does not take and its tapes do not read."""
    values = {"t": "    const real t = 0;\n"}
    absent = [name for name in names if name not in arguments]
    return "".join(values.get(n, f"    const real *const {n} = 0;\n") for n in absent)


_STEP = """/* Step x, whose last number is the work done; gives what the function below returns. */
static int make_step(const real *u, const real *p, real t, real dt, real *x)
{
    int i;
#if N_PIVOTS
    real before[N_PIVOTS], after[N_PIVOTS];
    const real end = t + dt;
    model_pivots(&t, x, u, p, before);
#endif
    x[N_X] = 0;
    i = divided_step(u, p, t, dt, x);
    if (i) return i;
#if N_PIVOTS
    model_pivots(&end, x, u, p, after);
    for (i = 0; i < N_PIVOTS; ++i)
        if (!(before[i] * after[i] > (real)0)) return 2;
#endif
    return 0;
}

int NAME(SIGNATURE)
{
    MISSING
    real x[N_X + 1];
    int i, status;
    for (i = 0; i < N_Q; ++i) x[i] = q[i];
    for (i = N_Q; i < N_X; ++i) x[i] = nu[i - N_Q];
    status = make_step(u, p, t, dt, x);
    if (status) return status;
    for (i = 0; i < N_Q; ++i) q[i] = x[i];
    for (i = N_Q; i < N_X; ++i) nu[i - N_Q] = x[i];
    return 0;
}
"""

_AUDITED = """int NAME(SIGNATURE, AUDIT_TYPE *audit)
{
    MISSING
    const real end = t + dt;
    real x[N_X + 1], now[2];
    int i, status;
    for (i = 0; i < N_Q; ++i) x[i] = q[i];
    for (i = N_Q; i < N_X; ++i) x[i] = nu[i - N_Q];
    if (!audit->begun) {
        model_audit(&t, x, u, p, now);
        audit->due = now[1];
        audit->begun = 1;
    }
    status = make_step(u, p, t, dt, x);
    if (status) return status;
    model_audit(&end, x, u, p, now);
    audit->due += x[N_X];
    audit->energy_error = now[1] - audit->due;
    audit->smallest_pivot = now[0];
    for (i = 0; i < N_Q; ++i) q[i] = x[i];
    for (i = N_Q; i < N_X; ++i) nu[i - N_Q] = x[i];
    return 0;
}
"""

_SAMPLE = """int NAME(SIGNATURE)
{
    MISSING
    real x[N_X + 1];
    int i;
    for (i = 0; i < N_Q; ++i) x[i] = q[i];
    for (i = N_Q; i < N_X; ++i) x[i] = nu[i - N_Q];
    take_samples(u, p, t, t, 0, x);
    if (!is_finite(x, N_X)) return 1;
    for (i = N_Q; i < N_X; ++i) nu[i - N_Q] = x[i];
    return 0;
}
"""

_CHECK = """int NAME(const real *p)
{
    real faults[N_CHECKS];
    int i;
    model_faults(p, faults);
    for (i = 0; i < N_CHECKS; ++i)
        if (faults[i] != (real)0) return i + 1;
    return 0;
}
"""

_CLOSE = """int NAME(SIGNATURE)
{
    MISSING
    real x[N_X + 1];
    int i, closed;
    for (i = 0; i < N_X; ++i) x[i] = i < N_Q ? q[i] : (real)0;
    closed = close_loops(0, p, t, x);
    for (i = 0; i < N_Q && closed; ++i) q[i] = x[i];
    return !closed;
}
"""
