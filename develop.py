#!/usr/bin/env python3
"""Set up everything in .venv and run the main job, or the tests.

python3 develop.py run  [ARGUMENT ...]   the main job: batch sizes 1, 10, 3 on the real scheduler
python3 develop.py test [ARGUMENT ...]   lint, types and all tests but the slow; or pytest with ARGUMENTs
python3 develop.py setup                 nothing more
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
BIN = ENVIRONMENT / "bin"
LOCK = ROOT / "requirements.lock"
STAMP = ENVIRONMENT / "locked"
UV = "uv==0.13.9"
MAIN_JOB = ["toggle-harness", "run", "--batch-sizes", "1,10,3", "--toggle", "warm", "--threshold", "5"]
SUPPORTED = ((3, 11), (3, 12))


def supported_python() -> str:
    """A supported interpreter: this one, or another on the path."""
    if sys.version_info[:2] in SUPPORTED:
        return sys.executable
    for major, minor in reversed(SUPPORTED):
        name = f"python{major}.{minor}"
        if subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0:
            return name
    found = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"needs Python 3.11 or 3.12, found {found}: install one, or run `python3.12 develop.py`")


def set_up() -> None:
    """Install the locked packages; does nothing when they are there already."""
    fingerprint = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if STAMP.is_file() and STAMP.read_text() == fingerprint:
        return
    print("Setting up .venv (about 9 GB, a minute or two) ...", flush=True)
    if sys.version_info[:2] in SUPPORTED:
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    else:
        subprocess.run([supported_python(), "-m", "venv", "--clear", ENVIRONMENT], check=True)
    run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV)
    run("uv", "pip", "install", "--quiet", "--requirements", str(LOCK))
    run("uv", "pip", "install", "--quiet", "--no-deps", "--editable", str(ROOT))
    STAMP.write_text(fingerprint)


def run(program: str, *arguments: str) -> None:
    """Run a program of the environment; its failure is this script's."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = os.environ | {"VIRTUAL_ENV": str(ENVIRONMENT), "PATH": path}
    code = subprocess.run([BIN / program, *arguments], cwd=ROOT, env=environment, check=False).returncode
    if code:
        sys.exit(code)


def test(arguments: list[str]) -> None:
    """All that CI runs."""
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")
    run("mypy")
    run("pytest", "-n", "2", *(arguments or ["-m", "not slow"]))


def main() -> None:
    """Command line."""
    job, *arguments = sys.argv[1:] or ["--help"]
    if job not in ("run", "test", "setup"):
        print(__doc__)
        sys.exit(0 if job == "--help" else 2)
    set_up()
    if job == "run":
        run(*MAIN_JOB, *arguments)
    elif job == "test":
        test(arguments)


if __name__ == "__main__":
    main()
