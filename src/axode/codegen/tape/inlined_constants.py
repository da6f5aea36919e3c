"""Constants of a program inside its tapes, where they simplify what is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.program import Evaluate, JacobianColumns, Operation, Program, While
from axode.codegen.tape.tape import Tape

Constants = Mapping[str, Mapping[int, float]]


def inline_constants(program: Program) -> Program:
    """Replace what tapes read of the program's constants by these numbers."""
    if not program.constants:
        return program
    tapes: dict[tuple[str, tuple[str, ...]], Tape] = {}

    def inlined(operation: Operation) -> Operation:
        match operation:
            case Evaluate(tape, buffers):
                key = tape.digest, buffers[: len(tape.inputs)]
                if key not in tapes:
                    tapes[key] = _inline(tape, buffers, program.constants)
                return replace(operation, tape=tapes[key])
            case While():
                return replace(operation, body=all_inlined(operation.body))
            case JacobianColumns():
                body = tuple(
                    replace(e, tape=_inline(e.tape, e.buffers, program.constants))
                    for e in operation.body
                )
                return replace(operation, body=body)
            case _:
                return operation

    def all_inlined(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(map(inlined, operations))

    return replace(program, operations=all_inlined(program.operations))


def _inline(tape: Tape, buffers: Sequence[str], constants: Constants) -> Tape:
    own = [constants.get(buffer, {}) for buffer in buffers[: len(tape.inputs)]]
    if not any(own):
        return tape
    builder = TapeBuilder()
    arguments = [
        [
            builder.constant(known[k]) if k in known else builder.input(place, k)
            for k in range(port.size)
        ]
        for place, (port, known) in enumerate(zip(tape.inputs, own, strict=True))
    ]
    results = builder.replay(tape, arguments)
    return Tape.build(tape.name, tape.inputs, tape.outputs, builder, results)
