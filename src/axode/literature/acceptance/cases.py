"""Acceptance cases: the format of their file, of input signals and of quantities.

Each quantity is an equation of its source, whose number stands in a table at the end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from axode.errors import FileError, InvalidArgument, UnknownName
from axode.mechanism.values.expressions import Scalar, evaluate, numeric, parse_scalar
from axode.names import as_names

OPEN_CASES = Path(__file__).with_name("cases_open.json")
DEFAULT_TOLERANCE = {"rel": 1e-8, "abs": 1e-10}


@dataclass(frozen=True)
class Case:
    """One case of a file.

    Attributes:
        id, name, system: What it is called, what it is about, which adapter understands it.
        source_equation: Numbers in its source.
        parameters, state, input: What is given, in the source's own names.
        expected: What is wanted, by the quantity's name.
        rel, abs: Relative and absolute tolerance.
    """

    id: str
    system: str
    parameters: Mapping[str, Any]
    state: Mapping[str, Any]
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    rel: float
    abs: float
    name: str = ""
    source_equation: str = ""

    @classmethod
    def of(cls, item: Any, number: int) -> Case:
        """A case from an entry of a file.

        Raises:
            FileError: naming the entry and what it lacks.
        """
        if not isinstance(item, Mapping):
            raise FileError(f"case {number}: expected an object with fields, got {item!r}")
        label = str(item.get("id", f"number {number}"))
        missing = [field for field in ("id", "system", "expected") if field not in item]
        if missing:
            raise FileError(f"case {label}: it has no {', '.join(missing)}")
        groups = {
            field: item.get(field) or {}
            for field in ("parameters", "state", "input", "expected", "tolerance")
        }
        for field, value in groups.items():
            if not isinstance(value, Mapping):
                raise FileError(f"case {label}: {field} must be an object, got {value!r}")
        tolerance = DEFAULT_TOLERANCE | dict(groups.pop("tolerance"))
        try:
            rel, absolute = float(tolerance["rel"]), float(tolerance["abs"])
        except (TypeError, ValueError):
            raise FileError(f"case {label}: tolerance needs the numbers rel and abs") from None
        return cls(
            id=label,
            system=str(item["system"]),
            name=str(item.get("name", "")),
            source_equation=str(item.get("source_equation", "")),
            rel=rel,
            abs=absolute,
            **groups,
        )

    @property
    def t_end(self) -> float | None:
        """End of the run [s]; None for a case about one state."""
        return float(self.input["t_end"]) if "t_end" in self.input else None


def chosen_cases(cases: Sequence[Case], ids: Sequence[str] | None) -> list[Case]:
    """Cases by id, in the order of the file; all of them for None.

    Raises:
        UnknownName: for an id that is not in the file, listing those that are.
    """
    known = [case.id for case in cases]
    ids = None if ids is None else as_names(ids)
    for name in ids or ():
        if name not in known:
            raise UnknownName("the file", "case", name, known)
    return [case for case in cases if ids is None or case.id in ids]


def load_cases(path: str | PathLike[str] | None = None) -> list[Case]:
    """The cases of a file; those that come with Axode unless one is named.

    Raises:
        FileError: if it cannot be read or is no list of cases.
    """
    file = OPEN_CASES if path is None else Path(path)
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise FileError(f"{file}: not a file of cases in JSON ({error})") from None
    if isinstance(entries, Mapping):
        entries = entries.get("cases")
    if not isinstance(entries, list):
        raise FileError(f"{file}: expected a list of cases")
    try:
        return [Case.of(entry, number) for number, entry in enumerate(entries, start=1)]
    except FileError as error:
        raise FileError(f"{file}: {error}") from None


# signals ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Signal:
    """An input over time: a formula until `until`, zero from then on."""

    formula: Scalar
    until: float = math.inf

    @classmethod
    def of(cls, given: Any) -> Signal:
        """From a number, a formula of t as text, or {"signal": formula, "until": T}.

        Raises:
            InvalidArgument: for anything else.
        """
        if isinstance(given, Mapping) and "signal" in given:
            inner = cls.of(given["signal"])
            return cls(inner.formula, float(given.get("until", math.inf)))
        if isinstance(given, str):
            try:
                return cls(parse_scalar(given, {}))
            except ValueError as error:
                raise InvalidArgument(f"signal: {error}") from None
        if isinstance(given, int | float) and not isinstance(given, bool):
            return cls(float(given))
        raise InvalidArgument(f"signal: expected a number, a formula or signal/until, got {given}")

    def __call__(self, t: float) -> float:
        """Its value at a time [s]."""
        return float(evaluate(self.formula, {"t": t})) if t <= self.until else 0.0

    def during(self, t: float) -> Scalar:
        """What it is in the interval of time that starts at t, free of jumps."""
        return self.formula if t < self.until else 0.0


# quantities ---------------------------------------------------------------------------------------

_AT = re.compile(r"^(?P<name>[^@()\[\]]+)@(?P<t>[^@()\[\]]+)$")
_EXTREME = re.compile(
    r"^(?P<kind>max|min|argmax|argmin)\((?P<inner>abs\((?P<absolute>[^()]+)\)|(?P<plain>[^()]+))\)"
    r"(?:\[(?P<t0>[^,\[\]]+),(?P<t1>[^,\[\]]+)\])?$"
)


@dataclass(frozen=True)
class Quantity:
    """A quantity by name, perhaps at a time, perhaps its extreme over an interval of time."""

    name: str
    at: float | None = None
    extreme: str = ""  # max, min, argmax or argmin
    absolute: bool = False
    between: tuple[float, float] | None = None

    @classmethod
    def of(cls, text: str) -> Quantity:
        """Understand `name`, `name@t`, `max(name)`, `argmax(abs(name))[t0,t1]`."""
        if match := _AT.match(text.strip()):
            return cls(match["name"].strip(), at=_number(match["t"]))
        if match := _EXTREME.match(text.replace(" ", "")):
            between = None
            if match["t0"] is not None:
                between = (_number(match["t0"]), _number(match["t1"]))
            name = match["absolute"] or match["plain"]
            return cls(
                name, extreme=match["kind"], absolute=bool(match["absolute"]), between=between
            )
        return cls(text.strip())


def _number(text: str) -> float:
    try:
        value = numeric(parse_scalar(text, {}))
    except ValueError as error:
        raise InvalidArgument(f"time: {error}") from None
    if not math.isfinite(value):
        raise InvalidArgument(f"time: '{text}' is no number")
    return value


# system: quantity: numbers in its document; quantities that are not here stand in the case's range
EQUATIONS: dict[str, dict[str, str]] = {
    "A1_holonomic_NOC_fourbar": {
        "Theta": "12.5",
        "I": "12.8b",
        "C_thetadot": "12.8b",
        "gamma": "12.8c",
        "tau": "12.8a",
    },
    "A2_platform_6R_legs": {
        "t_M": "12.10, 12.20",
        "T": "12.20",
        "L_leg1": "12.17, 12.25",
        "zeta": "12.34a",
        "det_K22_equals_zeta": "12.34a, Example 12.4.1",
        "M_q": "12.27a",
        "bias_Nqd_minus_gravity_minus_TtwW": "12.26, 12.27b",
        "phi": "12.30, 12.31",
        "q_ddot": "12.32b",
    },
    "A3_caster_robot": {
        "Theta": "12.5",
        "I": "12.52",
        "C": "after 12.54",
        "C_thetadot": "after 12.54",
        "D": "after 12.54",
        "I_dot": "Exercise 12.2",
        "theta_ddot": "12.8a",
        "theta3_dot_psi_dot": "12.5",
        "omega": "12.36b",
        "kinetic_energy": "12.51",
        "translation_inertia_psi_pi_2": "Exercise 12.3",
        "rotation_inertia_steady_caster": "Exercise 12.3",
        "steady_caster_psi": "Exercise 12.3",
    },
    "A4_two_caster_robot": {
        "Theta": "12.5",
        "I": "12.52, Exercise 12.5",
        "C_thetadot": "after 12.54, Exercise 12.5",
    },
    "A5_mekanum_delta": {
        "alpha": "12.70",
        "beta": "12.70",
        "omega": "12.61, Exercise 12.7",
        "c": "12.62",
        "sigma": "12.61",
        "C_thetadot": "12.79",
        "theta_ddot": "12.78",
        "theta_dot": "12.78",
        "twist_body": "12.63",
        "multipliers": "Exercise 12.11",
        "k_ex12_7": "Exercise 12.7",
        "f_ex12_7": "Exercise 12.7",
        "eigenvalues": "Exercise 12.10",
        "alpha_minus_beta": "Exercise 12.8",
        "alpha_plus_2beta": "Exercise 12.10",
        "H_for_isotropy": "Exercise 12.6",
        "alpha_at_isotropy": "Exercise 12.6",
    },
    "A6_mekanum_n": {},
    "B1_NOC_nonholonomic": {
        "rows": "11",
        "cols": "11",
        "rank": "13",
        "nullity": "12",
        "max_abs_AT": "13",
        "T_caster_block": "12",
    },
    "B2_rolling_disk": {
        "omega_dot": "35",
        "c_dot": "28",
        "q_dot": "33",
        "c_ddot": "33",
        "contact_force": "6",
        "I_Q": "32",
        "missing_term_m_s_dot_omega_qdot": "33",
        "omega_dot_as_printed": "35",
    },
    "B3_AGV_paths": {
        "theta_dot": "36",
        "theta_ddot": "37",
        "psi": "36",
        "theta3_dot": "36",
        "tau": "38",
    },
    "C1_quasimoro": {
        "inertia": "24, 26, 29",
        "bias_incl_gravity": "24, 26, 28",
        "accelerations": "23, 25, 28",
        "psi_dot": "12",
        "multipliers_forward_lateral_yaw": "30",
        "effective_inertia": "39",
        "linear_natural_frequency": "38",
        "linear_amplitude": "38",
        "theta1": "37",
        "theta3": "38",
    },
    "D2_cooperating_arms": {
        "theta": "7",
        "theta_dot": "1",
        "mass_matrix_arm1": "5, 32",
        "bias_C": "5, 32",
        "free_theta_ddot": "step 1",
        "F_c": "step 4",
        "theta_ddot": "step 6, 9",
        "load_acc_alpha_ax_ay": "19, 26",
        "tip_forces_on_load": "26, 27",
    },
    "D5_two_wheeled_cart": {
        "rank_closure_real": "34",
        "mobility": "34",
        "rank_d4": "16",
        "wheel_spin_acc": "17, 33",
        "load_pitch_acc": "33",
    },
    "E1_valencia_arm": {
        "M": "35, 38",
        "V_coriolis": "35, 42",
        "G": "35, 43",
        "tau": "36, 37",
        "theta_ddot": "44 to 48",
    },
    "E2_valencia_platform": {
        "q_ddot_x_y_theta": "64, 69",
        "wheel_acc_R_L": "68",
        "v_dot": "66",
        "w_dot": "67",
        "multipliers_lat_R_L": "55",
        "v": "66",
        "w": "67",
    },
}


def equation_of(system: str, quantity: str, otherwise: str) -> str:
    """Numbers of a quantity in its source, or the range that the case names."""
    return EQUATIONS.get(system, {}).get(quantity, otherwise)
