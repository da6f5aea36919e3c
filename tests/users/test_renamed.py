"""Former public names still work for one version, with a warning that gives the new one."""

import warnings

import pytest

import axode as ax
from axode.cli import run


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Doubtful", "PlausibilityWarning"),
        ("DoubtfulFile", "FileDeviationWarning"),
        ("LeftOut", "OmissionWarning"),
        ("NearSingularity", "NearSingularityWarning"),
        ("NotAnEquilibrium", "NotAnEquilibriumWarning"),
        ("NotAsAsked", "RequestNotMetWarning"),
        ("RunsFailed", "RunsFailedWarning"),
        ("StiffSystem", "StiffSystemWarning"),
        ("UnderactuatedMotion", "UnderactuatedMotionWarning"),
    ],
)
def test_old_names_of_warnings(old, new):
    for place in (ax, ax.errors):
        with pytest.warns(DeprecationWarning, match=f"'{old}' is now '{new}'") as caught:
            assert getattr(place, old) is getattr(ax.errors, new)
        assert len(caught) == 1 and caught[0].filename == __file__


def test_every_warning_is_called_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [v for v in vars(ax.errors).values() if isinstance(v, type)]
    assert all(v.__name__.endswith("Warning") for v in found if issubclass(v, Warning))


@pytest.mark.parametrize("place", [ax, ax.errors])
def test_unknown_names_are_refused(place):
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        place.nonsense  # noqa: B018


def test_parts_of_models_have_no_public_names():
    bot = ax.Mechanism("pendulum")
    arm = bot.add_body("arm", mass=1.0, com=(0, -1, 0), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("hinge", ax.Revolute("z"), parent=bot.ground, child=arm)
    model = bot.derive().compile("interpreter")
    assert not {"facts", "library", "tape", "on_cpu"} & set(dir(model))
    with pytest.warns(DeprecationWarning, match="'model.facts' is now 'model.signals'"):
        assert model.facts.name == "pendulum"
    with pytest.warns(DeprecationWarning, match="'model.library'"):
        assert "energy" in model.library.names()
    with pytest.warns(DeprecationWarning, match="'model.tape' is now 'model.operations'") as caught:
        assert model.tape("energy").n_operations == model.operations("energy") > 0
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="'model.on_cpu'"):
        assert model.on_cpu() is model
    with pytest.raises(AttributeError, match="'Model' has no attribute 'nonsense'"):
        model.nonsense  # noqa: B018


def test_the_old_name_of_inverse_dynamics():
    with pytest.warns(DeprecationWarning, match="'axode.inverse' is now 'axode.inverse_dynamics'"):
        assert ax.inverse is ax.inverse_dynamics


def test_old_keywords(tmp_path):
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    with pytest.warns(DeprecationWarning, match="'tries=' is now 'attempts='") as caught:
        old = ax.assemble(model, {"theta1": 0.5}, tries=2)
    assert caught[0].filename == __file__
    assert (old.q == ax.assemble(model, {"theta1": 0.5}, attempts=2).q).all()
    with pytest.warns(DeprecationWarning, match="'near=' is now 'start='"):
        ax.inverse_kinematics(model, {"theta1": 0.5}, near={"theta1": 0.4}, nearest=False)
    with pytest.warns(DeprecationWarning, match="'law=' is now 'input='"):
        ax.page(ax.gallery.build("unicycle"), tmp_path / "page.html", law={})


@pytest.mark.parametrize("near", [["--near", "theta1=0.4"], ["--near=theta1=0.4"]])
def test_old_options(near, capsys):
    command = ["reach", "four_bar", "--target", "theta1=0.5"]
    assert run([*command, *near]) == 0
    told = capsys.readouterr()
    assert "--near is now --start" in told.err
    assert run([*command, "--start", "theta1=0.4"]) == 0
    assert capsys.readouterr().out == told.out
