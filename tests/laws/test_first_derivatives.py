"""Derivatives of dynamics, argument by argument, against complex steps of another derivation.

The table of derivatives comes from the recursion in lifted form. The reference is the tape of the
explicit complement, a derivation that shares neither the recursion nor any derivative with it,
evaluated with complex numbers.
"""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.derivatives.derivative_tables import DIFFERENTIATED, TableName, derivative_graph
from axode.model.function_source import graph_tape
from axode.symbolic.functions import function_graph
from complex_step import derivatives_along
from laws.cases import SOLVED, Case, case_of
from near_mechanisms import mechanism_of
from random_mechanisms import MECHANISMS
from variants import further

# One of each: tree, loops, wheels, explicit time, parameters that move loops, couplings, detours.
TRIED = (
    "all_joints_tree",
    "parametric_arm",
    "four_bar",
    "platform",
    "rolling_disk",
    "balancer",
    "car",
    "mecanum_base",
    "disk_on_plate",
    "driven_five_bar",
    "parametric_vehicle",
    "parametric_loop",
    "geared_five_bar",
    "loop_universal",
    "vehicle_0",
)
OPENED = ("platform", "car", "disk_on_plate", "driven_five_bar", "rolling_disk")
FUNCTIONS = ("forward_dynamics", "inverse_dynamics")
RIVAL = "complement"
# Of nearly degenerate mechanisms both sides lose the condition of inertia and rows.
NEARLY = 1e-6


def displacement(case, state):
    """Rates of q for unit speeds, tangents, and what parameters and time move at fixed tangents."""
    system, tree = case.system, case.tree
    N, T = case.at(state, tree.N, tree.N @ system.tangents.Theta)
    rows = [
        row.residual
        for r, row in enumerate(system.rows)
        if row.residual is not None and r not in system.report.loose
    ]
    led = ca.vertcat(case.equations.p, tree.t)
    if not rows:
        return N, T, np.zeros((state.q.size, led.shape[0]))
    residual = ca.vertcat(*rows)
    by_q, by_led = case.at(state, ca.jacobian(residual, tree.q), ca.jacobian(residual, led))
    held = np.eye(N.shape[1])[list(system.tangents.asked)]
    wanted = np.vstack([-by_led, np.zeros((len(held), led.shape[0]))])
    moved = np.linalg.lstsq(np.vstack([by_q @ N, held]), wanted, rcond=None)[0]
    return N, T, N @ moved


def directions(case, state, argument):
    """Changes of the arguments for unit changes of one of them."""
    _, T, followed = displacement(case, state)
    if argument == "q":
        return {"q": T}
    if argument == "p":
        return {"p": np.eye(state.p.size), "q": followed[:, :-1]}
    if argument == "t":
        return {"t": np.eye(1), "q": followed[:, -1:]}
    return {argument: np.eye(getattr(state, argument).size)}


def table_at(case, state, name):
    """A table of derivatives as numbers, and its columns."""
    graph = derivative_graph(case.equations, name, fixed=False)
    values = arguments_of(case, state)
    flat = np.array(graph.function(*[values[a] for a in graph.arguments])).ravel()
    return flat.reshape(graph.shape)


def arguments_of(case, state):
    named = {name: getattr(state, name) for name in ("q", "nu", "nu_dot", "u", "p")}
    weights = np.linspace(0.7, 1.6, case.equations.weights.shape[0])
    return {**named, "t": np.array([state.t]), "weights": weights}


def check(case, function, tolerance, multipliers=False):
    state = case.states[0]
    name = TableName(function, multipliers=multipliers)
    table = table_at(case, state, name)
    rival = case.by(RIVAL)
    tapes = [graph_tape(function_graph(rival, function, fixed=False))]
    if multipliers:
        tapes.append(graph_tape(function_graph(rival, "multipliers", fixed=False)))
    values = arguments_of(case, state)
    wanted = np.concatenate([tape_values(tape, values) for tape in tapes])
    assert np.abs(table[:, 0] - wanted).max(initial=0) < tolerance * max(
        1.0, np.abs(wanted).max(initial=0)
    )
    place = 1
    for argument in DIFFERENTIATED[function]:
        moved = directions(case, state, argument)
        width = next(iter(moved.values())).shape[1]
        if argument == "u" and function == "inverse_dynamics" and "u" not in names(tapes):
            continue
        if argument == "t" and not case.system.rheonomic:
            continue
        if width and len(table):
            wanted = np.vstack([derivatives_along(tape, values, moved) for tape in tapes])
            found = table[:, place : place + width]
            scale = max(1.0, np.abs(wanted).max())
            worst = np.abs(found - wanted).max() / scale
            assert worst < tolerance, f"{case.mechanism.name}: {function} by {argument}: {worst}"
        place += width
    assert place == table.shape[1], "columns that nothing was compared with"


def tape_values(tape, values):
    return tape.evaluate(*[values[port.name] for port in tape.inputs])[0].ravel()


def names(tapes):
    return {port.name for tape in tapes for port in tape.inputs}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", [*TRIED, *(further(n) for n in MECHANISMS if n not in TRIED)])
def test_derivatives_by_every_argument(name, function):
    case = case_of(name)
    check(
        case,
        function,
        SOLVED,
        multipliers=function == "forward_dynamics" and bool(case.system.kept),
    )


@pytest.mark.parametrize("shape", ["tree", "loop", "vehicle"])
@pytest.mark.parametrize("seed", [0, *map(further, range(1, 12))])
def test_derivatives_of_nearly_degenerate_mechanisms(shape, seed):
    case = Case(mechanism_of("nearly", shape, seed))
    try:
        assert case.states
    except AssertionError as none:
        pytest.skip(str(none))
    check(case, "forward_dynamics", NEARLY)


@pytest.mark.parametrize("name", ["arm", "platform", "car", "four_bar"])
def test_direct_after_inverse_dynamics_does_not_change(name):
    """With u the inputs that give nu_dot, d(direct) + d(direct)/du d(inverse) = 0, by q and nu."""
    case = case_of(name)
    model = case.equations.compile("interpreter")
    state = case.states[0]
    known = {"t": state.t, **({"parameters": state.p} if state.p.size else {})}
    inverse = model.derivatives("inverse_dynamics", state.q, state.nu, nu_dot=state.nu_dot, **known)
    direct = model.derivatives("forward_dynamics", state.q, state.nu, inverse.value, **known)
    assert np.allclose(direct.value, state.nu_dot, rtol=0, atol=SOLVED)
    for argument in ("q", "nu", "p"):
        own, other = (getattr(d, f"by_{argument}") for d in (direct, inverse))
        if own is None:
            continue
        scale = max(1.0, np.abs(own).max())
        assert np.abs(own + direct.by_u @ other).max() < SOLVED * scale, argument
    assert np.allclose(direct.by_u @ inverse.by_nu_dot, np.eye(len(model.independent)), atol=SOLVED)


def test_tangents_are_the_speeds_of_a_tree_and_more_than_those_of_a_wheeled_robot():
    arm, robot = case_of("all_joints_tree"), case_of("balancer")
    tree, wheels = (c.equations.compile("interpreter") for c in (arm, robot))
    assert tree.tangents == tree.speed_names
    assert wheels.tangents[: len(wheels.independent)] == wheels.independent
    assert len(wheels.tangents) == case_of("balancer").equations.mobility.configuration_dof
    T = wheels.tangent_map(robot.states[0].q)
    assert T.shape == (len(wheels.coordinates), len(wheels.tangents))
    assert np.abs(wheels.residual_jacobian(robot.states[0].q) @ T).max() < SOLVED


@pytest.mark.slow
def test_derivatives_in_batches_and_files(tmp_path):
    """One call, one table: any batch, any choice of arguments, any source of the code."""
    case = case_of("parametric_loop")
    model = case.equations.compile()
    state = case.states[0]
    nu = np.stack([state.nu, 2 * state.nu, -state.nu])
    whole = model.derivatives("forward_dynamics", state.q, nu, state.u, multipliers=True)
    assert whole.by_p.shape == (3, len(model.independent), len(model.parameters))
    assert whole.multipliers.by_nu.shape == (3, len(model.rows), len(model.independent))
    assert whole.by_nu_dot is None
    for k, row in enumerate(nu):
        part = model.derivatives("forward_dynamics", state.q, row, state.u, by=["nu", "q"])
        assert part.by_u is None and part.multipliers is None
        assert np.allclose(part.by_q, whole.by_q[k], rtol=SOLVED, atol=SOLVED)
        assert np.allclose(part.value, model.forward_dynamics(state.q, row, state.u))
    path = tmp_path / "loop.axm"
    model.save(path, [*model.functions, "forward_dynamics_derivatives"])
    again = ax.load_model(path)
    assert again.tangents == model.tangents
    read = again.derivatives("forward_dynamics", state.q, nu, state.u)
    assert np.array_equal(
        read.by_q, model.derivatives("forward_dynamics", state.q, nu, state.u).by_q
    )
    with pytest.raises(ax.NotApplicable, match="this file has no inverse_dynamics_derivatives"):
        again.derivatives("inverse_dynamics", state.q, nu, nu_dot=nu)


@pytest.mark.parametrize("name", ["four_bar", "balancer", "parametric_loop"])
def test_derivatives_by_one_argument_alone(name: str):
    """A column does not depend on which others are asked for; `jacobian` takes it from there."""
    case = case_of(name)
    model, state = case.equations.compile("interpreter"), case.states[0]
    at = {"forward_dynamics": state.u, "inverse_dynamics": 0.3 * state.nu}
    for function, last in at.items():
        key = "u" if function == "forward_dynamics" else "nu_dot"
        whole = model.derivatives(function, state.q, state.nu, **{key: last})
        for argument in DIFFERENTIATED[function]:
            expected = getattr(whole, f"by_{argument}")
            if expected is None:
                continue
            one = model.derivatives(function, state.q, state.nu, by=[argument], **{key: last})
            found = getattr(one, f"by_{argument}")
            assert np.allclose(found, expected, rtol=SOLVED, atol=SOLVED), argument
            if argument in ("nu", "nu_dot", "u"):
                plain = model.jacobian(function, argument, state.q, state.nu, last)
                assert np.allclose(plain, expected, rtol=SOLVED, atol=SOLVED), argument


def test_derivatives_refuse_what_there_is_not():
    model = case_of("parametric_loop").equations.compile(parameters="fixed")
    q = model.home
    with pytest.raises(ax.UnknownName, match="no function 'energy'"):
        model.derivatives("energy", q)
    with pytest.raises(ax.UnknownName, match="no argument 'nu_dot'"):
        model.derivatives("forward_dynamics", q, by=["nu_dot"])
    with pytest.raises(ax.InvalidArgument, match="this model's parameters are fixed; compile"):
        model.derivatives("forward_dynamics", q, by=["p"])
    with pytest.raises(ax.InvalidArgument, match="has no derivatives of multipliers"):
        model.derivatives("inverse_dynamics", q, multipliers=True)
    with pytest.raises(ax.InvalidArgument, match="by takes names of arguments of forward_dynamics"):
        model.derivatives("forward_dynamics", q, by=[])
    with pytest.raises(ax.UnknownName, match="those by 'q' are along the tangents"):
        model.derivatives("forward_dynamics", q, by=["tangents"])
    name = next(iter(model.parameters))
    with pytest.raises(ax.UnknownName, match=f"'{name}' is a parameter; all of them are the argum"):
        model.derivatives("forward_dynamics", q, by=name)
    with pytest.raises(ax.InvalidArgument, match="does not take nu_dot; inverse_dynamics does"):
        model.derivatives("forward_dynamics", q, nu_dot=np.zeros(len(model.independent)))


def test_derivatives_have_a_short_text():
    model = case_of("parametric_loop").equations.compile("interpreter")
    found = model.derivatives("forward_dynamics", model.home, by="nu", multipliers=True)
    n, rows = len(model.independent), len(model.rows)
    own, forces = (f"value ({k},), by_nu ({k}, {n})" for k in (n, rows))
    assert repr(found) == f"Derivatives({own}, multipliers Derivatives({forces}))"


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        *(further(n, "recursive") for n in TRIED if n not in OPENED),
        *((n, "recursive") for n in OPENED),
        ("four_bar", "spatial_operators"),
    ],
)
def test_rates_of_states_by_every_coordinate(name, formulation):
    """The Jacobian of implicit steps, along changes that open loops too."""
    case = case_of(name)
    state, lengthless = case.states[0], np.eye(len(case.states[0].q))
    rate, jacobian = (
        graph_tape(function_graph(case.by(formulation), function, fixed=False))
        for function in ("state_rate", "state_rate_jacobian")
    )
    for four in map(list, case.tree.quaternions):
        lengthless[np.ix_(four, four)] -= np.outer(state.q[four], state.q[four])
    values = arguments_of(case, state)
    moves = {"q": lengthless, **{n: np.eye(len(values[n])) for n in ("nu", "u", "t")}}
    wanted = np.hstack([derivatives_along(rate, values, {n: d}) for n, d in moves.items()])
    found = jacobian.evaluate(*(values[port.name] for port in jacobian.inputs))
    worst = np.abs(np.reshape(found, wanted.shape) - wanted).max()
    assert worst < SOLVED * max(1.0, np.abs(wanted).max())
