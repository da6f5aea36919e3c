"""Arguments of public functions, checked against their annotations before anything is computed.

A wrong type is reported by name, instead of by whatever NumPy or Python raises where it is first
used. Annotations that are not listed here are left to the function.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from os import PathLike
from typing import Any, NamedTuple, TypeVar, cast

from axode.errors import InvalidArgument, UnknownName, shortened, warn_renamed

Function = TypeVar("Function", bound=Callable[..., Any])

_OWN_CHECKS = ("threads", "events")  # by the functions, with a remedy
_SECONDS = ("duration", "step", "save_every", "t0", "t1", "t", "dt")


class _Rule(NamedTuple):
    """What an argument may be: as text, by its exact type, or else by a test that may raise."""

    expected: str
    exact: tuple[type, ...]
    fits: Callable[[Any], object] | None = None


def check_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check the arguments of a function: `check_arguments(f, locals())`, the first line of `f`.

    Raises:
        InvalidArgument: naming the argument, what is expected and what was given.
    """
    for name, exact, rules in _rules_of_function(function):
        if type(given[name]) not in exact:
            _check(name, rules, given[name])


def check_options(
    verb: str, kind: type, given: Mapping[str, Any], own: Callable[..., Any] | None = None
) -> None:
    """Check keywords against the annotations of a typed dictionary.

    Args:
        verb: Function that they were given to.
        kind: The typed dictionary.
        given: The keywords.
        own: The function itself, whose other keywords an error lists too.

    Raises:
        UnknownName: for an unknown keyword, with all that are known.
        InvalidArgument: for a wrong type.
    """
    rules = _rules_of_options(kind)
    for name, value in given.items():
        if name not in rules:
            parameters = inspect.signature(own).parameters.values() if own else ()
            others = (p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
            raise UnknownName(verb, "keyword", name, (*rules, *others))
        _check(name, rules[name], value)


def renamed_keywords(**names: str) -> Callable[[Function], Function]:
    """Accept former keywords of a function for one version, with a warning."""

    def accepting(function: Function) -> Function:
        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            for old in options.keys() & names:
                warn_renamed(f"{old}=", f"{names[old]}=")
                options[names[old]] = options.pop(old)
            return function(*arguments, **options)

        return cast(Function, called)

    return accepting


def _check(name: str, rules: list[_Rule], given: Any) -> None:
    for rule in rules:
        if type(given) in rule.exact:
            return
        try:
            if rule.fits is not None and rule.fits(given):
                return
        except (AttributeError, TypeError, ValueError, OverflowError):
            continue
    if rules:
        expected = " or ".join(dict.fromkeys(rule.expected for rule in rules if rule.expected))
        raise InvalidArgument(f"{name}: expected {expected}, got {shortened(given)}")


@functools.cache
def _rules_of_function(
    function: Callable[..., Any],
) -> list[tuple[str, frozenset[type], list[_Rule]]]:
    """Names, types that need no test, and rules of the arguments that have any."""
    parameters = inspect.signature(function).parameters.items()
    found = {name: _rules(name, str(parameter.annotation)) for name, parameter in parameters}
    return [
        (name, frozenset(kind for rule in rules for kind in rule.exact), rules)
        for name, rules in found.items()
        if rules
    ]


@functools.cache
def _rules_of_options(kind: type) -> dict[str, list[_Rule]]:
    hints = kind.__annotations__.items()
    return {name: _rules(name, getattr(hint, "__forward_arg__", str(hint))) for name, hint in hints}


def _rules(name: str, annotation: str) -> list[_Rule]:
    """Rules for the alternatives of an annotation; none if one of them is not known."""
    if name in _OWN_CHECKS:
        return []
    while "[" in annotation:  # what is inside of brackets is the function's own matter
        annotation = re.sub(r"\[[^\[\]]*\]", "", annotation)
    kinds = [part.strip("' ") for part in annotation.split("|")]
    known = dict(_RULES)
    if name in _SECONDS:
        known["float"] = _Rule("a number of seconds", *known["float"][1:])
    if name == "seed":
        known["int"] = _Rule("a whole number >= 0", (), lambda given: _whole(given) and given >= 0)
    return [known[kind] for kind in kinds] if all(kind in known for kind in kinds) else []


def real_number(given: Any) -> float:
    """Return a number as a float.

    Raises:
        TypeError: for texts, bytes, complex numbers and times, which float() takes in part.
        ValueError, OverflowError: for other things that are none.
    """
    kind = getattr(getattr(given, "dtype", None), "kind", "f")
    texts = isinstance(given, str | bytes | bytearray | memoryview)
    if texts or isinstance(given, complex) or kind not in "fiubO":
        raise TypeError
    return float(given)


def _number(given: Any) -> bool:
    real_number(given)  # raises for formulas and for whole numbers that are too large
    if hasattr(given, "dtype"):
        return given.shape == () and given.dtype.kind in "fiu"
    return not isinstance(given, bool)


def _whole(given: Any) -> bool:
    return not isinstance(given, bool) and abs(operator.index(given)) < 1 << 62


def _truth(given: Any) -> bool:
    whole = isinstance(given, int) or (given.shape == () and given.dtype.kind in "biu")
    return whole and given in (0, 1)


def _mapping(given: Any) -> bool:
    made = isinstance(given, Mapping) or (hasattr(given, "items") and hasattr(given, "get"))
    return made and all(isinstance(name, str) for name in given)


def _collection(given: Any) -> bool:
    len(given)  # arrays without axes have none
    names = not hasattr(given, "dtype") or given.dtype.kind in "UO"
    return isinstance(given, Collection) and not isinstance(given, bytes) and names


def _iterable(given: Any) -> bool:
    iter(given)  # arrays without axes have the method, and it raises
    return isinstance(given, Iterable)


_TEXT = _Rule("text", (str,), lambda given: isinstance(given, str))
_PATH = _Rule("a path", (str,), lambda given: isinstance(given, str | PathLike))
_VALUES = _Rule("values by name", (), _mapping)
_RULES: dict[str, _Rule] = {
    "None": _Rule("", (type(None),)),
    "float": _Rule("a number", (float,), _number),
    "int": _Rule("a whole number", (), _whole),
    "bool": _Rule("True or False", (bool,), _truth),
    "str": _TEXT,
    "Literal": _TEXT,
    "Start": _TEXT,
    "Callable": _Rule("a function", (), callable),
    "PathLike": _PATH,
    "os.PathLike": _PATH,
    "Mapping": _VALUES,
    "Options": _VALUES,
    "Sequence": _Rule("a list", (list, tuple), _collection),
    "Iterable": _Rule("a list", (list, tuple), _iterable),
    "Trajectory": _Rule("a trajectory", (), lambda given: type(given).__name__ == "Trajectory"),
}
