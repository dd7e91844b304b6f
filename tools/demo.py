"""Prepare a demonstration and run it: web server and worker, until Ctrl-C.

    make demo [PORT=8000] [PALATE_HOME=folder]

Everything may run again without harm: the data stay, and steps that have nothing to do are quick.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shlex
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
START_LIMIT = 60.0
ENDED = threading.Event()
MESSAGES = ROOT / "tools" / "messages.py"


def set_environment() -> None:
    """A demonstration on this machine; what is set already stands."""
    os.chdir(ROOT)
    home = os.environ.get("PALATE_HOME") or str(ROOT / ".palate")
    defaults = {
        "PALATE_HOME": home,
        "PALATE_DEMO": "1",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "LOG_LEVEL": "WARNING",
        "HOST": "127.0.0.1",
        "PORT": "8000",
        "OPENBLAS_NUM_THREADS": "1",  # small matrices: more threads only wait for each other
        "PYTHONUNBUFFERED": "1",
    }
    for name, value in defaults.items():
        if not os.environ.get(name):
            os.environ[name] = value
    Path(os.environ["PALATE_HOME"]).mkdir(parents=True, exist_ok=True)
    bin_folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([bin_folder, os.environ.get("PATH", "")])


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of names, sizes and times: enough to see that something changed."""
    digest = hashlib.sha256()
    for path in sorted(files):
        stat = path.stat()
        digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def once(step: str, key: str) -> bool:
    """True where this step was not yet done for this key. Call `done` after it."""
    stamp = Path(os.environ["PALATE_HOME"]) / f".stamp-{step}"
    return not stamp.exists() or stamp.read_text() != key


def done(step: str, key: str) -> None:
    (Path(os.environ["PALATE_HOME"]) / f".stamp-{step}").write_text(key)


def prepare() -> None:
    """Catalogues, static files, tables, demo data; nothing where the sources did not change."""
    key = prepared_key()
    if is_embedded() and not once("prepared", key):
        return
    compile_messages()
    import django
    from django.core.management import call_command

    django.setup()
    collect_static()
    call_command("migrate", interactive=False, verbosity=0)
    if not is_loop():
        load()
    done("prepared", prepared_key())


def load() -> None:
    from django.core.management import call_command

    call_command("load_demo")
    call_command("load_annotation_demo")
    if trains():
        call_command("load_training_demo", verbosity=0)


def is_loop() -> bool:
    """Whether `make loop` made this folder: it has people and rounds of its own."""
    return (Path(os.environ["PALATE_HOME"]) / "loop-ports.json").exists()


def trains() -> bool:
    """Whether runs can train here: only then are the datasets of the workshop of use."""
    return importlib.util.find_spec("torch") is not None


def prepared_key() -> str:
    return fingerprint(prepared_from()) + (" training" if trains() else "")


def prepared_from() -> list[Path]:
    """The files on which the prepared state depends."""
    patterns = (
        "static/**/*",
        "locale/**/*.[mp]o",
        "*/migrations/*.py",
        "*/*/migrations/*.py",
        "arena/demo/*",
        "annotation/demo/*",
        "training/demo/*",
        "webapp/settings.py",
        "constraints.txt",
    )
    found = [path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()]
    return [path for path in found if path.suffix != ".pyc"]


def is_embedded() -> bool:
    """SQLite with its file in place: nobody but this command takes it away."""
    home = Path(os.environ["PALATE_HOME"])
    return not os.environ.get("DATABASE_URL") and (home / "palate.sqlite3").exists()


def compile_messages() -> None:
    """Make the .mo files, before Django looks for them."""
    if not MESSAGES.exists():
        return
    sources = list(ROOT.glob("locale/*/LC_MESSAGES/*.po"))
    made = all(path.with_suffix(".mo").exists() for path in sources)
    key = fingerprint([*sources, MESSAGES])
    if not made or once("messages", key):
        import subprocess

        subprocess.run([sys.executable, str(MESSAGES), "compile"], check=True)
        done("messages", key)


def collect_static() -> None:
    """Copy, hash and compress the static files where they changed."""
    from django.conf import settings
    from django.core.management import call_command

    files = [path for path in (ROOT / "static").rglob("*") if path.is_file()]
    key = fingerprint([*files, ROOT / "constraints.txt"])
    if once("static", key) or not Path(settings.STATIC_ROOT, "staticfiles.json").exists():
        ignored = ["rest_framework"]  # pages that this API does not have
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=ignored)
        done("static", key)


def address() -> str:
    return f"http://{os.environ['HOST']}:{os.environ['PORT']}"


def announce_when_ready() -> None:
    """Print the address and the logins once the web server answers, not before."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline and not ENDED.is_set():
        if is_healthy():
            from arena.demo.people import DEMO_LOGINS, DEMO_PASSWORD, LOOP_LOGINS

            logins = LOOP_LOGINS if is_loop() else DEMO_LOGINS
            lines = [f"  {name:<10} {role}" for name, role in logins]
            print(
                f"\nPalate is ready: {address()}\n\n"
                f"Demo logins, all with the password {DEMO_PASSWORD} (never use them elsewhere):\n"
                + "\n".join(lines)
                + "\n\nCtrl-C stops it. The data stay in "
                + os.environ["PALATE_HOME"]
                + "\n",
                flush=True,
            )
            return
        time.sleep(0.1)
    if not ENDED.is_set():
        print(f"The web server does not answer at {address()}/healthz.", flush=True)


def is_healthy() -> bool:
    request = urllib.request.Request(f"{address()}/healthz")  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=2) as response:  # noqa: S310
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def port_is_taken() -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((os.environ["HOST"], int(os.environ["PORT"])))
        except OSError:
            return True
    return False


def run() -> int:
    """Start what the Procfile lists and stay until all of it has ended."""
    from honcho.environ import parse_procfile
    from honcho.manager import Manager

    manager = Manager()
    processes = parse_procfile((ROOT / "Procfile").read_text()).processes
    keep = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'tools' / 'keep.py'))}"
    for name, command in processes.items():
        manager.add_process(name, f"{keep} {name} {command}", env=os.environ.copy())
    threading.Thread(target=announce_when_ready, daemon=True).start()
    manager.loop()
    ENDED.set()
    return int(manager.returncode or 0)


def main() -> int:
    set_environment()
    if port_is_taken():
        print(f"Port {os.environ['PORT']} is taken. Choose another: make demo PORT=8001")
        return 1
    with (Path(os.environ["PALATE_HOME"]) / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"{os.environ['PALATE_HOME']} is in use by another demo; set PALATE_HOME.")
            return 1
        prepare()
        code = run()
    return 0 if code in (0, 130, 143) else code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
