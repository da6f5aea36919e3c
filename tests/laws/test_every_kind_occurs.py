"""The mechanisms that the laws are tried on leave no joint, wheel or force of the library out."""

from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from axode.mechanism.values.expressions import numeric
from random_mechanisms import CLOSURES, MECHANISMS
from variants import FURTHER_DRAWS

BUILT = {name: build() for name, build in MECHANISMS.items() if name not in FURTHER_DRAWS}


def kinds(records, attribute):
    return {type(getattr(record, attribute)).__name__.lower() for record in records}


def gathered(field):
    return [record for bot in BUILT.values() for record in getattr(bot, field)]


def test_every_joint_occurs_in_a_tree():
    assert kinds(gathered("connections"), "joint") == set(JOINTS)


def test_every_joint_that_can_close_a_loop_does():
    assert kinds(gathered("loops"), "joint") == set(CLOSURES)


def test_every_wheel_occurs_on_a_joint_and_on_a_body():
    # those that are ideal: others have laws of contact instead of rows
    ideal = {name for name, wheel in WHEELS.items() if wheel.is_ideal}
    assert kinds(gathered("contacts"), "wheel") == ideal
    mounted = {
        type(c.wheel).__name__
        for bot in BUILT.values()
        for c in bot.contacts
        if c.name in {joint.name for joint in bot.connections}
    }
    assert {"Ball", "Rolling", "Omni", "Mecanum"} <= mounted
    placed = {
        type(c.wheel).__name__
        for bot in BUILT.values()
        for c in bot.contacts
        if c.name not in {joint.name for joint in bot.connections}
    }
    assert {"Ball", "Rolling", "Skate"} <= placed


def test_wheels_lean_slide_and_roll_on_moving_and_tilted_ground():
    contacts = gathered("contacts")
    assert any(abs(numeric(c.axis[2])) > 0.05 for c in contacts if c.wheel.has_axis)
    assert any(getattr(c.wheel, "lateral", "") == "free" for c in contacts)
    assert any(getattr(c.wheel, "longitudinal", "") == "free" for c in contacts)
    assert any(c.plane.on != "ground" for c in contacts)
    assert any(c.plane.on == "ground" and numeric(c.plane.normal[2]) < 0.99 for c in contacts)
    assert any(
        name.endswith("_bracket") for bot in BUILT.values() for name in (b.name for b in bot.bodies)
    )


def test_every_force_occurs():
    for field in ("drives", "dampers", "springs", "struts", "wrenches", "prescribed", "couplings"):
        assert gathered(field), field
    assert {w.frame for w in gathered("wrenches")} == {"world", "body"}
    assert any(d.motor.gear != 1.0 and d.motor.rotor_inertia for d in gathered("drives"))


def test_every_actuation_occurs():
    from laws.cases import case_of

    found = {
        case_of(n).equations.actuation for n in ("arm", "balancer", "mecanum_base", "rolling_ball")
    }
    assert found == {"fully actuated", "underactuated", "redundantly actuated", "unactuated"}
