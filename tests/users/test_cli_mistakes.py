"""Whatever is typed: words and an exit code, never a traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import axode as ax
from axode.cli import main, run


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path_factory, monkeypatch):
    """A folder with files that are no mechanisms."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "binary.toml").write_bytes(b"\x7fELF\0\1\2")
    (folder / "latin.toml").write_bytes(b'name = "caf\xe9"\n')
    (folder / "syntax.toml").write_text("name = [\n")
    (folder / "wrong.toml").write_text('name = "w"\n[body.a]\nmass = nan\ninertia = [1, 1, 9]\n')
    (folder / "folder").mkdir()
    (folder / "arm.urdf").write_text('<robot name="arm"><link name="a"/></robot>')
    (folder / "broken.axm").write_bytes(b"axode-model\n\0\0")
    (folder / "words.csv").write_text("time,theta1\n0,0\n1,x\n")
    (folder / "ragged.csv").write_text("time,theta1\n0,0\n1\n")
    (folder / "timeless.csv").write_text("theta1\n0\n")
    (folder / "few.csv").write_text("time,theta1\n0,0\n1,0.1\n")
    (folder / "empty.csv").write_text("")
    (folder / "fake.npz").write_bytes(b"no zip")
    monkeypatch.chdir(folder)
    return folder


MISTAKES = [
    ("check missing.toml", 1, "cannot read missing.toml"),
    ("export unicycle --to c", 2, "'c' is the ending of a file; name it model.c"),
    ("export unicycle --to folder/FMU", 2, "name it folder/model.fmu"),
    ("check folder", 1, "Is a directory"),
    ("check binary.toml", 1, "not a text file"),
    ("check latin.toml", 1, "not UTF-8"),
    ("check syntax.toml", 1, "not valid TOML"),
    ("check wrong.toml", 1, "has 3 problems"),
    ("check broken.axm", 1, "compiled model"),
    ("check unicycel", 1, "Did you mean 'unicycle'?"),
    ("check folder/../wrong", 1, "Did you mean folder/../wrong.toml?"),
    ("check wrong.toml --option base=floating", 1, "base='floating' is for URDF files"),
    ("check wrong.toml --option legs=8", 1, "has no option 'legs'"),
    ("check arm.urdf --option base=[1]", 1, "base must be 'fixed', 'floating' or 'planar'"),
    ("check unicycle --option legs=8", 1, "has no parameter 'legs'"),
    ("check unicycle --option legs", 2, "'legs' is not NAME=VALUE"),
    ("check unicycle --option m=1,m=2", 2, "'m' is given twice"),
    ("check unicycle --option name=x", 1, "cannot be built with name='x'"),
    ("check mecanum_platform --option wheels=4", 1, "cannot be built with wheels=4"),
    ("check cooperating_arms --option joints=many", 1, "joints"),
    ("simulate broken.axm --option base=fixed", 2, "is built already"),
    ("check unicycle --out no/such/folder.json", 1, "cannot write"),
    ("check unicycle --out folder", 1, "cannot write"),
    ("check unicycle --colour", 2, "No such option"),
    ("derive unicycle --formulation newton", 1, "has no formulation 'newton'"),
    ("derive unicycle --independent wheel", 1, "2 independent speeds, 1 were named"),
    ("derive unicycle --latex --part Z", 1, "has no part 'Z'"),
    ("derive unicycle --part Q", 1, "has no part 'Q'"),
    ("derive unicycle --out x.pdf", 2, "should end in .tex"),
    ("derive unicycle --latex --json", 2, "choose one"),
    ("compare unicycle --formulation newton", 1, "has no formulation 'newton'"),
    ("export unicycle --to u.axm --prefix left_", 2, "it is for .c files"),
    ("export unicycle --to u.axm --fmi 3.0", 2, "it is for .fmu files"),
    ("export unicycle --to u.axm --start x=1", 2, "it is for .fmu files"),
    ("export unicycle --to u.axm --input tau_drive=t", 2, "it is for .c files"),
    ("export unicycle --to u.html", 2, "axode page unicycle --out u.html"),
    ("export unicycle --to u.c --prefix 2nd", 1, "cannot begin a name in C"),
    ("gallery robot", 1, "the gallery has no mechanism 'robot'"),
    ("verify missing.json", 1, "cannot be read"),
    ("verify syntax.toml", 1, "not a file of cases"),
    ("simulate unicycle --time nan", 1, "must be a finite number"),
    ("simulate unicycle --time soon", 2, "--time"),
    ("simulate unicycle --time 1e9 --every 1e-9", 1, "too short at t = 1e+09 s"),
    ("simulate unicycle --start w", 2, "is not NAME=VALUE"),
    ("simulate unicycle --start w=fast", 2, "needs a finite number"),
    ("simulate unicycle --start w=nan", 2, "needs a finite number"),
    ("simulate unicycle --start w=1,w=2", 2, "given twice"),
    ("simulate unicycle --start speed=1", 1, "has no signal 'speed'"),
    ("simulate unicycle --parameter zz=1", 1, "has no parameter 'zz'"),
    ("simulate unicycle --input tau_drive=1/0", 1, "has no value"),
    (
        "simulate unicycle --input tau_drive=__import__('os')",
        1,
        "'__import__' in '__import__('os')' is not known",
    ),
    ("simulate unicycle --input tau_drive=w.w", 1, "'w.w' in 'w.w' is not known"),
    ("simulate unicycle --input tau_drive=[w]", 1, "is not understood"),
    ("simulate unicycle --input torque=1", 1, "has no input 'torque'"),
    ("simulate unicycle --until nothing=1", 1, "has no signal 'nothing'"),
    ("simulate unicycle --method euler", 1, "has no method 'euler'"),
    ("simulate unicycle --step 0.1", 1, "chooses its own steps"),
    ("simulate unicycle --out run.xls", 2, "should end in"),
    ("simulate unicycle --out no/run.csv", 1, "there is no folder"),
    ("simulate unicycle --plot run.txt", 2, "should end in .png"),
    ("simulate broken.axm", 1, "truncated"),
    ("inverse four_bar --motion words.csv", 1, "line 3: 'x' under 'theta1' is not a number"),
    ("inverse four_bar --motion ragged.csv", 1, "line 3: 1 cells for 2 columns"),
    ("inverse four_bar --motion timeless.csv", 1, "has no column 'time'"),
    ("inverse four_bar --motion few.csv", 1, "too few"),
    ("inverse four_bar --motion empty.csv", 1, "is empty"),
    ("inverse four_bar --motion fake.npz", 1, "fake.npz"),
    ("inverse four_bar --motion wrong.toml", 1, "a motion's file ends in"),
    ("inverse four_bar --motion theta1=t", 2, "needs its duration"),
    ("inverse four_bar --motion theta1=t --state theta1=1", 2, "choose one"),
    ("inverse four_bar --out x.csv", 2, "needs --motion or --path"),
    ("inverse four_bar --acceleration w=1", 1, "has no independent speed 'w'"),
    ("inverse four_bar --path circle:radius=1,speed=1", 1, "has no base"),
    ("inverse unicycle --path circle", 2, "circle needs radius"),
    ("inverse unicycle --path oval:radius=1", 1, "has no path 'oval'"),
    ("inverse unicycle --path circle:size=1", 1, "has no value 'size'"),
    ("inverse unicycle --path circle:radius=1,speed=1 --point here", 2, "is not X,Y,Z"),
    ("export unicycle", 2, "Missing option"),
    ("check nofile.axm", 1, "cannot read 'nofile.axm': No such file"),
    ("simulate four_bar --time abc", 2, "expected a number, such as 0.5"),
    ("simulate four_bar --time 1 --every 0", 1, "--every"),
    ("sweep four_bar --output max:theta1", 2, "as in --output top=max:pitch"),
    ("sweep four_bar --samples 1.5e0", 2, "expected a whole number, such as 1000"),
    ("export unicycle --to u.exe", 2, "should end in"),
    ("export unicycle --to u.c --functions fly", 1, "has no function 'fly'"),
    ("export unicycle --to u.axm --functions fly", 1, "has no function 'fly'"),
    ("export unicycle --to u.wasm --functions fly", 1, "has no function 'fly'"),
    ("export unicycle --to u.c --parameters loose", 2, "neither fixed nor free"),
    ("export unicycle --to u.c --rollout rk4", 2, "for .ptx files"),
    ("export unicycle --to u.toml --functions energy", 2, "holds no functions"),
    ("bench unicycle --repeat 0", 2, "--repeat"),
    ("doctor everything", 2, "unexpected extra argument"),
]


@pytest.mark.parametrize(("line", "code", "words"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_told(line, code, words, capsys):
    assert run(line.split()) == code
    shown = capsys.readouterr()
    assert words in " ".join(shown.err.split())
    assert "Traceback" not in shown.err


# names of flags and values that may follow; most lines of them are wrong in some way
WORDS = st.sampled_from(
    [
        "check",
        "derive",
        "gallery",
        "simulate",
        "inverse",
        "export",
        "verify",
        "linearize",
        "--json",
        "compare",
        "bench",
        "--latex",
        "--repeat",
        "--states",
        "--hold",
        "--out",
        "--to",
        "--start",
        "--input",
        "--time",
        "--state",
        "--motion",
        "--path",
        "--method",
        "--formulation",
        "--columns",
        "--until",
        "--parameter",
        "--functions",
        "--help",
        "--version",
        "chaplygin_sleigh",
        "chaplygin_sleigh",
        "unicycel",
        "folder",
        "binary.toml",
        "wrong.toml",
        "broken.axm",
        "words.csv",
        "x.csv",
        "x.c",
        "x.tex",
        "x.json",
        "no/x.csv",
        "0.01",
        "-1",
        "nan",
        "1e400",
        "v=1",
        "v=",
        "=",
        "v=1,v=2",
        "omega=sin(",
        "theta=t",
        "a=0",
        "rk4",
        "lagrange",
        "I",
        "energy",
        "circle:radius=1,speed=1",
        "",
        " ",
        "-",
        "--",
        "\u00e9",
        "\0",
        "[red]",
        "%s",
        "{}",
    ]
)


@pytest.mark.slow
@given(st.lists(WORDS, max_size=6))
@settings(max_examples=80)
@example(["simulate", "chaplygin_sleigh", "--time", "0.01", "--start", "v=1", "--out", "x.csv"])
@example(["check", "\0"])
@example(["inverse", "chaplygin_sleigh", "--state", "v=1", "--json"])
def test_whatever_is_typed_ends_with_words(arguments):
    sink = io.StringIO(), io.StringIO()
    own = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = sink
    try:
        code = run(arguments)
    finally:
        sys.stdout, sys.stderr = own
    told = sink[1].getvalue()
    assert code in (0, 1, 2)
    assert "Traceback" not in told
    assert code == 0 or told or not arguments, f"{arguments} ends with {code} and no word"
    if code == 0 and "--json" in arguments and not {"--help", "--version"} & set(arguments):
        json.loads(sink[0].getvalue())


def test_an_output_that_cannot_be_written_is_told(capfd):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    for arguments in (["check", "chaplygin_sleigh", "--out", "/dev/full"],):
        assert run(arguments) == 1
        assert "No space left on device" in capfd.readouterr().err


FOREIGN = [
    ("check chaplygin_sleigh --out notes.txt", "notes.txt"),
    ("check chaplygin_sleigh --out image.json", "image.json"),
    ("derive chaplygin_sleigh --out paper.tex", "paper.tex"),
    ("export chaplygin_sleigh --to main.c", "main.c"),
    ("export chaplygin_sleigh --to own.c", "own.h"),
    ("export chaplygin_sleigh --to pyproject.toml", "pyproject.toml"),
    ("export chaplygin_sleigh --to notes.axm", "notes.axm"),
    ("simulate chaplygin_sleigh --out table.csv", "table.csv"),
    ("simulate chaplygin_sleigh --plot figure.svg", "figure.svg"),
    ("linearize wheeled_pendulum --out data.npz", "data.npz"),
    ("report chaplygin_sleigh --out page.html", "page.html"),
    ("report chaplygin_sleigh --time 0", "chaplygin_sleigh.html"),
]


@pytest.mark.parametrize(("command", "name"), FOREIGN)
def test_files_of_other_kinds_are_not_overwritten(somewhere_else, capfd, command, name):
    (somewhere_else / name).write_text("A year of work, of some other kind.\n")
    assert run(command.split()) == 1
    assert f"'{name}' is there already and holds something else" in capfd.readouterr().err
    assert (somewhere_else / name).read_text() == "A year of work, of some other kind.\n"


def test_json_does_not_take_the_place_of_a_mechanism(somewhere_else, capfd):
    assert run(["check", "wrong.toml", "--out", "wrong.toml"]) == 2
    assert "should end in .json" in capfd.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "check chaplygin_sleigh --out a.json",
        "derive chaplygin_sleigh --out a.tex",
        "export chaplygin_sleigh --to a.c",
        "export chaplygin_sleigh --to a.toml",
        "export chaplygin_sleigh --to a.axm",
        "export chaplygin_sleigh --to a.ptx",
        "simulate chaplygin_sleigh --time 0.1 --out a.csv",
        "simulate chaplygin_sleigh --time 0.1 --out a.npz",
        "simulate chaplygin_sleigh --time 0.1 --out a.parquet",
        "linearize wheeled_pendulum --out a.json",
    ],
)
def test_own_files_are_overwritten(capfd, command):
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    for _ in range(2):
        assert run(command.split()) == 0, capfd.readouterr().err


def piped(command: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -P -c 'from axode.cli import main; main()'"
    source = os.path.dirname(os.path.dirname(ax.__file__))
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        ["bash", "-c", command.replace("axode", program)],
        text=True,
        capture_output=True,
        env=environment,
    )


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_fault():
    shown = piped("axode gallery | head -1; axode gallery | true")
    assert shown.stdout == "four_bar             planar four-bar linkage\n"
    assert shown.stderr == ""
    if os.path.exists("/dev/full"):
        shown = piped("axode gallery > /dev/full")
        assert shown.returncode == 1
        assert shown.stderr == "FileError: No space left on device\n"


def test_main_leaves_with_the_exit_code(capsys, monkeypatch):
    # else Ctrl-C ends this process from now on, and other tests press it
    monkeypatch.setattr("axode.cli.interruption.listen", lambda: None)
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"axode {ax.__version__}\n"
    with pytest.raises(SystemExit) as left:
        main(["check", "folder"])
    assert left.value.code == 1


def test_control_c_is_130_and_keeps_what_was_computed(somewhere_else, monkeypatch, capsys):
    from axode.problems.simulate import simulate

    def interrupted(runs, look):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate.Runs, "advance", interrupted)
    flags = ["--time", "5000", "--start", "v=1,omega=1", "--out", "part.csv"]
    assert run(["simulate", "chaplygin_sleigh", *flags]) == 130
    assert "what was computed is kept" in capsys.readouterr().err
    assert (somewhere_else / "part.csv").read_text().startswith("time,x,y,theta")


def test_control_c_elsewhere_is_130(monkeypatch, capsys):
    from axode.mechanism.mechanism import Mechanism

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Mechanism, "derive", interrupted)
    assert run(["check", "chaplygin_sleigh"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
