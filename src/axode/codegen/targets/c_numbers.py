"""Numbers in C: the type, constants that read back as they are, and functions that C lacks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.rounding_bounds import round_constant

# C's own functions would let a NaN vanish, or do not exist; R is the type, F ends its functions.
HELPERS = {
    Kind.FMIN: "static R axode_fmin(R a, R b) { return a != a ? a : (a < b ? a : b); }",
    Kind.FMAX: "static R axode_fmax(R a, R b) { return a != a ? a : (a > b ? a : b); }",
    Kind.HYPOT: "static R axode_hypot(R a, R b)"
    " { return a != a || b != b ? a + b : hypotF(a, b); }",
    Kind.SIGN: "static R axode_sign(R a) { return a > ZERO ? ONE : (a < ZERO ? -ONE : a); }",
}


@dataclass(frozen=True)
class CNumbers:
    """The type of all numbers of a source, and how C writes them.

    Attributes:
        precision: "float64" or "float32".
        type: C's name of the type.
        suffix: What ends its constants, and the names of its functions.
        size: Bytes of a number.
    """

    precision: str
    type: str
    suffix: str
    size: int

    def literal(self, value: float) -> str:
        """A C constant that reads back as the same number of the type."""
        rounded = round_constant(value, self.precision)
        if math.isnan(rounded):
            return "NAN"
        if math.isinf(rounded):
            return "INFINITY" if rounded > 0 else "(-INFINITY)"
        text = f"{repr(rounded) if self.size == 8 else str(np.float32(rounded))}{self.suffix}"
        return f"({text})" if text.startswith("-") else text

    def helper(self, kind: Kind) -> str:
        """Definition of a function that the mathematical library lacks."""
        text = re.sub(r"\bR\b", self.type, HELPERS[kind]).replace("hypotF", f"hypot{self.suffix}")
        return text.replace("ZERO", self.literal(0.0)).replace("ONE", self.literal(1.0))


NUMBERS = {
    "float64": CNumbers("float64", "double", "", 8),
    "float32": CNumbers("float32", "float", "f", 4),
}
