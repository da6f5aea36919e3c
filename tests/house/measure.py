"""Size and entanglement of the package as one table.

Run `PYTHONPATH=tests python -m house.measure` at the project root; `--calls` also runs the README's
program and counts files, modules and Python calls.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

from house.arrows import imports
from house.tree import PACKAGE, ROOT, nodes, parsed, sources

RANK_CALLS = re.compile(r"\b(svd|svdvals|pinv|lstsq|matrix_rank)\(")
# Small numbers that are sizes, pauses and weights: nothing is compared with them.
SIZES = {
    "axode.cli.bench": {"LEAST", "STEP"},
    "axode.cli.interruption": {"YIELD"},
    "axode.gallery.agile_eye": {"THICK"},
    "axode.kinematics.reaching.reach_program": {"POSTURE"},
    "axode.literature.reproduce.manipulator_coupling": {"CONTROL"},
    "axode.problems.contact_events.shares": {"LEASH"},
    "axode.problems.runs.settings": {"DEFAULT_STEP"},
    "axode.show.render.painter": {"CORD"},
    "axode.show.viewer.playing": {"RANGE_CHANGE"},
    "axode.symbolic.algebra.casadi_interrupts": {"RESEND_AFTER"},
}
SMALL = re.compile(r"^_?[A-Z][A-Z_0-9]*$")


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank line, comment or docstring."""
    text = path.read_text()
    held: set[int] = set()
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            held |= set(range(token.start[0], token.end[0] + 1))
    for node in nodes(text):
        value = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            held -= set(range(node.lineno, node.end_lineno + 1))
    return len(held)


def mutual_folders() -> list[tuple[str, str]]:
    """Pairs of second-level folders that import each other, lazily or not, but for types."""
    names = {_module(path) for path in sources()}
    arrows: set[tuple[str, str]] = set()
    for path in sources():
        module, home = _module(path), _folder(path.parent)
        package = path.stem == "__init__"
        for item in imports(path.read_text(), module, is_package=package):
            target = item.module if item.module in names else item.module.rpartition(".")[0]
            if target.startswith("axode") and target in names and not item.typed:
                arrows.add((home, _folder(_path(target).parent)))
    root = PACKAGE.name  # the public names come from anywhere
    return sorted((a, b) for a, b in arrows if root != a < b and (b, a) in arrows)


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _path(module: str) -> Path:
    base = PACKAGE.parent.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _folder(folder: Path) -> str:
    return "/".join(folder.relative_to(PACKAGE.parent).parts[:3])


def functions() -> dict[str, int]:
    """Counts of module functions used once, one-line bodies and long parameter lists."""
    used: Counter[str] = Counter()
    defined: dict[str, int] = defaultdict(int)
    one_line = many = once_lines = 0
    lengths: dict[str, int] = {}
    for path in sources():
        tree = parsed(path.read_text())
        for node in nodes(path.read_text()):
            if isinstance(node, ast.Name | ast.Attribute):
                used[node.id if isinstance(node, ast.Name) else node.attr] += 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                one_line += len(body) == 1 and body[0].lineno == body[0].end_lineno
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                many += len([a for a in arguments if a.arg not in ("self", "cls")]) >= 8
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                defined[node.name] += 1
                lengths[node.name] = node.end_lineno - node.lineno + 1
    once = [name for name, count in defined.items() if count == 1 and used[name] == 1]
    once_lines = sum(lengths[name] for name in once)
    return {
        "module functions used once": len(once),
        "lines of these functions": once_lines,
        "one-line bodies": one_line,
        "functions with 8 or more parameters": many,
    }


def small_constants() -> dict[str, list[str]]:
    """Names of tolerances by module: constants whose value is a number below 1e-2, but sizes."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in parsed(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [t.id for t in targets if isinstance(t, ast.Name) and SMALL.match(t.id)]
                sizes = SIZES.get(_module(path), set())
                if names and _small(node.value) and names[0] not in sizes:
                    found[_module(path)] += names[:1]
    return found


def _small(value: ast.expr) -> bool:
    try:
        number = eval(compile(ast.Expression(value), "", "eval"), {"__builtins__": {}})
    except Exception:
        return False
    return isinstance(number, float) and 0.0 < abs(number) < 1e-2


def calls() -> dict[str, int]:
    """Counts of one run of the README's program in a new process."""
    text = (ROOT / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    command = [sys.executable, "-P", "-c", program + _COUNTED]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


_COUNTED = """
import json, sys
from pathlib import Path

table = {}
loaded = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "axode"]
table["modules loaded by the program"] = len(loaded)
texts = [Path(module.__file__).read_text() for module in loaded]
table["lines of these modules"] = sum(len(text.splitlines()) for text in texts)

def counted(action):
    files, calls = set(), 0
    def see(frame, event, argument):
        nonlocal calls
        if event == "call":
            calls += 1
            if "/axode/" in frame.f_code.co_filename:
                files.add(frame.f_code.co_filename)
    sys.setprofile(see)
    try:
        action()
    finally:
        sys.setprofile(None)
    return len(files), calls

again = lambda: ax.simulate(model, 5.0, start={"pitch": 0.2}, input=balance)
table["files of a second simulate"], table["calls of a second simulate"] = counted(again)
cost = ax.Cost(model, 1.0, start={"pitch": 0.2}, input=balance, running="pitch**2")
first = lambda: ax.gradient(cost)
table["files of a first gradient"], table["calls of a first gradient"] = counted(first)
print(json.dumps(table))
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="run the README's program too")
    options = parser.parse_args()
    pairs = mutual_folders()
    table = {
        "pairs of folders that import each other": len(pairs),
        "files": len(sources()),
        "code lines": sum(code_lines(path) for path in sources()),
        **functions(),
        "tolerance constants": sum(map(len, small_constants().values())),
        "files that call SVD, pinv, lstsq, matrix_rank": sum(
            bool(RANK_CALLS.search(path.read_text())) for path in sources()
        ),
    }
    if options.calls:
        table |= calls()
    for name, value in table.items():
        print(f"{value:8d}  {name}")
    for a, b in pairs:
        print(f"          {a} <-> {b}")


if __name__ == "__main__":
    main()
