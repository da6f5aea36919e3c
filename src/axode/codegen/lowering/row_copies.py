"""Rows of tables to and from buffers, as functions in IR."""

from __future__ import annotations


def row_copies(lanes: int, *, interleaved: bool) -> tuple[list[str], set[str]]:
    """Functions that copy rows, and what they need declared.

    Args:
        lanes: Runs per vector.
        interleaved: Whether a table holds each number of a group of runs side by side.
    """
    functions = [_COPIES.replace("LANES", str(lanes))]
    if not interleaved or lanes == 1:
        return functions, set()
    functions.append(_VECTOR_COPIES.replace("LANES", str(lanes)))
    return functions, {"declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"}


# One run's row of plain numbers to and from a buffer, whose lanes lie next to each other.
_COPIES = """
define internal void @fetch(ptr %row, ptr %buffer, i64 %lane, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr double, ptr %row, i64 %e
  %x = load double, ptr %from
  %first = mul i64 %e, LANES
  %place = add i64 %first, %lane
  %to = getelementptr double, ptr %buffer, i64 %place
  store double %x, ptr %to
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
define internal void @put(ptr %row, ptr %buffer, i64 %lane, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %first = mul i64 %e, LANES
  %place = add i64 %first, %lane
  %from = getelementptr double, ptr %buffer, i64 %place
  %x = load double, ptr %from
  %to = getelementptr double, ptr %row, i64 %e
  store double %x, ptr %to
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
"""


# A row of all runs of a group at once, and the numbers of one of them.
_VECTOR_COPIES = """
define internal void @announce(ptr %row, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %ask ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %ask, label %done
ask:
  %there = getelementptr <LANES x double>, ptr %row, i64 %e
  call void @llvm.prefetch.p0(ptr %there, i32 0, i32 2, i32 1)
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
define internal void @copy(ptr %from, ptr %to, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %there = getelementptr <LANES x double>, ptr %from, i64 %e
  %x = load <LANES x double>, ptr %there, align 8
  %here = getelementptr <LANES x double>, ptr %to, i64 %e
  store <LANES x double> %x, ptr %here, align 8
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
define internal void @pick(ptr %from, ptr %to, i64 %lane, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %first = mul i64 %e, LANES
  %place = add i64 %first, %lane
  %there = getelementptr double, ptr %from, i64 %place
  %x = load double, ptr %there
  %here = getelementptr double, ptr %to, i64 %place
  store double %x, ptr %here
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
"""
