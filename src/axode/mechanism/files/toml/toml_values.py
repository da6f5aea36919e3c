"""Values of keys in a mechanism file: numbers, formulas, vectors, rotations and inline tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictStr,
    ValidationInfo,
    WithJsonSchema,
)

from axode.mechanism.elements.bodies import Inertia
from axode.mechanism.values.expressions import (
    ONE_SYMBOL,
    Expression,
    JointNames,
    Scalar,
    as_scalar,
    is_symbol,
    parse_scalar,
)
from axode.mechanism.values.geometry import AXES, ORIGIN, as_rotation, as_vector


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


_SCALAR: dict[str, Any] = {"type": ["number", "string"]}
_VECTOR: dict[str, Any] = {"type": "array", "items": _SCALAR, "minItems": 3, "maxItems": 3}
_MATRIX: dict[str, Any] = {"type": "array", "items": _VECTOR, "minItems": 3, "maxItems": 3}
_QUATERNION: dict[str, Any] = {"type": "array", "items": _SCALAR, "minItems": 4, "maxItems": 4}
Number = Annotated[Any, PlainValidator(_scalar), WithJsonSchema(_SCALAR)]
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
