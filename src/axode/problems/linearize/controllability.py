"""What inputs can move and outputs can see of a linear system, by names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.numerics.rank import column_space, null_space
from axode.numerics.tolerances import MATRIX_ROUNDING, RANK, SAME_ROOT, SEVEN_DIGITS

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReachableModes:
    """Modes that inputs move or outputs see; true if these are all, and prints what is missing.

    Attributes:
        word: "controllable" or "observable".
        order: How many states there are.
        rank: How many modes are reached.
        poles: Poles of the modes that are not.
        missing: For these, combinations of states that no input moves, or changes of states that
            no output shows.
    """

    word: str
    order: int
    rank: int
    poles: npt.NDArray[np.complex128]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.rank == self.order

    def __str__(self) -> str:
        if self:
            return f"{self.word}: all {self.order} modes"
        lacks = "no input moves" if self.word == "controllable" else "no output shows"
        return (
            f"{self.word}: {self.rank} of {self.order} modes; {lacks} "
            f"{'; '.join(self.missing)} (poles {poles_text(self.poles)})"
        )


def poles_of(A: Array) -> npt.NDArray[np.complex128]:
    """Eigenvalues, sorted by their real parts."""
    return np.sort_complex(np.linalg.eigvals(A).astype(complex))


def poles_text(poles: npt.NDArray[np.complex128]) -> str:
    """Poles with four digits, equal ones counted, conjugate ones as one."""
    size = SAME_ROOT * max(1.0, float(np.abs(poles).max(initial=0.0)))
    texts: list[str] = []
    for pole in poles.tolist():
        real, imaginary = (0.0 if abs(x) < size else x for x in (pole.real, pole.imag))
        pair = f"+-{imaginary:.4g}j" if imaginary else ""
        if imaginary >= 0:
            texts.append((f"{real:.4g}" if real or not pair else "") + pair)
    times = ((text, texts.count(text)) for text in dict.fromkeys(texts))
    return ", ".join(text if count == 1 else f"{text} ({count} times)" for text, count in times)


def controllable(A: Array, B: Array, names: Sequence[str]) -> ReachableModes:
    """Which combinations of states inputs can move."""
    left = _unreached(A, B)
    poles = poles_of(left.T @ A @ left)
    return ReachableModes("controllable", len(A), len(A) - len(poles), poles, _named(left.T, names))


def observable(A: Array, C: Array, names: Sequence[str]) -> ReachableModes:
    """Which changes of states outputs show."""
    unseen = _unreached(A.T, C.T)
    poles = poles_of(unseen.T @ A @ unseen)
    return ReachableModes("observable", len(A), len(A) - len(poles), poles, _named(unseen.T, names))


def _unreached(A: Array, B: Array) -> Array:
    """Orthonormal basis of what is orthogonal to B, A B, A A B, ...

    Each step keeps only the directions that are new, so that powers of A are never formed.
    """
    lengths = np.linalg.norm(B, axis=0)
    newest = column_space(B[:, lengths > 0] / lengths[lengths > 0], RANK)
    reached, size = newest, float(np.linalg.norm(A))
    while newest.shape[1]:
        step = A @ newest
        least = max(RANK * float(np.linalg.norm(step)), MATRIX_ROUNDING * size)
        for _ in range(2):  # twice is enough for orthogonality to rounding
            step = step - reached @ (reached.T @ step)
        newest = column_space(step, least)
        reached = np.column_stack([reached, newest])
    return null_space(reached.T, rank=reached.shape[1])


def _named(rows: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Rows of weights, reduced so that each has a name of its own, as sums of names."""
    rows, own = rows.copy(), []
    for k in range(len(rows)):
        column = int(np.argmax(np.abs(rows[k])))
        rows[k] /= rows[k, column]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, column] * rows[k]
        own.append(column)
    order = np.argsort(own)
    return tuple(_sum(rows[k], names) for k in order)


def _sum(weights: Array, names: Sequence[str]) -> str:
    keep = np.abs(weights) > SEVEN_DIGITS * np.abs(weights).max()
    first = int(np.argmax(keep))
    text = ""
    for weight, name in zip(weights[keep] / weights[first], np.array(names)[keep], strict=True):
        sign = (" - " if weight < 0 else " + ") if text else ""
        size = f"{abs(weight):.4g}"
        text += sign + ("" if size == "1" else f"{size} ") + str(name)
    return text
