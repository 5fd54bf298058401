"""CDI spec files and names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resource_extend.errors import InputError
from resource_extend.kubernetes.cdi import remove_spec, spec, spec_path, write_spec
from resource_extend.kubernetes.devices.allocation import combine
from resource_extend.kubernetes.devices.cdi_names import cdi_kind, check_cdi_name
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.model import Device, DeviceAnswer, DeviceNode, Mount, Resource

RESOURCE = Resource("example.com/widget", GroupsConfig(()), cdi=True)
ANSWER = DeviceAnswer(
    nodes=(DeviceNode("/dev/ttyUSB0", "/dev/modem", "rw"),),
    mounts=(Mount("/opt/a", "/a"), Mount("/opt/b", "/b", read_only=False)),
    env=(("KEY", "value"),),
)


def _devices(replicas: int = 1) -> list[Device]:
    return [Device(f"h-1::{n}", answer=ANSWER, physical="h-1") for n in range(replicas)] + [Device("h-2")]


def test_spec_holds_nodes_and_mounts_of_each_device() -> None:
    """Replicas are one CDI device; one without nodes and mounts gets a variable, since CDI refuses empty ones."""
    written = spec(RESOURCE, _devices(3))

    assert {
        "cdiVersion": "0.5.0",
        "kind": "example.com/widget",
        "devices": [
            {
                "name": "h-1",
                "containerEdits": {
                    "deviceNodes": [{"path": "/dev/modem", "hostPath": "/dev/ttyUSB0", "permissions": "rw"}],
                    "mounts": [
                        {"hostPath": "/opt/a", "containerPath": "/a", "options": ["rbind", "nosuid", "ro"]},
                        {"hostPath": "/opt/b", "containerPath": "/b", "options": ["rbind", "nosuid", "rw"]},
                    ],
                },
            },
            {"name": "h-2", "containerEdits": {"env": ["EXAMPLE_COM_WIDGET_CDI=h-2"]}},
        ],
    } == written


def test_answer_names_the_devices_of_the_spec() -> None:
    """With a spec of our own the answer has names instead of nodes and mounts, and keeps the environment."""
    answer = combine(RESOURCE, _devices(2))

    assert ("example.com/widget=h-1", "example.com/widget=h-2") == answer.cdi_names
    assert ((), ()) == (answer.nodes, answer.mounts)
    assert ("KEY", "value") in answer.env


def test_file_is_written_once_and_replaced_whole(tmp_path: Path) -> None:
    """The same content is not written again; other content takes the file's place, and nothing else is left."""
    folder = tmp_path / "cdi"

    assert write_spec(str(folder), RESOURCE, _devices())
    first = Path(spec_path(str(folder), RESOURCE.name)).stat()
    assert not write_spec(str(folder), RESOURCE, _devices())
    assert write_spec(str(folder), RESOURCE, _devices()[:1])
    second = Path(spec_path(str(folder), RESOURCE.name)).stat()

    assert first.st_ino != second.st_ino
    assert 0o644 == second.st_mode & 0o777
    assert [spec_path(str(folder), RESOURCE.name)] == [str(path) for path in folder.iterdir()]
    assert ["h-1"] == [device["name"] for device in json.loads(next(folder.iterdir()).read_text())["devices"]]


def test_no_devices_is_no_file(tmp_path: Path) -> None:
    """A spec without devices is an error to CDI, so the file goes."""
    write_spec(str(tmp_path), RESOURCE, _devices())

    assert write_spec(str(tmp_path), RESOURCE, [])
    assert [] == list(tmp_path.iterdir())


def test_only_the_own_file_is_removed(tmp_path: Path) -> None:
    """On exit the resource's own file goes and the files of others stay."""
    (tmp_path / "nvidia.yaml").write_text("")
    write_spec(str(tmp_path), RESOURCE, _devices())

    assert remove_spec(str(tmp_path), RESOURCE.name)
    assert not remove_spec(str(tmp_path), RESOURCE.name)
    assert ["nvidia.yaml"] == [path.name for path in tmp_path.iterdir()]


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    """When the file cannot get its place, no half file stays behind."""
    Path(spec_path(str(tmp_path), RESOURCE.name)).mkdir()

    with pytest.raises(OSError, match="directory"):
        write_spec(str(tmp_path), RESOURCE, _devices())
    assert 1 == len(list(tmp_path.iterdir()))


@pytest.mark.parametrize("name", ["nvidia.com/gpu=0", "v.io/c-d.e=GPU-1:2.3", "example.com/x=h-1::0"])
def test_good_names(name: str) -> None:
    """Fully qualified names are VENDOR/CLASS=DEVICE."""
    assert name == check_cdi_name(name)


@pytest.mark.parametrize(
    "name", ["", "gpu=0", "nvidia.com/gpu", "nvidia.com/gpu=", "nvidia.com/gpu=-1", "1.com/x=1", "a/b/c=1"]
)
def test_refused_names(name: str) -> None:
    """Anything else is refused with an example."""
    with pytest.raises(InputError, match="write VENDOR/CLASS=DEVICE"):
        check_cdi_name(name)


def test_kind_is_the_resource_name() -> None:
    """A resource's name is its kind when CDI takes it."""
    assert "example.com/X_y.z-1" == cdi_kind("example.com/X_y.z-1")
    with pytest.raises(InputError, match="begin with a letter"):
        cdi_kind("3com.com/x")


def test_answers_are_plain(tmp_path: Path) -> None:
    """The file is JSON, which CDI reads beside YAML."""
    write_spec(str(tmp_path), RESOURCE, _devices())
    content: dict[str, Any] = json.loads(next(tmp_path.glob("*.json")).read_text())

    assert spec(RESOURCE, _devices()) == content
