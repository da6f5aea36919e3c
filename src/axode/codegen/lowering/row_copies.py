"""Rows of tables to and from buffers, as functions in IR."""

from __future__ import annotations


def row_copies(lanes: int, *, interleaved: bool) -> tuple[list[str], set[str]]:
    """Functions that copy rows, and what they need declared.

    Args:
        lanes: Runs per vector.
        interleaved: Whether a table holds each number of a group of runs side by side.
    """
    vector = f"<{lanes} x double>"
    place = [f"%first = mul i64 %e, {lanes}", "%place = add i64 %first, %lane"]
    # one run's row of plain numbers to and from a buffer, whose lanes lie next to each other
    functions = [
        _loop(
            "fetch(ptr %row, ptr %buffer, i64 %lane", [*place, *_move("row", "buffer", "e place")]
        ),
        _loop("put(ptr %row, ptr %buffer, i64 %lane", [*place, *_move("buffer", "row", "place e")]),
    ]
    if not interleaved or lanes == 1:
        return functions, set()
    ask = [
        f"%there = getelementptr {vector}, ptr %row, i64 %e",
        "call void @llvm.prefetch.p0(ptr %there, i32 0, i32 2, i32 1)",
    ]
    # a row of all runs of a group at once, and the numbers of one of them
    functions += [
        _loop("announce(ptr %row", ask),
        _loop("copy(ptr %from, ptr %to", _move("from", "to", "e e", vector)),
        _loop("pick(ptr %from, ptr %to, i64 %lane", [*place, *_move("from", "to", "place place")]),
    ]
    return functions, {"declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"}


def _move(source: str, target: str, places: str, kind: str = "double") -> list[str]:
    """Load a number or a vector here, and store it there."""
    here, there = places.split()
    return [
        f"%loaded = getelementptr {kind}, ptr %{source}, i64 %{here}",
        f"%x = load {kind}, ptr %loaded, align 8",
        f"%stored = getelementptr {kind}, ptr %{target}, i64 %{there}",
        f"store {kind} %x, ptr %stored, align 8",
    ]


def _loop(head: str, body: list[str]) -> str:
    """A function that does something for every number of a row, %e."""
    lines = [
        *("entry:", "  br label %check", "check:"),
        "  %e = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %e, %size",
        "  br i1 %more, label %body, label %done",
        "body:",
        *(f"  {line}" for line in body),
        *("  %next = add i64 %e, 1", "  br label %check", "done:", "  ret void"),
    ]
    return "\n".join([f"\ndefine internal void @{head}, i64 %size) #0 {{", *lines, "}\n"])
