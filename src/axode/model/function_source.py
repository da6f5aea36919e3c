"""Where a model's functions come from: equations, or tapes read from a file."""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import jacobian_tape
from axode.codegen.tape.tape import Port, Tape
from axode.derivatives.derivative_tables import DIFFERENTIATED, SOME, TableName
from axode.disk.bounded import as_dataclass, parse_json
from axode.errors import FileError, NotApplicable, UnknownName
from axode.model.parameter_checks import FAULTS, ParameterChecks
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    import casadi

    from axode.mechanism.scene.scene import Scene
    from axode.model.model_file import FileDescription
    from axode.symbolic.constraints.row_choice import RowNumbers
    from axode.symbolic.equations import Equations
    from axode.symbolic.functions import FunctionGraph

PRECISIONS = ("float64", "float32")
ALL_ROWS = "all_rows"
CONTACT_ROWS = "contact_rows"
ON_DEMAND = (  # functions that files hold only if they are named, besides derivatives
    "leg_jacobians",
    "leg_speed_maps",
    "platform_twist_map",
    "platform_velocities",
    "motor_map",
    "leg_wrenches",
    ALL_ROWS,
    "twist_constraints",
    "twist_map",
    "twist_map_rate",
    "body_inertias",
    "momentum_speeds",
    "step",
    CONTACT_ROWS,
    "state_rate_adjoint",
    "projection_adjoint",
    FAULTS,
)
JACOBIAN = "state_rate_jacobian"  # that implicit steps need


@dataclass(frozen=True)
class Entry:
    """A function ready to be called with one array per argument, batch axes first."""

    arguments: tuple[str, ...]
    call: Callable[..., Any]


class AbstractLibrary(ABC):
    """Source of the functions of a model."""

    target: str
    precision: str = "float64"

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the functions."""

    @abstractmethod
    def tape(self, name: str) -> Tape:
        """Tape of a function."""

    @abstractmethod
    def entry(self, name: str) -> Entry:
        """Function ready to be called."""

    def jacobian(self, name: str, by: str) -> Tape:
        """Derivative of a function by one of its arguments, everything else held."""
        tape = self.tape(name)
        choices = [port.name for port in tape.inputs if port.name != "weights"]
        if by not in choices:
            raise UnknownName(f"function '{name}'", "argument", by, choices)
        return jacobian_tape(tape, by)

    @abstractmethod
    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        """Hybrid dynamics for one choice of what is known."""

    def tape_entry(self, tape: Tape) -> Entry:
        """Function of any tape, for the target of these functions."""
        return tape_entry(tape, self.target, self.precision)

    @property
    @abstractmethod
    def row_numbers(self) -> RowNumbers | None:
        """What choices of rows and speeds are made from; None if they cannot be changed."""

    @property
    @abstractmethod
    def row_equations(self) -> Equations | None:
        """Equations from which models on other rows and speeds are made; None if there are none."""

    @abstractmethod
    def describe(self) -> FileDescription | None:
        """Return what files hold so that runs can change rows and speeds, if they can hold it."""

    @abstractmethod
    def scene(self) -> Scene:
        """Return what pictures of the model show."""

    @abstractmethod
    def on_target(self, target: str) -> AbstractLibrary:
        """Source of these functions for another target, in double precision.

        The target "numpy" evaluates tapes without compiling them.
        """


class DerivedLibrary(AbstractLibrary):
    """Functions made of those of another source; their rows and speeds do not change.

    Args:
        base: The other source.
    """

    def __init__(self, base: AbstractLibrary) -> None:
        self._base = base
        self.target, self.precision = base.target, base.precision
        self._tapes: dict[str, Tape] = {}

    @abstractmethod
    def changed(self, name: str) -> Tape:
        """Make the tape of a function."""

    def names(self) -> tuple[str, ...]:
        return self._base.names()

    def tape(self, name: str) -> Tape:
        if name not in self._tapes:
            self._tapes[name] = self.changed(name)
        return self._tapes[name]

    def entry(self, name: str) -> Entry:
        return tape_entry(self.tape(name), self.target, self.precision)

    @property
    def row_numbers(self) -> None:
        return None

    @property
    def row_equations(self) -> None:
        return None

    def describe(self) -> None:
        return None

    def scene(self) -> Scene:
        return self._base.scene()


class SymbolicLibrary(AbstractLibrary):
    """Functions that are made from equations when they are first used."""

    def __init__(
        self, equations: Equations, target: str, *, fixed: bool, precision: str = "float64"
    ) -> None:
        self.equations = equations
        self._fixed = fixed
        self.target = target
        self.precision = precision
        self._tapes: dict[str, Tape] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _library, (type(self), self.equations, self.target, self._fixed, self.precision)

    def on_target(self, target: str) -> SymbolicLibrary:
        library = SymbolicLibrary(self.equations, target, fixed=self._fixed)
        library._tapes = self._tapes
        return library

    def scene(self) -> Scene:
        from axode.mechanism.scene.shaping import scene_of

        return scene_of(self.equations.mechanism)

    @cached_property
    def row_numbers(self) -> RowNumbers:
        from axode.symbolic.constraints.row_choice import RowNumbers

        cache = self.equations.cache
        data = None if cache is None else cache.read("row numbers")
        if data is not None:
            with contextlib.suppress(FileError):
                known = as_dataclass(RowNumbers, parse_json(data), "row numbers")
                if not any(known.faults):
                    return known
        numbers = RowNumbers.of(self.equations.system)
        if cache is not None:
            cache.write("row numbers", json.dumps(asdict(numbers)).encode())
        return numbers

    @property
    def row_equations(self) -> Equations:
        return self.equations

    def describe(self) -> FileDescription | None:
        from axode.model.model_file import FileDescription

        return FileDescription.of(self.equations, self.row_numbers)

    def names(self) -> tuple[str, ...]:
        from axode.symbolic.functions import RECIPES

        own = (CONTACT_ROWS,) if self.equations.mechanism.contact_parts else ()
        return (*RECIPES, *own)

    @stoppable
    def tape(self, name: str) -> Tape:
        known = self._tapes.get(name)
        if known is None:
            known = self._tapes[name] = self._known_tape(name, lambda: self._tape(name))
        return known

    def _known_tape(self, name: str, make: Callable[[], Tape]) -> Tape:
        """Read a tape that this or another process made of the same description, or make it."""
        cache, entry = self.equations.cache, f"tape {name}, fixed {self._fixed}"
        data = None if cache is None else cache.read(entry)
        if data is not None:
            with contextlib.suppress(FileError):
                return Tape.from_bytes(data)
        tape = make()
        if cache is not None:
            cache.write(entry, tape.to_bytes())
        return tape

    def _tape(self, name: str) -> Tape:
        if name == FAULTS:
            names = () if self._fixed else tuple(self.equations.parameters)
            return ParameterChecks.of(self.equations.mechanism, names).tape
        function, by, argument = name.partition(SOME)
        if by and TableName.read(name) is None:
            return self.jacobian(function, argument)
        return graph_tape(self._graph(name))

    def jacobian(self, name: str, by: str) -> Tape:
        """Those of the dynamics by speeds, accelerations and inputs are columns of their tables; by
        coordinates and parameters the tables have others, which keep loops closed."""
        if name not in DIFFERENTIATED or by not in ("nu", "nu_dot", "u"):
            return super().jacobian(name, by)
        table = self.tape(TableName(name, (by,)).text)
        builder, (rows, columns) = TapeBuilder(), table.outputs[0].shape
        inputs = [[builder.input(k, i) for i in range(p.size)] for k, p in enumerate(table.inputs)]
        results = np.reshape(builder.replay(table, inputs), (rows, columns))[:, 1:]
        port = Port(f"{name}{SOME}{by}", results.shape)
        return Tape.build(port.name, table.inputs, (port,), builder, results.ravel().tolist())

    @stoppable
    def entry(self, name: str) -> Entry:
        return self._entry(name, lambda: self._graph(name))

    @stoppable
    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        from axode.symbolic.functions import hybrid_graph

        return self._entry(
            f"hybrid {accelerations} {inputs}",
            lambda: hybrid_graph(self.equations, accelerations, inputs, fixed=self._fixed),
        )

    def _graph(self, name: str) -> FunctionGraph:
        from axode.symbolic.functions import function_graph

        table = TableName.read(name)
        if table is not None:
            from axode.derivatives.derivative_tables import derivative_graph

            return derivative_graph(self.equations, table, fixed=self._fixed)
        if name in ("state_rate_adjoint", "projection_adjoint"):
            from axode.derivatives.step_adjoints import adjoint_graph

            return adjoint_graph(self.equations, name, fixed=self._fixed)
        return function_graph(self.equations, name, fixed=self._fixed)

    def _entry(self, name: str, graph: Callable[[], FunctionGraph]) -> Entry:
        if self.target == "interpreter":
            from axode.codegen.targets.interpreter import InterpretedFunction

            made = graph()
            return Entry(made.arguments, InterpretedFunction(made))
        tape = self._tapes.get(name)
        if tape is None:
            tape = self._tapes[name] = self._known_tape(name, lambda: graph_tape(graph()))
        return tape_entry(tape, self.target, self.precision)


def _library(
    kind: type[SymbolicLibrary], equations: Equations, target: str, fixed: bool, precision: str
) -> SymbolicLibrary:
    return kind(equations, target, fixed=fixed, precision=precision)


class TapeLibrary(AbstractLibrary):
    """Functions from a file; neither the mechanism nor CasADi is needed."""

    def __init__(
        self,
        tapes: Mapping[str, Tape],
        scene: Scene,
        target: str = "cpu",
        precision: str = "float64",
        description: FileDescription | None = None,
    ) -> None:
        self._tapes = dict(tapes)
        self._scene = scene
        self.target = target
        self.precision = precision
        self.description = description

    def on_target(self, target: str) -> TapeLibrary:
        return TapeLibrary(self._tapes, self._scene, target, description=self.description)

    @cached_property
    def row_numbers(self) -> RowNumbers | None:
        d = self.description
        needed = ("all_rows", "rates", "pivots")
        usable = d is not None and d.is_usable and all(name in self._tapes for name in needed)
        return d.rows if d is not None and usable else None

    def describe(self) -> FileDescription | None:
        return self.description if ALL_ROWS in self._tapes else None

    @property
    def row_equations(self) -> Equations | None:
        return None if self.description is None else self.description.equations

    def scene(self) -> Scene:
        return self._scene

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self._tapes if name not in (FAULTS, ALL_ROWS))

    def tape(self, name: str) -> Tape:
        on_demand = name in (*ON_DEMAND, JACOBIAN) or TableName.read(name) is not None
        if name not in self._tapes and on_demand:
            raise NotApplicable(
                f"this file has no {name}; save it along: "
                f'model.save(path, [*model.functions, "{name}"])'
            )
        if name not in self._tapes:
            from axode.symbolic.functions import RECIPES

            if name in RECIPES:
                raise NotApplicable(
                    f"this file was saved without the function {name}: save the model again "
                    "without a list of functions, model.save(path)"
                )
            raise UnknownName("this file", "function", name, self._tapes)
        return self._tapes[name]

    def entry(self, name: str) -> Entry:
        return tape_entry(self.tape(name), self.target, self.precision)

    def jacobian(self, name: str, by: str) -> Tape:
        known = self._tapes.get(f"{name}{SOME}{by}")
        return super().jacobian(name, by) if known is None else known

    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        raise NotApplicable(
            "a model read from a file has no hybrid dynamics; compile it from the mechanism"
        )


def graph_tape(graph: FunctionGraph) -> Tape:
    """Tape of one of a model's functions."""
    sizes = dict(zip(graph.arguments, graph.sizes, strict=True))
    return shaped_tape(graph.function, sizes, graph.name, graph.shape)


def shaped_tape(
    function: casadi.Function, sizes: Mapping[str, int], name: str, shape: tuple[int, ...]
) -> Tape:
    """Tape whose ports have the shapes of the model's arrays."""
    tape = Tape.from_casadi(function)
    inputs = tuple(Port(argument, (size,)) for argument, size in sizes.items())
    return replace(tape, inputs=inputs, outputs=(Port(name, shape),))


def tape_entry(tape: Tape, target: str = "cpu", precision: str = "float64") -> Entry:
    """Function of a tape, compiled when it is first called."""
    arguments = tuple(port.name for port in tape.inputs)
    if target in ("interpreter", "numpy"):
        from axode.codegen.targets.interpreter import InterpretedTape

        return Entry(arguments, InterpretedTape(tape))
    if target == "cuda":
        return Entry(arguments, gpu_function(tape, precision))
    from axode.codegen.targets.cpu import CompiledFunction

    return Entry(arguments, CompiledFunction(tape))


def gpu_function(tape: Tape, precision: str) -> Any:
    """Function of a tape on the GPU of this machine."""
    from axode.codegen.targets.gpu_rollout import load_kernel
    from axode.runtime.cuda import own_capability

    own_capability()  # before anything is compiled: there may be no GPU
    from axode.codegen.targets.ptx import map_program

    return load_kernel(map_program(tape), precision).function(tape.name)


def check_precision(precision: str, target: str) -> None:
    """Check that a target has a precision.

    Raises:
        UnknownName: for a precision that no target has.
        NotApplicable: for one that this target lacks.
    """
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise UnknownName("axode", "precision", precision, PRECISIONS)
    if precision != "float64" and target != "cuda":
        raise NotApplicable(
            f"precision='{precision}' is for GPUs: target='cuda'; the target '{target}' computes "
            "in float64"
        )
