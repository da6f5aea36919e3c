"""Former public names still work for one version, with a warning that gives the new one."""

import warnings

import pytest

import axode as ax


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
