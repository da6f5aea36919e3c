"""Who imports whom, read from the source without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from house.tree import PACKAGE, parsed, sources

# The pipeline. A folder may import itself and what stands before it; types may come from anywhere.
# What a method calls of a later folder goes by `axode.stages`.
ORDER = (
    "errors",
    "names",
    "stages",
    "argument_types",
    "numerics",
    "disk",
    "runtime",
    "mechanism/values",
    "mechanism/elements",
    "mechanism",
    "mechanism/scene",
    "mechanism/files",
    "oracle",
    "symbolic/algebra",
    "symbolic/joints",
    "symbolic/tree",
    "symbolic/wheels",
    "symbolic/constraints",
    "symbolic/formulations",
    "symbolic/analysis",
    "symbolic",
    "codegen",
    "codegen/tape",
    "codegen/math",
    "codegen/lowering",
    "codegen/targets",
    "derivatives",
    "printing",
    "printing/derivation",
    "model",
    "model/wrappers",
    "results",
    "problems",
    "problems/inputs",
    "problems/contacts",
    "problems/steps",
    "problems/runs",
    "problems/singular",
    "problems/assemble",
    "problems/inverse",
    "problems/linearize",
    "problems/simulate",
    "problems/contact_events",
    "problems/stepping",
    "problems/gradients",
    "problems/feasible",
    "problems/sweep",
    "exports",
    "kinematics/polynomials",
    "kinematics/workspaces",
    "kinematics/reaching",
    "kinematics/velocities",
    "kinematics",
    "kinematics/postures",
    "motions",
    "cooperation",
    "formats/xml",
    "formats/written",
    "formats/meshes",
    "formats/xacro",
    "formats/urdf",
    "formats/mjcf",
    "formats/sdf",
    "formats",
    "motors",
    "design",
    "ros",
    "show",
    "show/render",
    "show/plot",
    "show/viewer",
    "show/web",
    "show/live",
    "show/logs",
    "show/report",
    "literature",
    "literature/acceptance",
    "literature/reproduce",
    "cli",
)

# Packages that a folder knows nothing of, not even inside a function.
FORBIDDEN = {
    "errors": {"numpy", "casadi", "llvmlite"},
    "names": {"numpy", "casadi", "llvmlite"},
    "numerics": {"casadi", "llvmlite"},
    "runtime": {"casadi", "llvmlite"},
    "mechanism": {"casadi", "llvmlite"},
    "oracle": {"casadi", "llvmlite"},
    "symbolic": {"llvmlite"},
    "derivatives": {"llvmlite"},
    "printing": {"llvmlite"},
    "exports": {"llvmlite"},
    "model": {"llvmlite"},
    "problems": {"llvmlite"},
    "kinematics": {"llvmlite"},
    "motions": {"llvmlite"},
    "cooperation": {"llvmlite"},
    "design": {"casadi", "llvmlite"},
    "ros": {"casadi", "llvmlite"},
    "results": {"casadi", "llvmlite"},
    "formats": {"casadi", "llvmlite"},
    "show": {"casadi", "llvmlite"},
    "cli": {"casadi", "llvmlite"},
    "gallery": {"casadi", "llvmlite"},
}

# Extras and peers, imported when used so that a plain installation starts.
WHEN_USED = {
    "matplotlib",
    "viser",
    "av",
    "PIL",
    "control",
    "cupy",
    "pandas",
    "pyarrow",
    "sympy",
    "xarray",
    "mcap",
    "rerun",
    "pinocchio",
    "mujoco",
    "torch",
    "jax",
    "xacro",
    "xacrodoc",
}


@dataclass(frozen=True)
class Import:
    """One imported module: its dotted name, its line, and when it is imported."""

    module: str
    line: int
    lazy: bool = False  # when a function is called
    typed: bool = False  # never, but by type checkers


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports of a module, relative ones made absolute."""
    package = module if is_package else module.rpartition(".")[0]
    yield from _walk(parsed(source), package)


def _walk(
    node: ast.AST, package: str, *, lazy: bool = False, typed: bool = False
) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, lazy, typed)
    elif isinstance(node, ast.ImportFrom):
        origin = _origin(node, package)
        for alias in node.names:
            yield Import(f"{origin}.{alias.name}", node.lineno, lazy, typed)
    elif isinstance(node, ast.If) and _is_type_checking(node.test):
        for child in node.body:
            yield from _walk(child, package, lazy=True, typed=True)
        for child in node.orelse:
            yield from _walk(child, package, lazy=lazy, typed=typed)
    else:
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, package, lazy=inside, typed=typed)


def _origin(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def wrong_arrows(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Sentences about the imports of one module that the pipeline does not allow."""
    found = (
        f"line {item.line}: {fault}"
        for item in imports(source, module, is_package=is_package)
        if (fault := _fault(module, is_package, item))
    )
    return list(dict.fromkeys(found))


def folder(module: str, *, is_package: bool = False) -> str:
    """Folder of a module in `ORDER`, at most two deep; a module of its own at the top."""
    parts = module.split(".")[1:]
    depth = min(2, len(parts) if is_package else max(1, len(parts) - 1))
    return "/".join(parts[:depth])


def _fault(module: str, is_package: bool, item: Import) -> str:
    home = folder(module, is_package=is_package)
    top, _, rest = item.module.partition(".")
    if top == "axode":
        return "" if item.typed else _own_fault(home, rest)
    stage = home.split("/")[0]
    if top in FORBIDDEN.get(stage, ()):
        return f"{stage} knows nothing of {top}, not even inside a function"
    if top in WHEN_USED and not item.lazy:
        return f"{top} is optional: import it inside the function that uses it"
    return ""


def _own_fault(home: str, name: str) -> str:
    if home in ("", "__main__"):  # the public names may come from anywhere
        return ""
    other = next((known for known in _folders(name) if known in (*ORDER, "gallery")), "")
    if home == "gallery":  # written as users write: the public names and the description
        allowed = ("", "gallery", "errors", "argument_types")
        fits = other in allowed or other.startswith("mechanism")
        return "" if fits else f"gallery describes and does not import {other}"
    if home not in ORDER:
        return f"{home} has no place in the pipeline: add it to ORDER in tests/house/arrows.py"
    if not other:
        return f"{home} imports axode.{name}: name the module that holds it"
    if other == "gallery":
        return "" if home.startswith(("literature", "cli")) else f"{home} imports the gallery"
    if ORDER.index(other) <= ORDER.index(home):
        return ""
    return f"{home} imports {other}, which comes later; call it by axode.stages"


def _folders(name: str) -> Iterator[str]:
    """Folders that an imported name may stand in, innermost first."""
    for path in _modules():
        if name == path or name.startswith(f"{path}."):
            yield folder(f"axode.{path}", is_package=_modules()[path])
            return
    parts = name.split(".")
    yield "/".join(parts[:2])
    yield parts[0]


@cache
def _modules() -> dict[str, bool]:
    """Modules of the package, longest names first, and whether each is a folder."""
    found = {}
    for path in sources():
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if is_package else parts)] = is_package
    found.pop("")
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))
