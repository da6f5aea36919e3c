"""Whole mechanisms on every target: the same numbers, derivatives and files."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.operations import ARITY, MEANING, Kind
from axode.codegen.tape.tape import Port
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.consistency import SHAPES, disagreements
from axode.model.function_source import graph_tape
from axode.model.metadata import Facts
from axode.model.model_file import save_model
from axode.model.model_parts import facts_of, function_tape
from axode.symbolic.functions import RECIPES, function_graph
from random_mechanisms import MECHANISMS
from tests.targets.agreement import ULP_OF_LARGEST_TERM, assert_agree, largest_terms
from tests.targets.test_c import library, needs_cc
from variants import further, slow

NAMES = ("arm", "platform", "balancer", "four_bar", "mecanum_base", "rolling_disk")
SAMPLES = dict.fromkeys(NAMES, 4_000) | dict.fromkeys(("arm", "balancer", "four_bar"), 20_000)
CENTRAL = 1e-6  # step of central differences; their error is its square, rounding 1e-10
FEW = 0.01  # of the samples
NO_WORSE = 4.0  # than the interpreter, where a sum cancels so much that both lose digits
DERIVATIVE = 1e-6  # relative: what is left of both
SAME_FUNCTIONS = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "coriolis",
    "multipliers",
    "contact_forces",
    "energy",
    "poses",
    "joint_speeds",
)


@cache
def equations(name):
    return MECHANISMS[name]().derive()


@cache
def model(name, target="cpu"):
    return equations(name).compile(target)


def states(name, count, seed=1):
    """Feasible states about home, inputs and accelerations."""
    e, rng = equations(name), np.random.default_rng(seed)
    q = np.array(e.system.samples)[rng.integers(len(e.system.samples), size=count)]
    nu, nu_dot = rng.normal(size=(2, count, len(e.independent)))
    return {"q": q, "nu": nu, "nu_dot": nu_dot, "u": rng.normal(size=(count, len(e.inputs)))}


def arrays_of(name, tape, count):
    """Random arguments of a tape: rounding does not ask whether loops are closed."""
    rng, home = np.random.default_rng(2), model(name).home
    known = states(name, count)
    known["q"] = home + 0.1 * rng.normal(size=(count, home.size))
    known["p"] = np.array(list(model(name).parameters.values()))
    known["weights"] = np.ones(equations(name).system.forces.motors)
    return [np.broadcast_to(known[port.name], (count, port.size)).copy() for port in tape.inputs]


def condition(name, function, arrays, tape):
    """How much the linear systems behind a function may enlarge a rounding, one a sample."""
    known = {port.name: a for port, a in zip(tape.inputs, arrays, strict=True)}
    rows = constraint_condition(name, known["q"])
    if function == "forward_dynamics":
        return rows * np.linalg.cond(model(name).mass_matrix(known["q"]))
    u = np.zeros((len(known["q"]), len(model(name).inputs)))
    return rows * np.linalg.cond(model(name).jacobian("input_force", "u", known["q"], u))


def constraint_condition(name, q):
    """Of the rows on the dependent speeds: what every dependent speed is solved through."""
    system = equations(name).system
    if system.is_tree:
        return np.ones(len(q))
    dependent = [j for j in range(system.A.shape[1]) if j not in system.independent]
    tree = system.tree
    A = ca.Function("A", [tree.q, tree.parameters], [ca.densify(system.A[:, dependent])])
    p = np.repeat(system.defaults[:, np.newaxis], len(q), axis=1)
    values = np.array(A.map(len(q))(q.T, p)).reshape(len(system.kept), len(q), -1)
    return np.linalg.cond(values.transpose(1, 0, 2))


@pytest.mark.parametrize("times", [1, further(5)])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        further(name, f) if (name, f) == ("platform", "inverse_dynamics") else (name, f)
        for name in NAMES
        for f in ("forward_dynamics", "inverse_dynamics")
        if (name, f) != ("rolling_disk", "inverse_dynamics")
    ],
)
def test_machine_code_agrees_with_the_interpreter(name, function, times):
    graph = function_graph(equations(name), function, fixed=False)
    tape = graph_tape(graph)
    count = times * SAMPLES[name]
    arrays = arrays_of(name, tape, count)
    scale = largest_terms(tape, arrays) * condition(name, function, arrays, tape)
    expected = np.array(graph.function.map(count)(*(a.T for a in arrays)))
    expected = [expected.T.reshape(count, *graph.shape)]
    for lanes in (1, 4, 8):
        got = CompiledFunction(tape, lanes=lanes)(*arrays)
        size = np.maximum(scale[:, np.newaxis], np.abs(expected[0]))
        far = (np.abs(got - expected[0]) > ULP_OF_LARGEST_TERM * np.spacing(size)).any(axis=-1)
        assert_agree([got[~far]], [expected[0][~far]], tape, f"{name} {function}", scale[~far])
        assert far.mean() < FEW
        assert_as_accurate(tape, [a[far] for a in arrays], got[far], expected[0][far])


def in_extended_precision(tape, arrays):
    """The tape on numbers with eleven more bits."""
    wide = [a.astype(np.longdouble) for a in arrays]
    numbers = []
    for kind, row in zip(tape.kinds, tape.operands, strict=True):
        if kind == Kind.INPUT:
            numbers.append(wide[row[0]][:, row[1]])
        elif kind == Kind.CONSTANT:
            numbers.append(np.longdouble(tape.constants[row[0]]))
        else:
            used = [numbers[v] for v in row[: ARITY[Kind(kind)]]]
            numbers.append(MEANING[Kind(kind)](*used))
    results = np.broadcast_arrays(*(numbers[r] for r in tape.results))
    return np.stack(results, axis=-1).reshape(len(arrays[0]), *tape.outputs[0].shape)


def assert_as_accurate(tape, arrays, got, expected):
    """Where the two differ by more, machine code is no farther from the truth."""
    if len(got):
        exact = in_extended_precision(tape, arrays)
        errors = [np.abs(x - exact).max() for x in (got, expected)]
        assert errors[0] < NO_WORSE * errors[1]


@needs_cc
@pytest.mark.parametrize("name", [further("platform"), "balancer"])
def test_c_agrees_with_machine_code(name, tmp_path):
    tape = function_tape(model(name), "forward_dynamics")
    arrays = arrays_of(name, tape, 10_000)
    expected = [CompiledFunction(tape)(*arrays)]
    got = library(tape, tmp_path)(*arrays)
    scale = largest_terms(tape, arrays) * condition(name, "forward_dynamics", arrays, tape)
    assert_agree(got, expected, tape, f"{name} in C", scale)


@pytest.mark.filterwarnings("ignore::axode.errors.UnderactuatedMotionWarning")
@pytest.mark.parametrize("name", slow(NAMES, "platform"))
def test_every_function_of_a_model_is_the_same_on_both_targets(name):
    s = states(name, 7)
    arguments = {
        "inverse_dynamics": ("q", "nu", "nu_dot"),
        "mass_matrix": ("q",),
        "poses": ("q",),
        "coriolis": ("q", "nu"),
        "energy": ("q", "nu"),
        "joint_speeds": ("q", "nu"),
    }
    for function in SAME_FUNCTIONS:
        given = [s[a] for a in arguments.get(function, ("q", "nu", "u"))]
        slow, fast = (
            getattr(model(name, target), function)(*given) for target in ("interpreter", "cpu")
        )
        assert slow.shape == fast.shape
        size = np.nanmax(np.abs(slow), initial=1.0)
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9 * size, err_msg=function)


@pytest.mark.parametrize("wrt", ["q", "nu", "u"])
@pytest.mark.parametrize("name", ["arm", "balancer"])
def test_jacobian_is_the_derivative(name, wrt):
    s = {key: value[0] for key, value in states(name, 1).items()}
    m = model(name)
    order = ("q", "nu", "u")
    J = m.jacobian("forward_dynamics", wrt, *(s[a] for a in order))
    columns = []
    for direction in np.eye(s[wrt].size):
        ends = [
            m.forward_dynamics(
                *(s[a] + sign * CENTRAL * direction if a == wrt else s[a] for a in order)
            )
            for sign in (1, -1)
        ]
        columns.append((ends[0] - ends[1]) / (2 * CENTRAL))
    differences = np.array(columns).T
    assert J.shape == differences.shape
    assert np.abs(J - differences).max() < DERIVATIVE * max(1.0, np.abs(J).max())


def test_jacobian_of_an_unknown_argument_names_the_known_ones():
    with pytest.raises(ax.UnknownName, match="Arguments: q, nu, u"):
        model("arm").jacobian("forward_dynamics", "nu_dot")


def test_parameters_stay_free_or_are_folded_in():
    e = MECHANISMS["parametric_arm"]().derive()
    free, fixed = e.compile(), e.compile(parameters="fixed")
    q, nu = free.home, np.ones(len(free.independent))
    u = np.ones(len(free.inputs))
    np.testing.assert_allclose(
        free.forward_dynamics(q, nu, u), fixed.forward_dynamics(q, nu, u), rtol=1e-12
    )
    name = next(iter(free.parameters))
    changed = free.forward_dynamics(
        q, nu, u, parameters={name: free.parameters[name] * np.array([1.0, 1.1])}
    )
    assert changed.shape == (2, len(free.independent))
    assert not np.allclose(changed[0], changed[1])
    with pytest.raises(ax.InvalidArgument, match="compile\\(parameters='free'\\)"):
        fixed.forward_dynamics(q, nu, u, parameters={name: 1.0})
    sizes = (function_tape(free, "forward_dynamics"), function_tape(fixed, "forward_dynamics"))
    assert sizes[1].n_operations < sizes[0].n_operations


def test_wrong_arguments_are_named():
    m = model("arm")
    with pytest.raises(ax.InvalidArgument, match="'q' has shape"):
        m.forward_dynamics(np.zeros(3), np.zeros(7), np.zeros(7))
    with pytest.raises(ax.UnknownName, match="no speed"):
        m.forward_dynamics({}, {"no.rate": 1.0})
    with pytest.raises(TypeError, match="unknown keyword"):
        m.forward_dynamics({}, {}, {}, tt=1.0)
    with pytest.raises(ax.UnknownName, match="Targets: cpu, interpreter, cuda"):
        equations("arm").compile("gpu")


def test_out_is_filled_without_another_array():
    m, s = model("platform"), states("platform", 5)
    out = np.full((5, 6), np.nan)
    assert m.forward_dynamics(s["q"], s["nu"], s["u"], out=out) is out
    np.testing.assert_array_equal(out, m.forward_dynamics(s["q"], s["nu"], s["u"]))


# files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["balancer", further("platform"), "parametric_arm"])
def test_a_saved_model_gives_the_same_numbers(name, tmp_path):
    path = tmp_path / "model.axm"
    original = MECHANISMS[name]().derive().compile()
    original.save(path)
    loaded = ax.load_model(path)
    assert facts_of(loaded) == facts_of(original)
    q, nu = original.home, np.full(len(original.independent), 0.3)
    for function in ("forward_dynamics", "multipliers", "contact_forces"):
        np.testing.assert_array_equal(
            getattr(loaded, function)(q, nu), getattr(original, function)(q, nu)
        )
    with pytest.raises(ax.UnknownName, match="Functions:"):
        function_tape(loaded, "nothing")


def test_loading_needs_no_casadi(tmp_path):
    path = tmp_path / "arm.axm"
    model("arm").save(path, ["forward_dynamics"])
    code = (
        "import sys; sys.modules['casadi'] = None\n"
        f"import axode as ax; m = ax.load_model({str(path)!r})\n"
        "print(m.forward_dynamics(m.home, [0.1] * 7)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    expected = model("arm").forward_dynamics(model("arm").home, [0.1] * 7)[0]
    assert float(done.stdout) == expected


@pytest.mark.parametrize("damage", ["truncated", "changed", "foreign", "empty", "newer"])
def test_damaged_files_are_refused(damage, tmp_path):
    path = tmp_path / "arm.axm"
    model("arm").save(path, ["forward_dynamics"])
    data = bytearray(path.read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    elif damage == "changed":
        data[len(data) // 2] ^= 1
    elif damage == "newer":
        data[len(b"axode-model\n")] = 9
    else:
        data = bytearray(b"" if damage == "empty" else b"PK\x03\x04 something else entirely")
    path.write_bytes(data)
    words = {"newer": "format 9", "foreign": "not an Axode model", "empty": "not an Axode model"}
    with pytest.raises(ax.FileError, match=words.get(damage, "truncated or was changed")):
        ax.load_model(path)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_held_to_the_shapes_that_functions_have(name, tmp_path):
    """The table that files are checked by says what the equations say."""
    e = equations(name)
    facts = Facts.of(e, fixed=False)
    derived = {*SHAPES, "pivots"} - {"parameter_faults"}  # of the description, not of equations
    assert derived == set(RECIPES)
    graphs = [function_graph(e, f, fixed=False) for f in sorted(derived)]
    tapes = {
        g.name: SimpleNamespace(
            inputs=[Port(a, (n,)) for a, n in zip(g.arguments, g.sizes, strict=True)],
            outputs=[Port(g.name, g.shape)],
        )
        for g in graphs
    }
    assert not list(disagreements(facts, tapes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": lambda x: x[:-1]}, r"takes \(7,\) for 'u', the names are 6"),
        ({"independent": lambda x: x[1:]}, r"gives \(7,\), the names ask for \(6,\)"),
        ({"home": lambda x: [*x, 0.0]}, "8 home for 7 names"),
        ({"independent": lambda x: ["nothing", *x[1:]]}, "no speeds: nothing"),
        ({"motors": lambda x: 99}, "99 motors among 7 inputs"),
        ({"quaternions": lambda x: [[0, 1, 2, 99]]}, "quaternions of coordinates"),
        ({"unknown_forces": lambda x: [[0, 0]]}, "unknown forces"),
        ({"bodies": None}, "bodies"),
        ({"leaning": lambda x: ["disk"]}, "wheels that may lean and are not there"),
        ({"rest_first": lambda x: ["disk"]}, "speeds to leave at zero that are not there"),
        (
            {"leaning": lambda x: ["disk"], "contacts": lambda x: ["disk"]},
            r"pivots gives \(0,\), the names ask for 2 to \d+",
        ),
    ],
)
def test_names_that_do_not_fit_the_functions_are_refused(change, words, tmp_path):
    """A file with a right checksum whose parts were not made together."""
    path = tmp_path / "arm.axm"
    m = model("arm")
    facts = facts_of(m).to_json()
    for field, new in change.items():
        if new is None:
            del facts[field]
        else:
            facts[field] = new(facts[field])
    save_model(
        SimpleNamespace(to_json=lambda: facts),
        m.scene,
        {name: function_tape(m, name) for name in ("forward_dynamics", "pivots")},
        path,
    )
    with pytest.raises(ax.FileError, match=words):
        ax.load_model(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "arm.axm"
    model("arm").save(path, ["mass_matrix"])
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ax.FileError, match="No space left"):
        model("arm").save(path, ["energy"])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["arm.axm"]
    with pytest.raises(ax.FileError, match="cannot read"):
        ax.load_model(tmp_path / "missing.axm")


def test_the_compiler_is_there_where_c_is_tested():
    assert shutil.which("cc"), "install a C compiler (Debian: build-essential) to test the C output"


def test_files_have_derivatives_saved_or_not(tmp_path):
    m, path = model("arm"), tmp_path / "arm.axm"
    n = len(m.independent)
    state = (m.home, np.full(n, 0.3), np.full(len(m.inputs), 0.1))
    m.save(path, ["forward_dynamics", "forward_dynamics_by_q"])
    loaded = ax.load_model(path)
    there = loaded.jacobian("forward_dynamics", "q", *state)
    assert np.array_equal(there, m.jacobian("forward_dynamics", "q", *state))
    for by in ("nu", "u"):  # of its tape; with the equations, from the table of derivatives
        found, wanted = (x.jacobian("forward_dynamics", by, *state) for x in (loaded, m))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_a_function_that_was_not_saved_comes_with_the_remedy(tmp_path):
    model("arm").save(tmp_path / "arm.axm", ["forward_dynamics"])
    with pytest.raises(ax.NotApplicable, match=r"without a list of functions, model\.save"):
        ax.load_model(tmp_path / "arm.axm").residual(model("arm").home)


def test_a_jacobian_wants_its_own_arguments():
    m = model("arm")
    q, nu, u = m.home, np.zeros(len(m.independent)), np.zeros(len(m.inputs))
    for wrong in ((), (q, nu, u, u)):
        with pytest.raises(ax.InvalidArgument, match="takes q, nu, u"):
            m.jacobian("forward_dynamics", "q", *wrong)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("name", ["arm", "balancer"])
def test_a_copy_gives_the_same_numbers(name, copied, tmp_path):
    m, path = model(name), tmp_path / "model.axm"
    m.save(path, ["mass_matrix"])
    for one in (m, ax.load_model(path)):
        other = copied(one)
        assert other.independent == m.independent
        assert np.array_equal(other.mass_matrix(m.home), m.mass_matrix(m.home))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_target_refuses_alike(target):
    m = model("arm", target)
    q, nu = m.home, np.zeros(len(m.independent))
    with pytest.raises(ax.InvalidArgument, match="batch axes do not fit"):
        m.forward_dynamics(np.tile(q, (3, 1)), np.tile(nu, (4, 1)))
    for out in (np.zeros(nu.size + 1), np.zeros(nu.size, np.float32)):
        with pytest.raises(ax.InvalidArgument, match="float64 array of shape"):
            m.forward_dynamics(q, nu, out=out)
    with pytest.raises(ax.InvalidArgument, match="numbers in order or by name"):
        m.forward_dynamics("home", nu)


@pytest.mark.parametrize("ending", [".wasm", ".axm", ".ptx"])
def test_exports_refuse_an_input_that_they_would_ignore(tmp_path, ending):
    model = ax.gallery.build("unicycle").derive().compile()
    law = ax.Law(lambda s, pi: {"tau_drive": pi(1.0)}, pi=ax.blocks.PI(1.0, 1.0))
    with pytest.raises(ax.InvalidArgument, match=r"input: whole runs.*\n.*leave input out"):
        model.export(tmp_path / f"x{ending}", input=law)
    assert not list(tmp_path.iterdir())
