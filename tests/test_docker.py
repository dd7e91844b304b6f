"""The containers run what the Procfile runs, serve every queue, and set what settings read."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from tools.procfile import commands
from training.engine.node import PINS

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROCFILE = commands()
OURS = ("setup", "web", "worker", "beat", "gpu")


def words(command: str) -> list[str]:
    """A command without what differs between a machine and a container."""
    found = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word) for word in shlex.split(command)]
    return ["0.0.0.0" if word == "127.0.0.1" else word for word in found]


def queues(command: str) -> set[str]:
    found = shlex.split(command)
    return set(found[found.index("-Q") + 1].split(","))


def test_the_web_server_is_started_as_in_the_procfile() -> None:
    assert words(SERVICES["web"]["command"]) == words(PROCFILE["web"])


def test_worker_beat_and_gpu_share_the_work_of_the_procfiles_worker() -> None:
    """There one worker serves all queues; here none does what another does."""
    served = [queues(SERVICES[name]["command"]) for name in ("worker", "gpu")]
    assert served[0] & served[1] == set()
    assert served[0] | served[1] == queues(PROCFILE["worker"])
    assert served[1] == {"gpu"}
    schedulers = [name for name in OURS if re.search(r" -B\b| beat ", SERVICES[name]["command"])]
    assert schedulers == ["beat"]
    assert words(SERVICES["beat"]["command"]) == words(PROCFILE["beat"])
    assert " -B" not in PROCFILE["worker"]
    app = re.search(r"-A (\S+)", PROCFILE["worker"])
    assert app
    for name in ("worker", "beat", "gpu"):
        assert f"-A {app[1]} " in SERVICES[name]["command"]


def test_every_queue_has_a_worker() -> None:
    routed = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    served = set().union(*(queues(SERVICES[n]["command"]) for n in ("worker", "gpu")))
    assert routed | {settings.CELERY_TASK_DEFAULT_QUEUE} == served


def test_what_is_set_is_read_and_what_must_be_set_is_demanded() -> None:
    read = (ROOT / "webapp/settings.py").read_text("utf-8")
    for name in OURS:
        for variable, value in SERVICES[name]["environment"].items():
            assert f'"{variable}"' in read
            assert (variable == "SECRET_KEY") <= (":?" in value)


def test_folders_that_processes_share_are_volumes_of_all_of_them() -> None:
    shared = SERVICES["web"]["environment"]
    for name in OURS:
        places = {volume.partition(":")[2] for volume in SERVICES[name]["volumes"]}
        assert {shared[v] for v in ("PALATE_HOME", "PALATE_RUNS", "PALATE_MODELS")} <= places
    assert {v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])} == set(
        COMPOSE["volumes"]
    )


@pytest.mark.parametrize("service", ["setup", "gpu"])
def test_images_are_built_from_files_that_are_there(service: str) -> None:
    build = SERVICES[service]["build"]
    file = ROOT / "docker" / build["context"] / build["dockerfile"]
    assert file.resolve().is_file()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists()


def test_the_gpu_node_has_one_set_of_versions() -> None:
    """pyproject, what the node check demands, and what the image installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = {}
    for requirement in project["optional-dependencies"]["gpu"]:
        found = re.fullmatch(r"([a-z-]+)(?:\[\w+\])?(.*)", requirement)
        assert found
        extra[found[1]] = found[2]
    assert {name: extra[name] for name in PINS} == PINS
    from packaging.specifiers import SpecifierSet

    lines = (ROOT / "docker/requirements-gpu.txt").read_text("utf-8").splitlines()
    locked = dict(line.split(" ")[0].split("==") for line in lines if "==" in line)
    for name, wanted in {**extra, "django": ">=5.2.9,<5.3", "celery": ">=5.5,<6"}.items():
        assert SpecifierSet(wanted).contains(locked[name]), name
