"""Evaluations in a row, differentiated together: backwards for gradients, forwards for changes.

Every buffer is written once. A small row becomes one tape afterwards (`fusion`), in which what the
evaluations and their derivatives share is computed once.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, reduce

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import changes_along, gradients, reads
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate
from axode.codegen.tape.tape import Port, Tape

Weights = Mapping[str, tuple[str | float, ...]]  # buffers or numbers that add up, by buffer
KEPT_TAPES = 256  # derivatives of tapes that are remembered


def moved_buffers(evaluations: Sequence[Evaluate], of: Collection[str]) -> set[str]:
    """Buffers that change with some others, these included."""
    moved = set(of)
    for evaluation in evaluations:
        tape = evaluation.tape
        pairs = zip(evaluation.buffers, tape.inputs, strict=False)
        if any(buffer in moved and reads(tape, port.name) for buffer, port in pairs):
            moved |= set(evaluation.buffers[len(tape.inputs) :])
    return moved


def reverse(
    evaluations: Sequence[Evaluate],
    weights: Weights,
    of: Mapping[str, Sequence[int]],
    known: Mapping[str, Tape] | None = None,
) -> tuple[list[Evaluate], dict[str, list[str]]]:
    """Gradients of a weighted sum of what evaluations make.

    Args:
        evaluations: In order; every buffer is written once.
        weights: Buffers that hold the weights of results, or numbers.
        of: The buffers by which it is differentiated, and the elements of each that count.
        known: Gradients of some tapes that were found otherwise, by the tapes' digests: tapes of
            the same arguments, the result and its weights, that give the gradients by all
            arguments one after the other.

    Returns:
        Evaluations to follow the others; per buffer, the new buffers whose sum is its gradient.
    """
    moved = moved_buffers(evaluations, of)
    felt: dict[str, list[str | float]] = {name: list(parts) for name, parts in weights.items()}
    made: list[Evaluate] = []
    for number in reversed(range(len(evaluations))):
        tape, buffers = evaluations[number].tape, evaluations[number].buffers
        n = len(tape.inputs)
        parts = tuple(tuple(felt.pop(b, ())) for b in buffers[n:])
        ports = tuple(
            (port.name, None if buffer not in of else tuple(of[buffer]))
            for buffer, port in zip(buffers[:n], tape.inputs, strict=True)
            if buffer in moved and reads(tape, port.name)
        )
        if not ports or not any(parts):
            continue
        sums, parts = _add_up(tape, number, parts)
        made += sums
        kinds = tuple(tuple(p if isinstance(p, float) else None for p in some) for some in parts)
        adjoint, results = weighted_adjoint(tape, kinds, ports), buffers[:0]
        other = (known or {}).get(tape.digest)
        if other is not None and kinds == ((None,),):
            short = part_of_adjoint(tape, other, ports)
            if _operations_of_both(tape, short) < adjoint.n_operations:
                adjoint, results = short, buffers[n : n + len(short.inputs) - n - 1]
        names = {port.name: b for b, port in zip(buffers[:n], tape.inputs, strict=True)}
        outputs = [f"{names[port.name]}~{number}.{k}" for k, port in enumerate(adjoint.outputs)]
        for output, port in zip(outputs, adjoint.outputs, strict=True):
            felt.setdefault(names[port.name], []).append(output)
        held = [p for some in parts for p in some if isinstance(p, str)]
        made.append(Evaluate(adjoint, (*buffers[:n], *results, *held, *outputs)))
    return made, {name: [p for p in felt.get(name, ()) if isinstance(p, str)] for name in of}


def _add_up(
    tape: Tape, number: int, parts: tuple[tuple[str | float, ...], ...]
) -> tuple[list[Evaluate], tuple[tuple[str | float, ...], ...]]:
    """Add up weights that come in several buffers, so that equal tapes have equal adjoints."""
    made, sums = [], []
    for port, some in zip(tape.outputs, parts, strict=True):
        if len(some) < 2 or not all(isinstance(part, str) for part in some):
            sums.append(some)
            continue
        names = {f"part{k}": port.size for k in range(len(some))}

        def add(**v: Vector) -> dict[str, Vector]:
            return {"sum": [reduce(operator.add, x) for x in zip(*v.values(), strict=True)]}

        total = f"{port.name}~{number}.sum"
        made.append(Evaluate(formula_tape("sum", names, add), (*map(str, some), total)))
        sums.append((total,))
    return made, tuple(sums)


@lru_cache(maxsize=KEPT_TAPES)
def _operations_of_both(tape: Tape, adjoint: Tape) -> int:
    """Operations of a tape and its gradient together, which a plain gradient contains."""

    builder = TapeBuilder()
    arguments = [[builder.input(k, i) for i in range(p.size)] for k, p in enumerate(adjoint.inputs)]
    results = builder.replay(tape, arguments[: len(tape.inputs)])
    results += builder.replay(adjoint, arguments)
    whole = (Port("both", (len(results),)),)
    return Tape.build(tape.name, adjoint.inputs, whole, builder, results).n_operations


@lru_cache(maxsize=KEPT_TAPES)
def part_of_adjoint(
    tape: Tape, adjoint: Tape, of: tuple[tuple[str, tuple[int, ...] | None], ...]
) -> Tape:
    """Some gradients of a tape out of all of them.

    Args:
        tape: What is differentiated.
        adjoint: Gradients by all arguments, one after the other.
        of: Arguments by which it is differentiated, and their elements that count, if not all do.

    Returns:
        A tape of the same arguments, without the result where that is not read.
    """

    builder = TapeBuilder()
    result = adjoint.inputs[-2].name
    ports = [p for p in adjoint.inputs if p.name != result or reads(adjoint, result)]
    places = {port.name: k for k, port in enumerate(ports)}
    arguments = [
        [builder.input(places.get(port.name, 0), i) for i in range(port.size)]
        for port in adjoint.inputs
    ]
    numbers = iter(builder.replay(adjoint, arguments))
    found = {port.name: [next(numbers) for _ in range(port.size)] for port in tape.inputs}
    outputs, results = [], []
    for name, elements in of:
        picked = found[name] if elements is None else [found[name][i] for i in elements]
        outputs.append(Port(name, (len(picked),)))
        results += picked
    return Tape.build(adjoint.name, tuple(ports), tuple(outputs), builder, results)


@lru_cache(maxsize=KEPT_TAPES)
def weighted_adjoint(
    tape: Tape,
    weights: tuple[tuple[float | None, ...], ...],
    of: tuple[tuple[str, tuple[int, ...] | None], ...],
) -> Tape:
    """Gradient of a tape whose weights come in parts.

    Args:
        tape: What is differentiated.
        weights: Parts of the weights of each output: a number, or None for an argument.
        of: Arguments by which it is differentiated, and their elements that count, if not all do.

    Returns:
        A tape of the same arguments, then of the parts in order, with one output per argument in
        `of` whose gradient is not zero, named as the argument.
    """
    builder, ports = TapeBuilder(), list(tape.inputs)
    arguments = [
        [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, port in enumerate(ports)
    ]
    sums: list[Formula | None] = []
    for port, parts in zip(tape.outputs, weights, strict=True):
        total: list[Formula | None] = [None] * port.size
        for number, part in enumerate(parts):
            if part is None:
                vector = [Formula(builder, builder.input(len(ports), i)) for i in range(port.size)]
                ports.append(Port(f"{port.name}_weight{number}", port.shape))
            else:
                vector = [Formula(builder, builder.constant(part))] * port.size
            total = [b if a is None else a + b for a, b in zip(total, vector, strict=True)]
        sums += total
    found = gradients(tape, arguments, sums, [name for name, _ in of])[1]
    zero, outputs, results = builder.constant(0.0), [], []
    for name, elements in of:
        picked = found[name] if elements is None else [found[name][i] for i in elements]
        if any(x is not None for x in picked):
            outputs.append(Port(name, (len(picked),)))
            results += [zero if x is None else x.number for x in picked]
    return Tape.build(f"{tape.name}_adjoint", tuple(ports), tuple(outputs), builder, results)


def forward(
    evaluations: Sequence[Evaluate], directions: Mapping[str, str]
) -> tuple[list[Evaluate], dict[str, str]]:
    """Changes of what evaluations make, along changes of some buffers.

    Args:
        evaluations: In order; every buffer is written once.
        directions: Buffers that hold the changes of others.

    Returns:
        Evaluations to follow the others; the buffer of the change of each buffer that moves.
    """
    known, made = dict(directions), []
    for evaluation in evaluations:
        tape, buffers = evaluation.tape, evaluation.buffers
        n = len(tape.inputs)
        pairs = list(zip(buffers[:n], tape.inputs, strict=True))
        moving = tuple(port.name for b, port in pairs if b in known and reads(tape, port.name))
        if not moving:
            continue
        along = directional_tape(tape, moving)
        held = [known[b] for b, port in pairs if port.name in moving]
        outputs = [f"{b}~" for b in buffers[n:]]
        made.append(Evaluate(along, (*buffers[:n], *held, *outputs)))
        known |= dict(zip(buffers[n:], outputs, strict=True))
    return made, known


@lru_cache(maxsize=KEPT_TAPES)
def directional_tape(tape: Tape, moving: tuple[str, ...]) -> Tape:
    """Changes of a tape's results; one more argument per moving one holds its change."""
    builder, ports = TapeBuilder(), list(tape.inputs)
    arguments: list[Vector] = [
        [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, port in enumerate(ports)
    ]
    directions: list[list[Formula | None]] = [[None] * port.size for port in tape.inputs]
    for k, port in enumerate(tape.inputs):
        if port.name in moving:
            place = len(ports)
            directions[k] = [Formula(builder, builder.input(place, i)) for i in range(port.size)]
            ports.append(Port(f"{port.name}_change", port.shape))
    changes = changes_along(tape, arguments, directions)
    still = builder.constant(0.0)
    results = [still if x is None else x.number for x in changes]
    return Tape.build(f"{tape.name}_along", tuple(ports), tape.outputs, builder, results)


def needed_evaluations(evaluations: Sequence[Evaluate], wanted: Collection[str]) -> list[Evaluate]:
    """Evaluations on which some buffers depend."""
    needed, kept = set(wanted), []
    for evaluation in reversed(evaluations):
        n = len(evaluation.tape.inputs)
        if needed & set(evaluation.buffers[n:]):
            kept.append(evaluation)
            needed |= set(evaluation.buffers[:n])
    return kept[::-1]


def part_of_tape(tape: Tape, results: Sequence[int], name: str | None = None) -> Tape:
    """A tape of some of another one's results, as one vector."""
    return _part_of_tape(tape, tuple(results), name)


@lru_cache(maxsize=KEPT_TAPES)
def _part_of_tape(tape: Tape, results: tuple[int, ...], name: str | None) -> Tape:

    builder = TapeBuilder()
    arguments = [[builder.input(k, i) for i in range(p.size)] for k, p in enumerate(tape.inputs)]
    numbers = builder.replay(tape, arguments)
    output = (Port(name or tape.outputs[0].name, (len(results),)),)
    return Tape.build(tape.name, tape.inputs, output, builder, [numbers[i] for i in results])
