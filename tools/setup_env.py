"""Make the virtual environment and install what pyproject.toml asks for, pinned by constraints.txt.

    python3 tools/setup_env.py .venv [--training] [--dev]

Runs on the bare standard library. A stamp in the environment holds a hash of what was installed;
while that is unchanged, nothing is done.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


# What each set installs beside the site itself; a later one serves for those before it.
EXTRAS: dict[str, tuple[str, ...]] = {
    "base": (),
    "training": ("training",),
    "dev": ("training", "dev"),
}


def requirements(kind: str) -> list[str]:
    """What pyproject.toml lists for a set."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = list(project["dependencies"])
    for extra in EXTRAS[kind]:
        found += project["optional-dependencies"][extra]
    return found


def fingerprint(wanted: list[str]) -> str:
    parts = [sys.version.split()[0], CONSTRAINTS.read_text(encoding="utf-8"), *sorted(wanted)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_current(folder: Path, kind: str) -> bool:
    """Whether a stamp fits, of this set or of a larger one."""
    if not (folder / "bin" / "python").exists():
        return False
    for name in list(EXTRAS)[list(EXTRAS).index(kind) :]:
        stamp = folder / f"palate-{name}"
        if stamp.exists() and stamp.read_text() == fingerprint(requirements(name)):
            return True
    return False


def install(folder: Path, kind: str) -> None:
    """Create the environment where needed and install into it."""
    if not (folder / "bin" / "python").exists():
        print(f"Making the virtual environment {folder} …", flush=True)
        venv.create(folder, with_pip=True)
    wanted = requirements(kind)
    print(f"Installing {len(wanted)} packages and what they need …", flush=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    command += ["--disable-pip-version-check", "--constraint", str(CONSTRAINTS)]
    torch = [name for name in wanted if name.startswith("torch==")]
    if torch:  # alone and first: what is there already is not replaced by another build
        index = os.environ.get("PALATE_TORCH_INDEX", "")
        subprocess.run([*command, *(["--index-url", index] if index else []), *torch], check=True)
    subprocess.run([*command, *wanted], check=True)
    (folder / f"palate-{kind}").write_text(fingerprint(wanted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--training", action="store_true", help="with torch, to train models")
    parser.add_argument("--dev", action="store_true", help="with what tests and checks need")
    options = parser.parse_args()
    kind = "dev" if options.dev else "training" if options.training else "base"
    if is_current(options.folder, kind):
        return
    try:
        install(options.folder, kind)
    except subprocess.CalledProcessError as error:
        sys.exit(f"pip could not install everything (exit code {error.returncode}); see above.")


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs an older one is told
        sys.exit("Palate needs Python 3.11 or newer. Try: make PYTHON=python3.11 …")
    main()
