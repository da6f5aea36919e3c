"""Coefficients of explicit Runge-Kutta methods: stages, weights, error estimate, interpolant.

E. Hairer, S. P. Norsett, G. Wanner, *Solving Ordinary Differential Equations I*, section II.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class ButcherTableau:
    """An explicit Runge-Kutta method.

    Stage i has the rate k_i = f(x + h sum_j a_ij k_j, t + c_i h), a step ends at
    x + h sum_i b_i k_i.

    Attributes:
        name: Name of the method.
        stages: a_ij, one row per stage.
        weights: b_i.
        error: Weights of the error estimate, b_i less those of the embedded method; empty for a
            method with fixed steps.
        dense: Weights b_i(s) of the interpolant as polynomials in the part s of the step: per
            stage, the coefficients of s, s^2, ...
    """

    name: str
    stages: tuple[Row, ...]
    weights: Row
    error: Row = ()
    dense: tuple[Row, ...] = ()

    @property
    def nodes(self) -> Row:
        """c_i, the times of the stages as parts of a step."""
        return tuple(sum(row, Fraction()) for row in self.stages)

    @property
    def used_stages(self) -> int:
        """Number of stages that the end of a step depends on."""
        return max(i for i, weight in enumerate(self.weights) if weight) + 1

    @property
    def first_same_as_last(self) -> bool:
        """True if the last stage is the end of the step, so that its rate begins the next one."""
        return (*self.stages[-1], Fraction()) == self.weights


def _rows(text: str) -> tuple[Row, ...]:
    """Read rows of fractions, one line each; "-" is an empty row."""
    lines = (line.strip() for line in text.strip().splitlines())
    return tuple(tuple(map(Fraction, line.split())) if line != "-" else () for line in lines)


# The interpolant of order 3 is M. Zennaro's, Math. Comput. 46, 1986: integrals of it have order 4.
RK4 = ButcherTableau(
    "rk4",
    stages=_rows("""
        -
        1/2
        0 1/2
        0 0 1
    """),
    weights=_rows("1/6 1/3 1/3 1/6")[0],
    dense=_rows("""
        1 -3/2 2/3
        0 1 -2/3
        0 1 -2/3
        0 -1/2 2/3
    """),
)

# J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", J. Comput. Appl.
# Math. 6, 1980; the interpolant of order 4 is L. F. Shampine's, Math. Comput. 46, 1986.
DOPRI5 = ButcherTableau(
    "dopri5",
    stages=_rows("""
        -
        1/5
        3/40 9/40
        44/45 -56/15 32/9
        19372/6561 -25360/2187 64448/6561 -212/729
        9017/3168 -355/33 46732/5247 49/176 -5103/18656
        35/384 0 500/1113 125/192 -2187/6784 11/84
    """),
    weights=_rows("35/384 0 500/1113 125/192 -2187/6784 11/84 0")[0],
    error=_rows("71/57600 0 -71/16695 71/1920 -17253/339200 22/525 -1/40")[0],
    dense=_rows("""
        1 -8048581381/2820520608 8663915743/2820520608 -12715105075/11282082432
        0 0 0 0
        0 131558114200/32700410799 -68118460800/10900136933 87487479700/32700410799
        0 -1754552775/470086768 14199869525/1410260304 -10690763975/1880347072
        0 127303824393/49829197408 -318862633887/49829197408 701980252875/199316789632
        0 -282668133/205662961 2019193451/616988883 -1453857185/822651844
        0 40617522/29380423 -110615467/29380423 69997945/29380423
    """),
)

EXPLICIT_METHODS = {method.name: method for method in (RK4, DOPRI5)}
