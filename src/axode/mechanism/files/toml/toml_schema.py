"""What a mechanism file may hold: values of keys, and one class per table.

Pydantic reads the tables, formulas included, and writes their JSON Schema. This module is imported
only when a file is read or the schema asked for.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictStr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from axode.mechanism.elements.bodies import SHAPES, Inertia
from axode.mechanism.elements.forces import KINDS
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from axode.mechanism.values.expressions import (
    ONE_SYMBOL,
    Expression,
    JointNames,
    Scalar,
    as_scalar,
    is_symbol,
    parse_scalar,
)
from axode.mechanism.values.geometry import AXES, NO_ROTATION, ORIGIN, as_rotation, as_vector
from axode.numerics.tolerances import LOOP_TOLERANCE

# values ----------------------------------------------------------------------------------------


def describe_value(value: Any) -> str:
    """Return a value of a file as messages show it."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"{len(value)} values" if len(value) != 1 else "1 value"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _scalar(value: Any, info: ValidationInfo) -> Scalar:
    """A number, or a formula of the file's parameters."""
    if isinstance(value, str):
        return parse_scalar(value, (info.context or {}).get("parameters", {}))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return as_scalar(value)
    raise ValueError(f"expected a number or a formula, got {describe_value(value)}")


def _joint_formula(value: Any, info: ValidationInfo) -> Scalar:
    """A number, or a formula of joints, coordinates and the file's parameters."""
    if isinstance(value, str):
        return parse_scalar(value, JointNames((info.context or {}).get("parameters", {})))
    return _scalar(value, info)


def _constant(value: Any, info: ValidationInfo) -> float:
    """A number, or a formula of numbers alone, such as "pi / 4"."""
    if not isinstance(value, str):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(as_scalar(value))
        raise ValueError(f"expected a number, got {describe_value(value)}")
    found = parse_scalar(value, (info.context or {}).get("parameters", {}))
    if isinstance(found, Expression):
        raise ValueError(f"expected a number, got the formula '{found}'")
    return found


def _parameter(value: Any, info: ValidationInfo) -> tuple[float, str]:
    """A default, or a table of a default and LaTeX: `{ default = 3.0, latex = "m_p" }`."""
    if not isinstance(value, dict):
        return _constant(value, info), ""
    unknown = sorted(value.keys() - {"default", "latex"})
    if unknown:
        raise ValueError(f"unknown key '{unknown[0]}'; a parameter has default and latex")
    latex = value.get("latex", "")
    if not isinstance(latex, str):
        raise ValueError(f"latex: expected text, got {describe_value(latex)}")
    if not is_symbol(latex):
        raise ValueError(f"latex must be {ONE_SYMBOL}; got {latex!r}")
    if "default" not in value:
        raise ValueError("the default is missing")
    return _constant(value["default"], info), latex


def _all_scalars(value: Any, info: ValidationInfo) -> Any:
    """Lists of scalars, however deep, with every fault in them reported."""
    if not isinstance(value, list):
        return _scalar(value, info)
    items, faults = [], []
    for item in value:
        try:
            items.append(_all_scalars(item, info))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ValueError("; ".join(dict.fromkeys(faults)))
    return items


def _vector(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, list) or any(isinstance(item, list) for item in value):
        raise ValueError(f"expected three numbers or formulas, got {describe_value(value)}")
    return as_vector(_all_scalars(value, info))


def _axis(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and value in AXES:
        return AXES[value]
    if not isinstance(value, list):
        named = ", ".join(f'"{name}"' for name in AXES)
        raise ValueError(f"expected three numbers or one of {named}, got {describe_value(value)}")
    return _vector(value, info)


def _rotation(value: Any, info: ValidationInfo) -> Any:
    return as_rotation(
        _all_scalars(value, info) if isinstance(value, list) else describe_value(value)
    )


def _one_or_two(value: Any, info: ValidationInfo) -> Any:
    """A number or formula, or a list of two."""
    return _all_scalars(value, info) if isinstance(value, list) else _scalar(value, info)


_SCALAR: dict[str, Any] = {"type": ["number", "string"]}
_PAIR: dict[str, Any] = {"type": "array", "items": _SCALAR, "minItems": 2, "maxItems": 2}
_VECTOR: dict[str, Any] = {"type": "array", "items": _SCALAR, "minItems": 3, "maxItems": 3}
_MATRIX: dict[str, Any] = {"type": "array", "items": _VECTOR, "minItems": 3, "maxItems": 3}
_QUATERNION: dict[str, Any] = {"type": "array", "items": _SCALAR, "minItems": 4, "maxItems": 4}
Number = Annotated[Any, PlainValidator(_scalar), WithJsonSchema(_SCALAR)]
FrictionNumbers = Annotated[
    Any, PlainValidator(_one_or_two), WithJsonSchema({"anyOf": [_SCALAR, _PAIR]})
]
StopNumbers = Annotated[Any, PlainValidator(_one_or_two), WithJsonSchema(_PAIR)]
JointFormula = Annotated[Any, PlainValidator(_joint_formula), WithJsonSchema(_SCALAR)]
Constant = Annotated[Any, PlainValidator(_constant), WithJsonSchema(_SCALAR)]
_PARAMETER: dict[str, Any] = {
    "type": "object",
    "properties": {"default": _SCALAR, "latex": {"type": "string"}},
    "required": ["default"],
    "additionalProperties": False,
}
Default = Annotated[
    Any, PlainValidator(_parameter), WithJsonSchema({"anyOf": [_SCALAR, _PARAMETER]})
]
Vector = Annotated[Any, PlainValidator(_vector), WithJsonSchema(_VECTOR)]
Axis = Annotated[
    Any, PlainValidator(_axis), WithJsonSchema({"anyOf": [{"enum": list(AXES)}, _VECTOR]})
]
Rotation = Annotated[
    Any, PlainValidator(_rotation), WithJsonSchema({"anyOf": [_VECTOR, _QUATERNION, _MATRIX]})
]
Slip = Literal["rigid", "free"]


def flatten(value: Any) -> Any:
    """Tables in tables as one: base.z = 0.1 names the coordinate "base.z", as quotes would."""
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, item in value.items():
        inner = flatten(item) if isinstance(item, dict) else {"": item}
        for rest, leaf in inner.items():
            found[f"{name}.{rest}" if rest else name] = leaf
    return found


class Table(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class InertiaTable(Table):
    """The six entries of an inertia tensor about the mass centre [kg m^2]."""

    xx: Number
    yy: Number
    zz: Number
    xy: Number = 0.0
    xz: Number = 0.0
    yz: Number = 0.0
    ideal: StrictBool = False
    unphysical: StrictBool = False

    def build(self) -> Inertia:
        """The inertia it describes."""
        return Inertia(**{name: getattr(self, name) for name in type(self).model_fields})


class GroundTable(Table):
    """A plane to roll on."""

    normal: Axis = Field(AXES["z"], description="Unit normal in the axes of `on`.")
    point: Vector = Field(ORIGIN, description="A point of the plane in the frame of `on` [m].")
    on: StrictStr = Field("ground", description="The body that carries the plane.")


class MotorNumbers(Table):
    """A motor's own numbers."""

    limit: Number = Field(None, description="Largest torque or force [N m or N].")
    gear: Number = Field(1.0, description="Turns of the motor to one of the joint.")
    rotor_inertia: Number = Field(0.0, description="About the motor's own axis [kg m^2].")
    continuous: Number = Field(None, description="Torque it may give for any time [N m or N].")
    no_load_speed: Number = Field(None, description="Speed at which no torque is left [rad/s].")
    efficiency: Number = Field(1.0, description="Part of the power that the gear passes on.")
    torque_constant: Number = Field(None, description="Torque per current [N m/A].")
    resistance: Number = Field(None, description="Of the winding [ohm].")
    inductance: Number = Field(None, description="Of the winding [H].")
    voltage: Number = Field(None, description="Largest voltage of its supply [V].")


def _inertia(value: Any, info: ValidationInfo) -> Any:
    if value == "point":
        return Inertia.point()
    if isinstance(value, dict):
        return InertiaTable.model_validate(value, context=info.context).build()
    if isinstance(value, list):
        return Inertia.of(_all_scalars(value, info))
    raise ValueError(
        "expected three principal moments, three rows of three, a table with xx, yy, zz, or "
        f'"point", got {describe_value(value)}'
    )


def _ground(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, dict):
        return GroundTable.model_validate(value, context=info.context)
    if isinstance(value, str):
        return value
    raise ValueError(
        f"expected a body or a table with normal, point and on, got {describe_value(value)}"
    )


def _motor(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, dict):
        return MotorNumbers.model_validate(value, context=info.context)
    if isinstance(value, bool):
        return value
    raise ValueError(
        f"expected true or a table such as {{ limit = 4.0 }}, got {describe_value(value)}"
    )


def _terms(value: Any, info: ValidationInfo) -> Any:
    """Read coefficients by joint, and report every fault in them."""
    if not isinstance(value, dict):
        example = "{ finger2 = 1.0, finger1 = -1.0 }"
        raise ValueError(
            f"expected coefficients by joint such as {example}, got {describe_value(value)}"
        )
    found, faults = {}, []
    for joint, coefficient in flatten(value).items():
        try:
            found[joint] = _scalar(coefficient, info)
        except ValueError as fault:
            faults.append(f"{joint}: {fault}")
    if faults:
        raise ValueError("; ".join(faults))
    return found


def _wheels(value: Any) -> Any:
    if value == "proposed":
        return value
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise ValueError(f'expected "proposed" or a list of links, got {describe_value(value)}')


def _either(*schemas: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": list(schemas)})


_TENSOR = _either(_VECTOR, _MATRIX, InertiaTable.model_json_schema(), {"const": "point"})
Tensor = Annotated[Any, PlainValidator(_inertia), _TENSOR]
Ground = Annotated[
    Any, PlainValidator(_ground), _either({"type": "string"}, GroundTable.model_json_schema())
]
MotorOrTrue = Annotated[
    Any, PlainValidator(_motor), _either({"type": "boolean"}, MotorNumbers.model_json_schema())
]

_COEFFICIENTS = WithJsonSchema({"type": "object", "additionalProperties": _SCALAR})
Terms = Annotated[Any, PlainValidator(_terms), _COEFFICIENTS]
_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
WheelChoice = Annotated[Any, PlainValidator(_wheels), _either({"const": "proposed"}, _NAMES)]

# tables ----------------------------------------------------------------------------------------


class ExtendsTable(Table):
    """Another file, TOML, URDF, MJCF or SDF, to whose mechanism this file adds."""

    file: StrictStr = Field(description="Its path, relative to the folder of this file.")
    base: Literal["fixed", "floating", "planar"] | None = Field(
        None, description="How the root link of a URDF or SDF file is held."
    )
    strict: StrictBool = Field(
        False, description="Whether to refuse what can be read only with a warning."
    )
    arguments: dict[StrictStr, StrictStr | StrictBool | float] = Field(
        {}, description="Values of the arguments of a xacro file."
    )
    wheels: WheelChoice = Field(
        None, description='Links that roll: "proposed", or the names of proposed ones.'
    )
    contacts: Literal["all"] | list[Literal["stops", "friction", "wheels"]] = Field(
        [], description='What is read of friction and stops: "all", or some of the three.'
    )
    hold: list[StrictStr] = Field(
        [], description='Joints that are held where they stand at home, such as "arm_*".'
    )
    remove: list[StrictStr] = Field(
        [], description='Parts of that file to remove, such as "motor.left" or "damper.*".'
    )


def _extends(value: Any, info: ValidationInfo) -> Any:
    table = {"file": value} if isinstance(value, str) else value
    if isinstance(table, dict):
        return ExtendsTable.model_validate(table, context=info.context)
    raise ValueError(
        f'expected a file such as "robot.urdf" or a table with file, got {describe_value(value)}'
    )


Extends = Annotated[
    Any,
    PlainValidator(_extends),
    WithJsonSchema({"anyOf": [{"type": "string"}, ExtendsTable.model_json_schema()]}),
]


class ShapeTable(Table):
    """What pictures show of a body; a body without inertia is a solid of its shape."""

    type: Literal[tuple(SHAPES)] = Field(description="The kind of shape.")  # type: ignore[valid-type]
    size: Vector = Field(None, description="Edges of a box along x, y, z [m].")
    radius: Number = Field(None, description="Of a cylinder or sphere [m].")
    length: Number = Field(None, description="Of a cylinder [m].")
    axis: Axis = Field(None, description="Of a cylinder, z unless given.")
    at: Vector = Field(None, description="Its centre in the body's frame [m].")
    file: StrictStr | None = Field(None, description="Of a mesh: the address of its file.")
    scale: Vector = Field(None, description="Of a mesh, along x, y, z of its file.")
    rotation: Rotation = Field(None, description="Axes of a box, or of a mesh's file.")
    colour: Vector = Field(None, description="Red, green and blue from 0 to 1.")


def _shapes(value: Any, _: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in several):
        example = '{ type = "sphere", radius = 0.1 }'
        got = describe_value(value)
        raise ValueError(f"expected a table such as {example} or a list of them, got {got}")
    return [ShapeTable.model_validate(item, context=info.context) for item in several]


Shapes = Annotated[ShapeTable | list[ShapeTable] | None, WrapValidator(_shapes)]


class BodyTable(Table):
    """A rigid body."""

    mass: Number = Field(description="Mass [kg].")
    com: Vector = Field(ORIGIN, description="Mass centre in the body's frame [m].")
    inertia: Tensor = Field(
        None,
        description="About the mass centre in the body's axes [kg m^2]: three principal moments, "
        'three rows of three, a table with xx, yy, zz, xy, xz, yz, or "point".',
    )
    shape: Shapes = Field(None, description="What pictures show: a table, or a list of tables.")


class LoopTable(Table):
    """A joint that closes a loop between two bodies that other joints hold."""

    type: Literal[tuple(JOINTS)] = Field(description="The kind of joint.")  # type: ignore[valid-type]
    parent: StrictStr = Field(description='The first body, or "ground".')
    child: StrictStr = Field(description="The second body.")
    axis: Axis = Field(None, description="Unit axis in the joint's frame, or x, y, z, -x, -y, -z.")
    second: Axis = Field(None, description="Second axis of a universal joint.")
    pitch: Number = Field(None, description="Advance of a screw joint [m/rad].")
    at: Vector = Field(ORIGIN, description="The joint's place in the parent [m].")
    rotation: Rotation = Field(
        NO_ROTATION,
        description="The joint's orientation in the parent: roll, pitch, yaw [rad], a quaternion "
        "w, x, y, z, or a matrix.",
    )
    child_at: Vector = Field(ORIGIN, description="The joint's place in the child [m].")
    child_rotation: Rotation = Field(NO_ROTATION, description="Its orientation in the child.")


class JointTable(LoopTable):
    """A joint; one whose child is held by an earlier joint closes a loop."""

    armature: Number = Field(
        0.0, description="Inertia that each speed feels besides the bodies' [kg m^2 or kg]."
    )
    friction: FrictionNumbers = Field(
        None, description="Dry friction, or static and kinetic [N m or N]."
    )
    stops: StopNumbers = Field(
        None, description="Lowest and highest coordinate, -inf or inf for none [rad or m]."
    )
    restitution: Number = Field(0.0, description="Part of an impulse that stops give back.")
    coordinates: list[StrictStr] = Field([], description="Names instead of the usual ones.")
    speeds: list[StrictStr] = Field([], description="Names instead of the usual ones.")


class RollTable(Table):
    """What every table with a wheel holds."""

    type: Literal[tuple(WHEELS)] = Field(description="The kind of wheel.")  # type: ignore[valid-type]
    radius: Number = Field(None, description="Radius [m]; 0 for a skate unless given.")
    longitudinal: Slip = Field("rigid", description='"free" to let it slip along its heading.')
    lateral: Slip = Field("rigid", description='"free" to let it slip sideways.')
    roller_angle: Number = Field(None, description="Of a Mecanum wheel, from its axis [rad].")
    friction: FrictionNumbers = Field(
        None, description="Coefficient, or static and kinetic; it never slips nor lifts without."
    )
    restitution: Number = Field(0.0, description="Part of the impulse of an impact given back.")
    rolling_resistance: Number = Field(
        0.0, description="Largest moment against rolling, per normal force [m]."
    )
    scrub: Number = Field(
        0.0, description="Largest moment against turning on the spot, per normal force [m]."
    )
    ground: Ground = Field(
        None, description="A body (its plane z = 0) or a plane; the world's z = 0 unless given."
    )


class ContactTable(RollTable):
    """A body that exists already and rolls."""

    body: StrictStr = Field(description="The body that rolls.")
    at: Vector = Field(ORIGIN, description="Wheel centre in the body's frame [m].")
    axis: Axis = Field(AXES["y"], description="Spin axis in the body's frame.")


class WheelTable(RollTable):
    """A wheel: its body, the joint it spins on, its contact and perhaps its motor."""

    on: StrictStr = Field(description="The body that carries it.")
    at: Vector = Field(ORIGIN, description="Its centre in the carrier's frame [m].")
    axis: Axis = Field(AXES["y"], description="Spin axis in the carrier's frame.")
    mass: Number = Field(description="Mass [kg].")
    inertia: Tensor = Field(None, description="As of a body; a uniform disk or ball unless given.")
    motor: MotorOrTrue = Field(False, description="true, or the motor's numbers.")
    coordinate: StrictStr | None = Field(None, description="A name for its angle.")
    speed: StrictStr | None = Field(None, description="A name for its rate.")
    shape: Shapes = Field(None, description="What pictures show: a table, or a list of tables.")


class CasterTable(RollTable):
    """A bracket that swivels, carrying a wheel that trails behind its pivot."""

    on: StrictStr = Field(description="The body that carries it.")
    at: Vector = Field(description="The pivot in the carrier's frame [m].")
    trail: Number = Field(description="From pivot to wheel centre, horizontally [m].")
    drop: Number = Field(0.0, description="From pivot down to the wheel centre [m].")
    mass: Number = Field(description="Of the wheel [kg].")
    inertia: Tensor = Field(None, description="Of the wheel; a uniform disk unless given.")
    bracket_mass: Number = Field(0.0, description="Massless unless given [kg].")
    bracket_com: Vector = Field(None, description="Mass centre of the bracket [m].")
    bracket_inertia: Tensor = Field(None, description="Of the bracket, a point unless given.")
    pivot_axis: Axis = Field(AXES["z"], description="Swivel axis in the carrier's frame.")


class CouplingTable(Table):
    """A relation between joints: coefficients times coordinates add to offset and function."""

    terms: Terms = Field(description="Coefficients by joint, coordinate or speed.")
    offset: Number = Field(0.0, description="What they add to [unit of the first term].")
    function: JointFormula = Field(0.0, description="Of joints; added to the offset.")


class CamTable(Table):
    """A cam that moves its follower: follower = profile + offset."""

    follower: StrictStr = Field(description="The joint of the follower.")
    cam: StrictStr = Field(description="The joint of the cam.")
    profile: JointFormula = Field(description="Formula of the cam's joint.")
    offset: Number = Field(0.0, description="Added to the profile [unit of the follower].")


class MimicTable(Table):
    """A joint that follows another: joint = multiplier * of + offset."""

    joint: StrictStr = Field(description="The joint that follows.")
    of: StrictStr = Field(description="The joint that leads.")
    multiplier: Number = Field(1.0, description="Motion of the joint per unit motion of `of`.")
    offset: Number = Field(0.0, description="Of the joint where `of` is zero [rad or m].")


class BeltTable(Table):
    """Two wheels that turn the same way: joint_a = ratio * joint_b + offset."""

    joint_a: StrictStr = Field(description="The joint of the first wheel.")
    joint_b: StrictStr = Field(description="The joint of the second wheel.")
    ratio: Number = Field(1.0, description="Turns of a per turn of b.")
    offset: Number = Field(0.0, description="Angle of a where b is zero [rad].")


class GearTable(BeltTable):
    """Two wheels that mesh and turn opposite ways: joint_a = -ratio * joint_b + offset."""

    ratio: Number = Field(description="Turns of a per turn of b: teeth of b over teeth of a.")


class DifferentialTable(Table):
    """A shaft that drives two joints: shaft = ratio * (left + right) / 2 + offset."""

    shaft: StrictStr = Field(description="The joint of the shaft.")
    left: StrictStr = Field(description="The joint of one side.")
    right: StrictStr = Field(description="The joint of the other side.")
    ratio: Number = Field(1.0, description="Turns of the shaft per turn of the cage.")
    offset: Number = Field(0.0, description="Angle of the shaft where both are zero [rad].")


class RackTable(Table):
    """A pinion that moves a rack: slide = radius * pinion + offset."""

    pinion: StrictStr = Field(description="The joint that turns.")
    slide: StrictStr = Field(description="The joint of the rack, which slides.")
    radius: Number = Field(description="Of the pinion [m].")
    offset: Number = Field(0.0, description="Position of the rack where the pinion is at zero [m].")


class ScrewTable(Table):
    """A spindle that moves its nut: slide = pitch * turning + offset."""

    turning: StrictStr = Field(description="The joint of the spindle.")
    slide: StrictStr = Field(description="The joint of the nut, which slides.")
    pitch: Number = Field(description="Advance per angle [m/rad].")
    offset: Number = Field(0.0, description="Position of the nut where the spindle is at zero [m].")


class MotorTable(MotorNumbers):
    """A motor on a joint."""

    joint: StrictStr = Field(description="The joint, or one speed of a joint that has several.")
    input: StrictStr | None = Field(None, description="A name for its input.")


class StrutTable(Table):
    """Either a joint, or two points of two bodies."""

    joint: StrictStr | None = Field(None, description="The joint it acts on, or one coordinate.")
    parent: StrictStr | None = Field(None, description="Without a joint: the first body.")
    child: StrictStr | None = Field(None, description="Without a joint: the second body.")
    at: Vector = Field(ORIGIN, description="Its end on the first body [m].")
    child_at: Vector = Field(ORIGIN, description="Its end on the second body [m].")


class DamperTable(StrutTable):
    """Viscous friction on a joint, or a dashpot between two points."""

    coefficient: Number = Field(description="Force a speed [N m s/rad or N s/m].")


class SpringTable(StrutTable):
    """A spring on a joint, or between two points."""

    stiffness: Number = Field(description="Force a displacement [N m/rad or N/m].")
    rest: Number = Field(0.0, description="Coordinate or length at which it is slack [rad or m].")
    damping: Number = Field(0.0, description="Of a spring between two points [N s/m].")


class WrenchTable(Table):
    """A moment and a force from outside: six inputs."""

    body: StrictStr = Field(description="Where it acts.")
    at: Vector = Field(ORIGIN, description="The point in the body's frame [m].")
    frame: Literal["world", "body"] = Field("world", description="Whose axes the numbers are in.")


class MeasureTable(Table):
    """A named quantity of the state, worth looking at."""

    kind: Literal[tuple(KINDS)] = Field(description="What is measured.")  # type: ignore[valid-type]
    body: StrictStr = Field(description="The body that is meant.")
    at: Vector = Field(ORIGIN, description="The point of it that is meant [m].")
    other: StrictStr = Field("ground", description="The far end of a distance.")
    other_at: Vector = Field(ORIGIN, description="The point there [m].")


Repeat = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "array"}, {"type": "object"}]},
            },
        }
    ),
]


class Document(Table):
    """A mechanism. Wherever a number may stand, a formula of the parameters may stand too."""

    model_config = ConfigDict(title="Axode mechanism")

    extends: Extends = Field(
        None, description="A file to whose mechanism everything else is added."
    )
    name: StrictStr | None = Field(
        None, description="The file's name unless given, or that of the file it extends."
    )
    gravity: Vector = Field((0.0, 0.0, -9.81), description="In the world [m/s^2].")
    loop_tolerance: Constant = Field(
        LOOP_TOLERANCE,
        description="How far redundant rows may contradict others [rad, or relative to length].",
    )
    parameters: dict[str, Default] = Field(
        {}, description="Names and defaults, in SI units; with LaTeX, tables of both."
    )
    body: dict[str, BodyTable] = Field({})
    joint: dict[str, JointTable] = Field({})
    loop: dict[str, LoopTable] = Field({})
    wheel: dict[str, WheelTable] = Field({})
    caster: dict[str, CasterTable] = Field({})
    contact: dict[str, ContactTable] = Field({})
    coupling: dict[str, CouplingTable] = Field({})
    cam: dict[str, CamTable] = Field({})
    mimic: dict[str, MimicTable] = Field({})
    gear: dict[str, GearTable] = Field({})
    belt: dict[str, BeltTable] = Field({})
    differential: dict[str, DifferentialTable] = Field({})
    rack: dict[str, RackTable] = Field({})
    screw: dict[str, ScrewTable] = Field({})
    motor: dict[str, MotorTable] = Field({})
    damper: dict[str, DamperTable] = Field({})
    spring: dict[str, SpringTable] = Field({})
    wrench: dict[str, WrenchTable] = Field({})
    measure: dict[str, MeasureTable] = Field({})
    repeat: Repeat = Field(
        {}, description="Tables that are copied, and lists of what differs between the copies."
    )
    prescribe: Annotated[dict[str, Number], BeforeValidator(flatten)] = Field(
        {}, description="Coordinates that follow a formula of the time t."
    )
    home: Annotated[dict[str, Constant], BeforeValidator(flatten)] = Field(
        {}, description="A configuration near which the loops close."
    )


TABLES: dict[str, type[Table]] = {
    key: kind
    for key, entry in Document.model_fields.items()
    for kind in get_args(entry.annotation)
    if isinstance(kind, type) and issubclass(kind, Table)
}
TABLES_IN_TABLES: dict[str, type[Table]] = {
    "extends": ExtendsTable,
    "inertia": InertiaTable,
    "bracket_inertia": InertiaTable,
    "shape": ShapeTable,
    "ground": GroundTable,
    "motor": MotorNumbers,
}
