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
from typing import Any, TypeVar, cast

from axode.errors import InvalidArgument, UnknownName, shortened, warn_renamed

Function = TypeVar("Function", bound=Callable[..., Any])
Rule = tuple[str, Callable[[Any], object]]  # what is expected, and whether it is that

_OWN_CHECKS = ("threads", "events")  # by the functions, with a remedy
_SECONDS = ("duration", "step", "save_every", "t0", "t1", "t", "dt")


def check_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check the arguments of a function: `check_arguments(f, locals())`, the first line of `f`.

    Raises:
        InvalidArgument: naming the argument, what is expected and what was given.
    """
    for name, rules in _all_rules(function).items():
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
    rules = _option_rules(kind)
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


def _check(name: str, rules: list[Rule], given: Any) -> None:
    for _, fits in rules:
        if _fits(given, fits):
            return
    if rules:
        expected = " or ".join(dict.fromkeys(text for text, _ in rules if text))
        raise InvalidArgument(f"{name}: expected {expected}, got {shortened(given)}")


def _fits(given: Any, fits: Callable[[Any], object]) -> bool:
    try:
        return bool(fits(given))
    except (AttributeError, TypeError, ValueError, OverflowError):
        return False


@functools.cache
def _all_rules(function: Callable[..., Any]) -> dict[str, list[Rule]]:
    parameters = inspect.signature(function).parameters.items()
    found = {name: _rules(name, str(parameter.annotation)) for name, parameter in parameters}
    return {name: rules for name, rules in found.items() if rules}


@functools.cache
def _option_rules(kind: type) -> dict[str, list[Rule]]:
    hints = kind.__annotations__.items()
    return {name: _rules(name, getattr(hint, "__forward_arg__", str(hint))) for name, hint in hints}


def _rules(name: str, annotation: str) -> list[Rule]:
    """Rules for the alternatives of an annotation; none if one of them is not known."""
    if name in _OWN_CHECKS:
        return []
    kinds = [part.strip("' ") for part in _alternatives(annotation)]
    seconds = " of seconds" if name in _SECONDS else ""
    known = {**_RULES, "float": (f"a number{seconds}", _number)}
    if name == "seed":
        known["int"] = ("a whole number >= 0", lambda given: _whole(given) and given >= 0)
    return [known[kind] for kind in kinds] if all(kind in known for kind in kinds) else []


def _alternatives(annotation: str) -> list[str]:
    while "[" in annotation:
        annotation = re.sub(r"\[[^\[\]]*\]", "", annotation)
    return annotation.split("|")


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


def _instance(*kinds: type) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, kinds)


_RULES: dict[str, Rule] = {
    "None": ("", _instance(type(None))),
    "int": ("a whole number", _whole),
    "bool": ("True or False", _truth),
    "str": ("text", _instance(str)),
    "Literal": ("text", _instance(str)),
    "Start": ("text", _instance(str)),
    "Callable": ("a function", callable),
    "PathLike": ("a path", _instance(str, PathLike)),
    "os.PathLike": ("a path", _instance(str, PathLike)),
    "Mapping": ("values by name", _mapping),
    "Options": ("values by name", _mapping),
    "Sequence": ("a list", _collection),
    "Iterable": ("a list", _iterable),
    "Trajectory": ("a trajectory", lambda given: type(given).__name__ == "Trajectory"),
}
