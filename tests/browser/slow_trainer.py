"""The trainer of the browser tests: obeys the run directory, trains nothing, takes some seconds."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.training import fake_trainer

if __name__ == "__main__":
    fake_trainer.options = lambda note: {"steps": "600", "pause": "0.2"}
    sys.exit(fake_trainer.main(Path(sys.argv[2])))
