r"""A Rosenbrock method of order 5(4) for stiff equations: implicit steps without iterations.

Each stage solves a linear system with the exact Jacobian J of the rate f, inputs that depend on
the state included:

.. math:: \Bigl(\frac{1}{h\gamma} - J\Bigr) y_i = f\Bigl(x + \sum_j a_{ij} y_j,\; t + \alpha_i h
          \Bigr) + \sum_j \frac{c_{ij}}{h} y_j + \gamma_i h\,\frac{\partial f}{\partial t}

The coefficients are those of Rodas5P: G. Steinebach, "Construction of Rosenbrock-Wanner method
Rodas5P and numerical benchmarks within the Julia Differential Equations package", *BIT Numer.
Math.* 63, 27, 2023. It is L-stable and stiffly accurate; the form without products by J is that of
E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, section IV.7.
"""

from __future__ import annotations

from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, WeightedSum, slices
from axode.codegen.tape.tape import Tape
from axode.problems.steps.adaptive import (
    CONTROL,
    Gathering,
    RepeatedStep,
    adaptive_program,
    clip_step,
    control,
    count_steps,
    error_size,
)
from axode.problems.steps.jacobians import (
    StateSystem,
    depends_on_time,
    sample_slope,
    state_parts,
    whole_state,
)
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import accept_step


def _table(text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row.split())) for row in text.split(";"))


# Weights of earlier stages in the state of a stage and on its right side, from the second stage on.
A = (
    (),
    *_table("""
3;
2.849394379747939 0.45842242204463923;
-6.954028509809101 2.489845061869568 -10.358996098473584;
2.8029986275628964 0.5072464736228206 -0.3988312541770524 -0.04721187230404641;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946 1;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946 1 1
"""),
)
C = (
    (),
    *_table("""
-14.155112264123755;
-17.97296035885952 -2.859693295451294;
147.12150275711716 -1.41221402718213 71.68940251302358;
165.43517024871676 -0.4592823456491126 42.90938336958603 -5.961986721573306;
24.854864614690072 -3.0009227002832186 47.4931110020768 5.5814197821558125 -0.6610691825249471;
30.91273214028599 -3.1208243349937974 77.79954646070892 34.28646028294783 -19.097331116725623
  -28.087943162872662;
37.80277123390563 -3.2571969029072276 112.26918849496327 66.9347231244047 -40.06618937091002
  -54.66780262877968 -9.48861652309627
"""),
)
# Times of the stages, and weights of the rate's derivative by time.
NODES, TIME = _table("""
0 0.6358126895828704 0.4095798393397535 0.9769306725060716 0.4288403609558664 1 1 1;
0.21193756319429014 -0.42387512638858027 -0.3384627126235924 1.8046452872882734
  2.325825639765069 0 0 0
""")
GAMMA = TIME[0]
NEW = (*A[-1], 1.0)  # state at the end; without the last stage it is one of order 4
# Interpolant of order 4: weights of the stages beside a straight line, powers 0 to 2.
DENSE = _table("""
25.948786856663858 -2.5579724845846235 10.433815404888879 -2.3679251022685204 0.524948541321073
  1.1241088310450404 0.4272876194431874 -0.17202221070155493;
-9.91568850695171 -0.9689944594115154 3.0438037242978453 -24.495224566215796 20.176138334709044
  15.98066361424651 -6.789040303419874 -6.710236069923372;
11.419903575922262 2.8879645146136994 72.92137995996029 80.12511834622643 -52.072871366152654
  -59.78993625266729 -0.15582684282751913 4.883087185713722
""")
COUNT = len(NODES)
YS = tuple(f"y{i + 1}" for i in range(COUNT))


def rodas5p_program(d: Dynamics, gathering: Gathering | None = None) -> Program:
    """Implicit steps as long as rtol and atol allow; see `adaptive_program`."""
    rate = d.rate_at("q", "nu", "t", "k1")
    slope = sample_slope(d) if d.samples == "linear" else []
    body: list[Operation] = [*clip_step(d), whole_state(d), *slope, *rate]
    system = StateSystem(d, depends_on_time(d))
    body += _jacobian(system)
    for number in range(COUNT):
        body += _stage(system, number)
    end = formula_tape("end", {"h": 1}, lambda h: {"weights": [1.0 + 0.0 * h[0]] * 2})
    made = ("t_n", "h_n", "accepted", "status", "q_n", "nu_n", "w_n")
    body += [
        Evaluate(end, ("h_s", "ends")),
        WeightedSum(
            ("ends", 0), slices("x_s", YS[-1]), ("x_n", 0), d.n_k
        ),  # the last stage is the error of a step
        Evaluate(_finish(d), ("x", "x_n", YS[-1], *CONTROL, *made)),
    ]

    def inside(part: str, made: str) -> list[Operation]:
        weights = Evaluate(_inside(), (part, "inside"))
        return [weights, WeightedSum(("inside", 0), slices("x", *YS), (made, 0), d.n_k)]

    body += [*d.closed(), *accept_step(d, inside=inside), count_steps()]

    return adaptive_program("rodas5p", d, RepeatedStep(body, inside), gathering)


def _jacobian(system: StateSystem) -> list[Operation]:
    """The Jacobian at the start of a step, and the system of every stage eliminated."""
    scale = formula_tape("scale", {"h": 1}, lambda h: {"scale": [1.0 / (GAMMA * h[0])]})
    return [
        *system.jacobian(),
        Evaluate(scale, ("h_s", "scale")),
        system.factor(),
        *([system.rate_by_time()] if system.timed else []),
    ]


def _stage(system: StateSystem, number: int) -> list[Operation]:
    """Find y of one stage."""
    d = system.d
    earlier, rate = YS[:number], "k1" if number == 0 else "k_s"
    operations: list[Operation] = []
    if number:
        time = formula_tape(
            f"stage{number + 1}",
            {"t": 1, "h": 1},
            lambda t, h: {
                "t_s": [t[0] + NODES[number] * h[0]],
                "weights": [1.0 + 0.0 * h[0], *(a + 0.0 * h[0] for a in A[number])],
            },
        )
        operations = [
            Evaluate(time, ("t", "h_s", "t_s", f"a{number}")),
            WeightedSum((f"a{number}", 0), slices("x", *earlier), ("x_s", 0), d.n_k),
            state_parts(d),
            *d.rate_at("q_s", "nu_s", "t_s", rate),
        ]
    timed = system.timed and TIME[number] != 0.0
    side = formula_tape(
        f"side{number + 1}",
        {"h": 1},
        lambda h: {
            "weights": [
                1.0 + 0.0 * h[0],
                *([TIME[number] * h[0]] if timed else []),
                *(c / h[0] for c in C[number]),
            ]
        },
    )
    known = (rate, "k_t", *earlier) if timed else (rate, *earlier)
    return [
        *operations,
        Evaluate(side, ("h_s", f"c{number}")),
        WeightedSum((f"c{number}", 0), slices(*known), (YS[number], 0), d.n_k),
        *system.solve(system.factor(), YS[number]),
    ]


def _finish(d: Dynamics) -> Tape:
    """Find the error, the next step size, whether the step is accepted, and the new state."""

    def finish(x: Vector, x_n: Vector, error: Vector, **v: Vector) -> dict[str, Vector]:
        n = d.n_q + d.n_nu
        size = error_size(x[:n], x_n[:n], error[:n], v["rtol"][0], v["atol"][0])
        return {**control(size, v), **d.split(x_n)}

    sizes = dict.fromkeys(("x", "x_n", "error"), d.n_k) | dict.fromkeys(CONTROL, 1)
    return formula_tape("finish", sizes, finish)


def _inside() -> Tape:
    """Weights of the start and of the stages at a part of the step."""

    def weights(part: Vector) -> dict[str, Vector]:
        s = part[0]
        made = [
            s * (new + (1.0 - s) * (a + s * (b + s * c)))
            for new, a, b, c in zip(NEW, *DENSE, strict=True)
        ]
        return {"weights": [1.0 + 0.0 * s, *made]}

    return formula_tape("inside", {"part": 1}, weights)
