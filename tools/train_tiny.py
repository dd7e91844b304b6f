"""The whole loop of training through the site, from nothing: database, worker, datasets, six runs.

    make train-tiny [SEED=1] [PALATE_HOME=folder]

A worker of its own takes the jobs, as in production; without PALATE_HOME everything lies in
a temporary folder. Ends with 1 where the policy did not learn whom it answers.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.procfile import running  # noqa: E402 - the path comes first

PREFIX = "Tiny"


def set_environment(home: str) -> None:
    """Two devices: both cores train at once, one thread each."""
    os.chdir(ROOT)
    defaults = {
        "PALATE_HOME": home,
        "PALATE_DEMO": "1",
        "PALATE_DEVICES": "one,two",
        "RUN_WATCH_SECONDS": "1",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "LOG_LEVEL": "WARNING",
        "OPENBLAS_NUM_THREADS": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def work(seed: int, *, short: bool) -> int:
    import django
    from django.core.management import call_command

    django.setup()
    began = time.monotonic()
    call_command("migrate", interactive=False, verbosity=0)
    from training.demo import tiny
    from webapp.accounts.enums import Role
    from webapp.accounts.models import User
    from webapp.accounts.services import create_user

    if not User.objects.filter(role=Role.ADMIN).exists():
        create_user(username="tiny", password=os.urandom(12).hex(), role=Role.ADMIN)
    try:
        with running(("worker", "beat")):
            loop = tiny.train(seed=seed, short=short, prefix=f"{PREFIX} {seed}")
    except tiny.StageFailed as failed:
        print(failed)
        return 1
    print(*tiny.table(loop), sep="\n")
    print(f"everything: {time.monotonic() - began:.0f} s")
    return 0 if short or tiny.outcome(loop).learned else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="a few steps of everything")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palate-tiny-") as folder:
        set_environment(os.environ.get("PALATE_HOME") or folder)
        return work(options.seed, short=options.short)


if __name__ == "__main__":
    sys.exit(main())
