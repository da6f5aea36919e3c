"""Inertia of solids against integrals over them, and of shapes against their solids."""

import warnings

import numpy as np
import pytest

import axode as ax
from axode.errors import PlausibilityWarning
from axode.mechanism.values.expressions import numeric

MASS = 2.5
INTEGRAL = 2e-3  # relative; the midpoint rule on 60 cells a side
CELLS = 60


def tensor(inertia):
    xx, yy, zz, xy, xz, yz = (numeric(entry) for entry in inertia.entries)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def integrated(points, mass=MASS):
    """Of equal point masses: sum of m (r.r 1 - r r')."""
    m = mass / len(points)
    return m * (np.sum(points**2) * np.eye(3) - points.T @ points)


def grid(size):
    """Midpoints of cells that fill a box."""
    axes = [(np.arange(CELLS) + 0.5) / CELLS * s - s / 2 for s in size]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def turned_from_z(points, axis):
    """The points, with their z axis turned to `axis`."""
    axis = np.asarray(axis, dtype=float)
    first = np.cross(axis, [0.3, -0.5, 0.8])
    first /= np.linalg.norm(first)
    return points @ np.stack([first, np.cross(axis, first), axis])


AXES = [(0, 0, 1), (1, 0, 0), (0, -1, 0), (0.6, 0.0, -0.8), (2 / 3, -2 / 3, 1 / 3)]


def test_box():
    found = ax.Inertia.box(MASS, (0.4, 0.6, 1.1))
    np.testing.assert_allclose(
        tensor(found), integrated(grid((0.4, 0.6, 1.1))), rtol=INTEGRAL, atol=1e-12
    )


def test_sphere():
    points = grid((2.0, 2.0, 2.0)) * 0.35
    inside = points[np.linalg.norm(points, axis=1) <= 0.35]
    np.testing.assert_allclose(
        tensor(ax.Inertia.sphere(MASS, 0.35)), integrated(inside), rtol=INTEGRAL, atol=1e-12
    )


@pytest.mark.parametrize("axis", AXES)
def test_cylinder(axis):
    points = grid((2.0, 2.0, 1.0)) * (0.3, 0.3, 0.9)
    inside = points[np.hypot(points[:, 0], points[:, 1]) <= 0.3]
    expected = integrated(turned_from_z(inside, axis))
    found = tensor(ax.Inertia.cylinder(MASS, 0.3, 0.9, axis))
    np.testing.assert_allclose(found, expected, atol=INTEGRAL * np.abs(expected).max())


@pytest.mark.parametrize("axis", AXES)
def test_disk(axis):
    points = grid((2.0, 2.0, 0.0)) * 0.3
    inside = points[np.hypot(points[:, 0], points[:, 1]) <= 0.3]
    expected = integrated(turned_from_z(inside, axis))
    found = tensor(ax.Inertia.disk(MASS, 0.3, axis))
    np.testing.assert_allclose(found, expected, atol=INTEGRAL * np.abs(expected).max())


@pytest.mark.parametrize("axis", AXES)
def test_rod(axis):
    points = grid((0.0, 0.0, 0.8))
    expected = integrated(turned_from_z(points, axis))
    found = ax.Inertia.rod(MASS, 0.8, axis)
    np.testing.assert_allclose(tensor(found), expected, atol=INTEGRAL * np.abs(expected).max())
    assert found.ideal and found.fault() is None


def test_moments_about_coordinate_axes_are_exact():
    wheel = ax.Inertia.disk(0.7, 0.1, "y")
    assert wheel.yy == 0.7 * 0.1 * 0.1 / 2.0
    assert wheel.xx == wheel.zz == 0.7 * 0.1 * 0.1 / 4.0
    assert (wheel.xy, wheel.xz, wheel.yz) == (0.0, 0.0, 0.0)


def test_parallel_axes():
    points = grid((0.4, 0.6, 1.1))
    offset = np.array([0.2, -0.7, 0.4])
    found = ax.Inertia.box(MASS, (0.4, 0.6, 1.1)).moved(MASS, offset)
    np.testing.assert_allclose(tensor(found), integrated(points - offset), rtol=INTEGRAL)


def test_inertia_of_formulas_is_inertia_of_their_values():
    m, r, h = ax.Parameter("m", 2.0), ax.Parameter("r", 0.3), ax.Parameter("h", 0.5)
    leaning = (0.6, 0, 0.8)
    for symbolic, plain in [
        (ax.Inertia.box(m, (r, h, 1)), ax.Inertia.box(2.0, (0.3, 0.5, 1.0))),
        (
            ax.Inertia.cylinder(m, r, h, (0.6, 0, 0.8)),
            ax.Inertia.cylinder(2, 0.3, 0.5, (0.6, 0, 0.8)),
        ),
        (ax.Inertia.disk(m, r, "x"), ax.Inertia.disk(2, 0.3, "x")),
        (ax.Inertia.rod(m, h, leaning), ax.Inertia.rod(2, 0.5, leaning)),
        (ax.Inertia.sphere(m, r), ax.Inertia.sphere(2, 0.3)),
        (
            ax.Inertia.sphere(m, r).moved(m, (h, 0, r)),
            ax.Inertia.sphere(2, 0.3).moved(2, (0.5, 0, 0.3)),
        ),
    ]:
        np.testing.assert_allclose(tensor(symbolic), tensor(plain), rtol=1e-14, atol=1e-17)


@pytest.mark.parametrize(
    "given",
    [
        (1, 2, 2.5),
        [1.0, 2.0, 2.5],
        np.array([1, 2, 2.5]),
        [[1, 0, 0], [0, 2, 0], [0, 0, 2.5]],
        np.diag([1, 2, 2.5]),
        ax.Inertia(1, 2, 2.5),
    ],
)
def test_every_way_to_give_an_inertia(given):
    assert ax.Inertia.of(given) == ax.Inertia(1.0, 2.0, 2.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1.0, "expected three principal moments, a 3 x 3 tensor or an Inertia, got 1.0"),
        ("point", "expected three principal moments"),
        ((1, 2), "expected three principal moments"),
        ([[1, 2], [3, 4]], "expected three principal moments"),
        ([[1, 2, 0], [0, 2, 0], [0, 0, 2]], "the inertia tensor must be symmetric"),
        ((1, 2, "l"), "expected a number or a Parameter, got 'l'; formulas are written with"),
        ((1, 2, True), "expected a number or a Parameter, got True"),
        ((1, 2, 3j), "expected a number or a Parameter, got 3j"),
    ],
)
def test_what_is_no_inertia_is_told(given, message):
    with pytest.raises(ax.InvalidArgument, match=message):
        ax.Inertia.of(given)


def test_shapes_are_kept_as_numbers_whatever_they_were():
    assert ax.Box([1, 2, 3]) == ax.Box(np.array([1.0, 2.0, 3.0]), at=(0, 0, 0))
    assert ax.Cylinder(1, 2, "x") == ax.Cylinder(1.0, 2.0, (1, 0, 0))
    assert hash(ax.Sphere(1, at=[0, 0, 1])) == hash(ax.Sphere(1.0, at=(0.0, 0.0, 1.0)))


@pytest.mark.parametrize("shape", [ax.Box((1, 2, 3)), ax.Cylinder(1, 2, "x"), ax.Sphere(0.5)])
def test_a_body_without_inertia_is_a_solid_of_its_shape(shape):
    arm = ax.Mechanism("arm")
    body = arm.add_body("a", mass=MASS, shape=shape)
    direct = {
        "box": lambda: ax.Inertia.box(MASS, (1, 2, 3)),
        "cylinder": lambda: ax.Inertia.cylinder(MASS, 1, 2, "x"),
        "sphere": lambda: ax.Inertia.sphere(MASS, 0.5),
    }
    assert body.inertia == direct[shape.kind]()


LENGTH = ax.Parameter("length", 0.4)
# a shape, and where the way along (1, 2, 2) / 3 from its centre leaves it
WAYS_OUT = [
    (ax.Box((0.2, 0.2, LENGTH), at=(1, 0, LENGTH)), 0.15),
    (ax.Sphere(0.3, at=(0, 0, 2)), 0.3),
    (ax.Cylinder(0.1, LENGTH, axis=(0, 0, 2), at=(0, 1, 0)), 0.1 * 3 / 5**0.5),
    (ax.Cylinder(1.0, LENGTH, axis="x"), 0.6),
]


@pytest.mark.parametrize(("shape", "way"), WAYS_OUT)
def test_a_mass_centre_outside_the_solid_is_told(shape, way):
    """No solid has its mass centre outside or on its surface; a heavy side within it is usual."""
    direction = np.array([1, 2, 2]) / 3
    for part, inside in ((0.0, True), (0.999, True), (1.001, False), (-0.999, True), (-1.5, False)):
        com = [numeric(a) + part * way * d for a, d in zip(shape.at, direction, strict=True)]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ax.Mechanism("m").add_body("b", mass=2, com=com, shape=shape)
            ax.Mechanism("m").add_body("b", mass=2, com=com, shape=shape, inertia=(1, 1, 1))
        assert [warning.category for warning in told] == ([] if inside else [PlausibilityWarning])


def test_a_link_that_forgets_its_mass_centre_is_told_where_it_is():
    with pytest.warns(
        PlausibilityWarning, match=r"body 'link': com = \(0, 0, 0\) .* com=\(0\.2, 0, 0\) is"
    ):
        ax.Mechanism("m").add_body(
            "link", mass=1, shape=ax.Box((LENGTH, 1, 1), at=(LENGTH / 2, 0, 0))
        )


# flat, massless, unphysical ----------------------------------------------------------------------


def test_a_planar_inertia_is_that_of_a_flat_body():
    """Any lamina has Ixx + Iyy = Izz; a disk is one."""
    assert ax.Inertia.planar(ax.Inertia.disk(MASS, 0.3, "y").yy, "y") == ax.Inertia.disk(
        MASS, 0.3, "y"
    )
    assert ax.Inertia.planar(0.2).fault() is None


def crank(mass, inertia):
    """A crank on the ground whose arm, 0.4 m long, carries a point mass."""
    arm = ax.Mechanism("crank")
    arm.add_body("crank", mass=mass, inertia=inertia)
    arm.add_body("load", mass=3.0, inertia=ax.Inertia.point())
    arm.add_joint("turn", ax.Revolute("z"), parent=arm.ground, child="crank")
    arm.add_joint("hold", ax.Fixed(), parent="crank", child="load", at=(0.4, 0, 0))
    return arm


ZERO = ax.Parameter("J", 0.0)
NOTHING = {
    "point": (0.0, ax.Inertia.point()),
    "zeros": (0.0, (0.0, 0.0, 0.0)),
    "parameters": (ax.Parameter("m", 0.0), (ZERO, ZERO, ZERO)),
    "tensor": (ax.Parameter("m", 0.0), ((ZERO, 0, 0), (0, ZERO, 0), (0, 0, ZERO))),
    "solid": (ax.Parameter("m", 0.0), ax.Inertia.box(ax.Parameter("m", 0.0), (1, 1, 1))),
}


@pytest.mark.parametrize("written", NOTHING)
def test_no_mass_and_no_inertia_is_a_massless_body_however_it_is_written(written):
    model = crank(*NOTHING[written]).derive().compile("interpreter")
    np.testing.assert_allclose(model.mass_matrix([0.3]), [[3.0 * 0.4**2]])


def test_a_massless_body_given_by_parameters_may_get_a_mass_later():
    model = crank(*NOTHING["parameters"]).derive().compile("interpreter")
    found = model.mass_matrix([0.3], parameters={"J": 0.7, "m": 2.0})
    np.testing.assert_allclose(found, [[3.0 * 0.4**2 + 0.7]])


@pytest.mark.parametrize("written", NOTHING)
def test_a_massless_end_has_no_direct_dynamics_however_it_is_written(written):
    arm = crank(*NOTHING[written])
    arm.bodies.pop()
    arm.connections.pop()
    with pytest.warns(PlausibilityWarning, match=r"nothing resists the motion of turn\.rate"):
        model = arm.derive().compile("interpreter")
    with pytest.raises(ax.MechanismError, match=r"nothing resists the motion of turn\.rate"):
        model.forward_dynamics([0.0], [0.0], [])
    arm.add_motor("motor", "turn", gear=10.0, rotor_inertia=2e-3)
    model = arm.derive().compile("interpreter")
    np.testing.assert_allclose(model.forward_dynamics([0.0], [0.0], [1.0]), [10.0 / 0.2])


@pytest.mark.parametrize(("mass", "inertia"), [(2.0, (0, 0, 0)), (0.0, (1, 1, 1))])
def test_mass_without_inertia_and_inertia_without_mass_are_meant_only_if_said(mass, inertia):
    with pytest.raises(ax.MechanismError, match=r"mass: must be > 0|inertia: must be positive"):
        crank(mass, inertia).check()
    crank(mass, ax.Inertia(*inertia, ideal=True)).check()


@pytest.mark.parametrize("moments", [(1, 1, 5), (1, -1, 1), (0, 0, 0)])
def test_unphysical_inertia_is_computed_with_if_that_is_said(moments):
    with pytest.raises(ax.MechanismError, match=r"inertia: not physical|inertia: must be positive"):
        crank(1.0, moments).check()
    model = crank(1.0, ax.Inertia(*moments, unphysical=True)).derive().compile("interpreter")
    np.testing.assert_allclose(model.mass_matrix([0.3]), [[3.0 * 0.4**2 + moments[2]]])
    with pytest.raises(ax.MechanismError, match="must be finite"):
        crank(1.0, ax.Inertia(np.nan, 1, 1, unphysical=True)).check()


def test_zeros_with_rounding_are_zeros_where_zeros_are_meant():
    crank(0.27, ax.Inertia(0, 0, 0, xz=2.4e-35, ideal=True)).check()
    crank(0.27, ax.Inertia(1e-30, -1e-30, 1e-20, ideal=True)).check()
    with pytest.raises(ax.MechanismError, match="inertia: must be positive definite"):
        crank(0.27, ax.Inertia(0, 0, 0, xz=2.4e-35)).check()
    with pytest.raises(ax.MechanismError, match="inertia: must be positive definite"):
        crank(0.27, ax.Inertia(0, 0, 0, xz=2.4e-10, ideal=True)).check()
