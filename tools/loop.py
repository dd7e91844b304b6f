"""The whole loop, from an empty database to a second policy, on the CPU of one machine.

    make loop [SEED=1] [PALATE_HOME=folder] [MODEL=smollm2]

Starts the processes of the Procfile and plays everybody: annotators who label pairs, seed users who
vote, two administrators who launch, read, promote and unseal. With PALATE_HOME the database stays,
and a loop that was killed goes on where it was; without, everything lies in a temporary folder.
Ends with 1 where the loop did not come out as it should. With MODEL=smollm2 a real small language
model is trained by rules instead of the toy one (docs/smol-loop.md).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.procfile import running  # noqa: E402 - the path comes first

STARTING = 60.0
TINY, SMOLLM2 = "tiny", "smollm2"


def set_environment(home: str, model: str) -> None:
    """Embedded defaults. Toys train two at once, one thread each; a real model has both cores."""
    os.chdir(ROOT)
    Path(home).mkdir(parents=True, exist_ok=True)
    ports = kept_ports(Path(home))
    defaults = {
        "PALATE_HOME": home,
        "PALATE_DEMO": "1",
        "PALATE_DEVICES": "local" if model == SMOLLM2 else "one,two",
        "RUN_WATCH_SECONDS": "1",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "LOG_LEVEL": "WARNING",
        "OPENBLAS_NUM_THREADS": "1",
        "HOST": "127.0.0.1",
        "PORT": str(ports["web"]),
        "LOOP_MODEL_PORT": str(ports["model"]),
        "OUTBOUND_ALLOW": "127.0.0.1",
        "API_RATE_USER": "100000/min",  # programs are quicker than people
        "PYTHONUNBUFFERED": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def kept_ports(home: Path) -> dict[str, int]:
    """The same ports whenever this folder is used: a contestant names one of them."""
    path = home / "loop-ports.json"
    if not path.exists():
        path.write_text(json.dumps({"web": free_port(), "model": free_port()}))
    found: dict[str, int] = json.loads(path.read_text())
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_for_site(address: str) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5):  # noqa: S310 - our own
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"The web server at {address} did not answer within {STARTING:.0f} s.")


def prepare() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


def work(options: argparse.Namespace) -> int:
    began = time.monotonic()
    prepare()
    address = f"http://127.0.0.1:{os.environ['PORT']}"
    with running():
        wait_for_site(address)
        return played(options, address, began)


def played(options: argparse.Namespace, address: str, began: float) -> int:
    from training.demo.loop import report, smol_report
    from training.demo.loop.play import Play, play
    from training.demo.loop.smol import play_smol
    from training.demo.tiny import StageFailed

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    port = int(os.environ["LOOP_MODEL_PORT"])
    it = Play(address, options.seed, port, short=options.short, say=say)
    try:
        (play_smol if options.model == SMOLLM2 else play)(it)
    except StageFailed as failed:
        print(failed)
        return 1
    told: Any = smol_report if options.model == SMOLLM2 else report
    found: dict[str, Any] = told.facts(it)
    print(*told.lines(found), sep="\n")
    print(f"everything: {time.monotonic() - began:.0f} s")
    Path(os.environ["PALATE_HOME"], "loop.json").write_text(json.dumps(found, indent=1))
    return 0 if options.short or not found["missed"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="a few steps of everything")
    parser.add_argument("--model", choices=(TINY, SMOLLM2), default=TINY)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palate-loop-") as folder:
        set_environment(os.environ.get("PALATE_HOME") or folder, options.model)
        return work(options)


if __name__ == "__main__":
    sys.exit(main())
