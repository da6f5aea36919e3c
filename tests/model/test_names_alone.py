"""A name alone is taken for a list of one, and not letter by letter."""

import pytest

import axode as ax
from axode.literature.acceptance.cases import chosen_cases, load_cases
from variants import slow


@pytest.fixture(scope="module")
def equations():
    return ax.gallery.build("four_bar").derive()


def saved(model, place, names):
    model.save(place / "x.axm", names)
    return ax.load_model(place / "x.axm").functions


def exported(model, place, names):
    return [path.read_bytes() for path in model.export(place / "x.c", names)]


def outputs(model, place, names):
    model.export(place / "x.fmu", outputs=names)
    return (place / "x.fmu").read_bytes()


VERBS = {
    "latex": ("gamma", lambda e, m, place, names: e.latex(names)),
    "hybrid": ("theta1_dot", lambda e, m, place, names: str(e.hybrid_dynamics(names, ()))),
    "hybrid inputs": ("tau", lambda e, m, place, names: str(e.hybrid_dynamics((), names))),
    "fix": ("theta1", lambda e, m, place, names: ax.assemble(m, fix=names).q.tolist()),
    "save": ("energy", lambda e, m, place, names: saved(m, place, names)),
    "export": ("energy", lambda e, m, place, names: exported(m, place, names)),
    "outputs": ("theta1", lambda e, m, place, names: outputs(m, place, names)),
    "reduced": (
        "rail.rate",
        lambda e, m, place, names: ax.linearize(damped_cart()).reduced(names).states,
    ),
    "cases": ("A1-1", lambda e, m, place, names: [c.id for c in chosen_cases(CASES, names)]),
}
CASES = load_cases(None)


def damped_cart():
    """Make a mass that a damper stops: its speed depends on nothing else."""
    bot = ax.Mechanism("cart")
    bot.add_body("cart", mass=1.0, inertia=(1.0, 1.0, 1.0))
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child="cart")
    bot.add_damper("brake", "rail", coefficient=1.0)
    return bot.derive().compile("interpreter")


@pytest.mark.parametrize("verb", slow(VERBS, "latex"))
def test_a_name_alone_is_a_list_of_one(equations, tmp_path, verb):
    name, called = VERBS[verb]
    model = equations.compile("interpreter")
    made = []
    for k, names in enumerate((name, [name])):
        place = tmp_path / str(k)
        place.mkdir()
        made.append(called(equations, model, place, names))
    assert made[0] == made[1]
