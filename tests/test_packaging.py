"""The package holds what the repository holds: links, lists, sdist, wheel."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import cim_opt
from cim_opt.tools.universe import CIM_UNIVERSE

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "cim_opt"
DATA_SUFFIXES = {".py", ".typed", ".toml", ".json", ".mlir"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked() -> list[Path]:
    """Every file that git knows, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [Path(name) for name in listing.split("\0") if name]


def top_level_packages() -> set[str]:
    """The folders at the top that are parts of cim_opt."""
    return {path.parent.name for path in ROOT.glob("*/__init__.py")}


def links() -> set[str]:
    return {path.name for path in SOURCE.iterdir() if path.is_symlink()}


def test_every_package_has_its_link() -> None:
    assert links() == top_level_packages()
    for name in links():
        assert (SOURCE / name).readlink() == Path("..", "..", name)


def test_the_type_checker_enters_every_package() -> None:
    prefix = "src/cim_opt/"
    included = {name.removeprefix(prefix) for name in PROJECT["tool"]["pyright"]["include"]}
    plain_files = {path.name for path in SOURCE.glob("*.py")}
    assert included == top_level_packages() | plain_files | {"tests"}
    assert PROJECT["tool"]["pyright"]["typeCheckingMode"] == "strict"


def test_the_linter_sees_every_file_once() -> None:
    excluded = set(PROJECT["tool"]["ruff"]["extend-exclude"])
    assert excluded == {f"src/cim_opt/{name}" for name in links()}


def test_entry_points_are_installed() -> None:
    scripts = entry_points(group="console_scripts")
    for name, where in PROJECT["project"]["scripts"].items():
        assert scripts[name].value == where
    (universe,) = (p for p in entry_points(group="xdsl.universe") if p.name == "cim_opt")
    assert universe.load() is CIM_UNIVERSE


def test_version_is_that_of_the_project() -> None:
    assert cim_opt.__version__ == PROJECT["project"]["version"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cim_opt.nothing


def test_no_top_level_module_leaks() -> None:
    code = (
        "from importlib.util import find_spec; import sys; "
        f"sys.exit(any(find_spec(name) for name in {sorted(top_level_packages())}))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd="/").returncode == 0


def test_a_checkout_without_links_says_so(tmp_path: Path) -> None:
    package = tmp_path / "cim_opt"
    package.mkdir()
    (package / "__init__.py").write_text((SOURCE / "__init__.py").read_text())
    # git writes the target of a link as a plain file where there are no links.
    (package / "dialects").write_text("../../dialects")
    result = subprocess.run(
        [sys.executable, "-c", "import cim_opt"], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "ImportError: cim_opt was installed from a checkout without symbolic" in result.stderr
    assert "git config core.symlinks true" in result.stderr


IMPORT = re.compile(r"^\s*(?:from|import)\s+(\.|\w+)", re.MULTILINE)


def test_imports_are_absolute() -> None:
    parts = top_level_packages()
    for path in tracked():
        if path.suffix == ".py" and path.parts[0] in parts | {"src"}:
            wrong = {name for name in IMPORT.findall((ROOT / path).read_text())} & (parts | {"."})
            assert not wrong, f"{path} imports {wrong} without cim_opt in front"


def packaged_paths() -> set[str]:
    """The paths in a wheel of every tracked file that belongs in it."""
    parts = top_level_packages()
    found: set[str] = set()
    for path in tracked():
        if path.suffix not in DATA_SUFFIXES:
            continue
        if path.parts[0] in parts:
            found.add(str(Path("cim_opt", path)))
        elif path.parts[:2] == ("src", "cim_opt"):
            found.add(str(path.relative_to("src")))
    return found


def assert_runs(wheel: Path, folder: Path) -> None:
    """cim-opt works from the files of the wheel, with nothing of the checkout in reach."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    code = (
        "import cim_opt, sys; from cim_opt.tools.cim_opt import main; "
        "print(cim_opt.__file__); sys.exit(main(['-p', 'dce']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        input="func.func @f() {\n  func.return\n}\n",
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{folder / 'cim_opt' / '__init__.py'}\nbuiltin.module {{\n")


def test_wheel_built_from_sdist_holds_what_git_holds(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    # A copy of what git tracks, as it is now: no build products, no untracked files.
    listing = b"\0".join(str(path).encode() for path in tracked())
    checkout.mkdir()
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-"],
        cwd=ROOT,
        input=listing,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=checkout, input=archive, check=True)
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(checkout)]
    result = subprocess.run(build, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr

    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if name.startswith("cim_opt/")}
    assert names == packaged_paths()
    assert_runs(wheel, tmp_path / "installed")
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        assert all(not member.issym() for member in file.getmembers())
