"""Words and names that the package does not use, found in its source without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from house.tree import nodes

# What text may not hold, and what to write instead. `a` for `per` is caught only after words that
# are counted, since "a run" is otherwise good English.
_COUNTED = (
    "array|arrays|bytes|calls|colour|column|columns|evaluation|file|files|frames|function|lanes|"
    "metres|module|modules|number|numbers|one|operations|places|registers|rows|runs|samples|sizes|"
    "steps|test|tests|threads|two|three|four|five|six|vectors"
)
_UNITS = (
    "block|file|function|group|inch|input|instruction|joint|kernel|lane|leg|limb|number|output|panel|"
    "pixel|"
    "port|robot|row|run|sample|second|signal|step|target|thread|vector|verb|wheel"
)
TEXT = {
    re.compile(rf"\b(?:{_COUNTED})`?\s+an?\s+(?:{_UNITS})\b"): "per",
    re.compile(r"\b[Tt]old\b|\btells?\s+of\b"): "reported, given, printed",
    re.compile(r"\bsays?\s+so\b"): "raises, warns, prints",
    re.compile(r"\bthe\s+user's\s+words\b"): "the names that the user gave",
    re.compile(r"\bstrangers?\b"): "what it is: an unknown name, an unrelated file",
    re.compile(r"\bguilty\b"): "the cause",
    re.compile(r"\bby\s+(?:their|its)\s+grace\b|\bendless\b"): "what the code does",
    re.compile(r"\bchords?\b"): "loop closure",
    re.compile(r"\bthat there (?:is|are) not\b"): "unknown",
    re.compile(r"\b(?:nobody|somebody|whoever)\b"): "no user, another process, the caller",
    re.compile(r"\b[Mm]end(?:s|ed|ing)?\b"): "fix, restore",
    re.compile(r"\b(?:afresh|anew)\b"): "again",
    re.compile(r"\bworth (?:it|anything|telling)\b"): "what is saved",
    re.compile(r"\b[Dd]o something\b"): "the name of the callback",
    re.compile(r"\bof so many\b|\bfor want of\b|\bif there is any\b"): "what it is",
    re.compile(r"\btells\b|\b[Tt]ell (?:apart|how|once|what|where|whether|which|why)\b"): (
        "gives, reports, determines"
    ),
    re.compile(r"\bcannot tell\b"): "does not determine",
    re.compile(r"\b[Ll]ook(?:s|ed)? once\b"): "check once",
    re.compile(r"\b(?:had better|may as well|becomes of)\b"): "should, can, happens to",
    re.compile(r"\bgo(?:es)? in step\b"): "in lockstep",
}
# How a docstring may not begin: with a verb, or with what is returned, instead.
BEGINNING = re.compile(r"(?:Of|It|Whether|The same)\b")
# An entry of Args or Attributes that is a fragment: "sizes: Of those ports."
ENTRY = re.compile(r"^ *\*{0,2}\w+(?:, \w+)*: Of\b", re.MULTILINE)
NAMES = {
    re.compile(r"_AN?_[A-Z]"): "PER",
    re.compile(r"_an?_(?:second|run|step|number|row|thread|sample)\b"): "per",
    re.compile(r"^_?(?:told|tell|came|judged|settled|recorded|taken|taken_out)$"): "a verb",
    re.compile(r"^_?(?:held|given)(?:_|$)"): "what it is: locked, prescribed, fixed, default",
    re.compile(r"shortfall|unfelt|takeover|^_?notices?$"): "deficit, without effect, warnings",
    re.compile(
        r"^_?(?:HERE|NOTHING|LITTLE|ELSEWHERE|ANYWHERE|GIVEN|HELD|PERHAPS|SOON)(?:_|$)"
    ): "what the number is for",
}
# Files are named by what they hold, not by what happens in them.
FILES = {
    "cutting",
    "different_runs",
    "lifting",
    "notices",
    "passing",
    "released",
    "replacing",
    "shortfall",
    "takeover",
    "wording",
}


def wrong_words(source: str) -> list[str]:
    """List what a reader would stumble over, with lines."""
    found = [*_wrong_text(source), *_wrong_docstrings(source), *_wrong_names(source)]
    return [f"line {line}: {fault}" for line, fault in sorted(set(found))]


def _wrong_text(source: str) -> Iterator[tuple[int, str]]:
    for pattern, instead in TEXT.items():
        for match in pattern.finditer(source):
            line = source.count("\n", 0, match.start()) + 1
            yield line, f"'{' '.join(match[0].split())}', write {instead}"


def _wrong_docstrings(source: str) -> Iterator[tuple[int, str]]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in nodes(source):
        text = ast.get_docstring(node) if isinstance(node, documented) else None
        line = getattr(node, "lineno", 1)
        if text and BEGINNING.match(text):
            yield line, f"the docstring '{text[:30]}...' begins with no verb and no noun"
        for entry in ENTRY.findall(text or ""):
            yield line, f"'{entry.strip()}...' is a fragment, name the thing first"


def _wrong_names(source: str) -> Iterator[tuple[int, str]]:
    for node in nodes(source):
        if not _is_defined(node):
            continue
        name = getattr(node, "name", None) or getattr(node, "id", "")
        for pattern, instead in NAMES.items():
            if pattern.search(name):
                yield node.lineno, f"'{name}', name it by {instead}"


def _is_defined(node: ast.AST) -> bool:
    is_constant = isinstance(node, ast.Name) and node.id.isupper()
    if is_constant and isinstance(node.ctx, ast.Store):
        return True
    return isinstance(node, ast.FunctionDef | ast.ClassDef)
