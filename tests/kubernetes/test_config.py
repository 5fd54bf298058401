"""The configuration: what is taken, how it is understood, and the line and words of each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resource_extend.kubernetes.devices.groups import Group
from resource_extend.kubernetes.devices.hardware import NodeOptions
from resource_extend.kubernetes.devices.paths import PathMember
from resource_extend.kubernetes.devices.pattern import PathPattern
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.devices.usb import UsbMember
from resource_extend.kubernetes.model import Config, ConfigError, Folders, Hook, Roots
from support.configuration import Load, loader


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a text as the configuration file."""
    return loader(tmp_path)


def _source(config: Config) -> GroupsConfig:
    source = config.resources[0].source
    assert isinstance(source, GroupsConfig)
    return source


def _member(config: Config) -> Any:
    return _source(config).groups[0].members[0]


def test_smallest_configuration(load: Load) -> None:
    """A name and a number are enough."""
    config = load("resources: [{name: example.com/resource, counter: 2}]")

    assert ["example.com/resource"] == [resource.name for resource in config.resources]
    assert (Roots(), Folders(), "", "text") == (config.roots, config.folders, config.listen, config.log_format)
    assert "none" == config.resources[0].allocation_policy


def test_json_is_taken_as_well(load: Load) -> None:
    """JSON is YAML."""
    assert 1 == len(load('{"resources": [{"name": "example.com/resource", "counter": 2}]}').resources)


SQUAT = """
devices:
  - name: serial
    groups:
      - paths:
          - path: /dev/ttyUSB*
      - paths:
          - path: /dev/ttyACM*
            mountPath: /dev/ttyUSB0
  - name: video
    groups:
      - paths:
          - path: /dev/video0
            permissions: mrw
            type: Device
  - name: fuse
    groups:
      - count: 10
        paths:
          - path: /dev/fuse
  - name: audio
    groups:
      - count: 10
        paths:
          - path: /dev/snd
  - name: capture
    groups:
      - paths:
          - path: /dev/snd/controlC0
          - path: /dev/snd/pcmC0D0c
            limit: 10
            optional: true
          - path: /etc/asound.conf
            type: Mount
            readOnly: true
  - name: ch340
    groups:
      - usb:
          - vendor: 1a86
            product: 7523
          - vendor: "1209"
            product: "000F"
            serial: "00000001"
"""


def test_configuration_of_squat_generic_device_plugin(load: Load) -> None:
    """A file of that plugin works with a `domain`, and means the same."""
    config = load("domain: squat.ai" + SQUAT)
    resources = {resource.name: resource.source for resource in config.resources}

    assert {f"squat.ai/{name}" for name in ("serial", "video", "fuse", "audio", "capture", "ch340")} == set(resources)
    serial = resources["squat.ai/serial"]
    assert isinstance(serial, GroupsConfig)
    assert (
        Group((PathMember(PathPattern("/dev/ttyUSB*")),)),
        Group((PathMember(PathPattern("/dev/ttyACM*"), alias="/dev/ttyUSB0"),)),
    ) == serial.groups
    fuse = resources["squat.ai/fuse"]
    assert isinstance(fuse, GroupsConfig)
    assert 10 == fuse.groups[0].count
    ch340 = resources["squat.ai/ch340"]
    assert isinstance(ch340, GroupsConfig)
    assert (
        UsbMember("1a86", "7523", options=NodeOptions()),
        UsbMember("1209", "000f", "00000001", options=NodeOptions()),
    ) == ch340.groups[0].members


def test_same_fragments_below_resources(load: Load) -> None:
    """The entries of `devices` are valid below `resources`."""
    assert load("domain: squat.ai" + SQUAT) == load("domain: squat.ai" + SQUAT.replace("devices:", "resources:"))


def test_there_is_no_default_domain(load: Load) -> None:
    """A name without domain is refused unless `domain` is set: nobody's resources get renamed by an upgrade."""
    with pytest.raises(ConfigError, match=r"config.yaml:3: resources\[0\].name: 'serial' is not .* or set `domain`"):
        load("\nresources:\n- name: serial\n  counter: 1")


def test_everything_at_once(load: Load) -> None:
    """Every key has its place in the configuration."""
    config = load("""
domain: example.com
listen: "[::]:9100"
logFormat: json
roots: {dev: /host/dev/, sys: /host/sys}
folders: {plugins: /p, registry: /r, registryHost: /h, podResources: /s.sock, cdi: /c, state: /t}
resources:
  - name: a
    nameSuffix: .shared
    allocationPolicy: packed
    single: true
    shared: true
    numa: false
    envListing: json
    cdiSpec: true
    scanInterval: 500ms
    health: {command: [check, "{id}"], interval: 1m, timeout: 2s, failures: 2, window: 3, recovery: 4}
    preStart: {command: [before], timeout: 1s}
    release: {command: [after], timeout: 2m}
    env: {A: "1", B: x}
    annotations: {n: "{match}"}
    cdiNames: ["v.io/c={match}"]
    count: 3
    groups:
      - paths:
          - {regex: "/dev/a([0-9])", mountPath: "/dev/a{match}", permissions: r, resolve: now, limit: 2, shared: true}
        env: {B: y}
        counts: [{device: "a*", count: 5}]
      - {sysfs: [{subsystem: tty, name: "ttyS*", attributes: {b: c}, nodes: [tty], optional: false}], count: 7}
""")

    resource, source = config.resources[0], _source(config)
    assert Roots("/host/dev", "/host/sys") == config.roots
    assert Folders("/p", "/r", "/h", "/s.sock", "/c", "/t") == config.folders
    assert ("[::]:9100", "json") == (config.listen, config.log_format)
    assert ("example.com/a.shared", "packed", True, 0.5) == (
        resource.name,
        resource.allocation_policy,
        resource.single,
        resource.scan_interval,
    )
    assert (Hook(("before",), 1.0), Hook(("after",), 120.0), True) == (
        resource.pre_start,
        resource.release,
        resource.cdi,
    )
    assert (False, "json", True, 4) == (source.numa, source.listing, source.shared, source.recovery)
    assert source.check is not None
    assert (("check", "{id}"), 60.0, 2.0, 2, 3, 4) == (
        source.check.command,
        source.check.interval,
        source.check.timeout,
        source.check.failures,
        source.check.window,
        source.check.recovery,
    )
    first, second = source.groups
    assert (
        PathMember(
            PathPattern("/dev/a([0-9])", "regex"), "/dev/a{match}", permissions="r", limit=2, resolve="now", shared=True
        ),
    ) == first.members
    assert (3, (("a*", 5),), (("A", "1"), ("B", "y"))) == (first.count, first.counts, first.env)
    assert (7, (("A", "1"), ("B", "x")), ("v.io/c={match}",)) == (second.count, second.env, second.cdi_names)


def test_unchanged_text_is_an_equal_configuration(load: Load) -> None:
    """Two loads of one file compare equal, which is how a reload finds what changed."""
    text = (
        'resources: [{name: example.com/a, usb: [{vendor: "0403"}], health: {command: [x]}}, {name: b.c/d, counter: 1}]'
    )

    assert load(text) == load(text)
    assert load(text).resources[0] != load(text.replace("0403", "0404")).resources[0]
    assert load(text).resources[1] == load(text.replace("0403", "0404")).resources[1]


@pytest.mark.parametrize(
    ("given", "understood"),
    [("0403", "0403"), ('"0403"', "0403"), ("1209", "1209"), ("0x1A86", "1a86"), ("000F", "000f"), ("1e10", "1e10")],
)
def test_hexadecimal_ids_need_no_quotes(load: Load, given: str, understood: str) -> None:
    """YAML may take an id for a number; its digits count as they are written."""
    assert understood == _member(load(f"resources: [{{name: a.b/c, usb: [{{vendor: {given}}}]}}]")).vendor


@pytest.mark.parametrize(
    ("given", "seconds"), [("5", 5.0), ("0.5", 0.5), ("500ms", 0.5), ("5s", 5.0), ("2m", 120.0), ("1h", 3600.0)]
)
def test_times(load: Load, given: str, seconds: float) -> None:
    """A time is a number of seconds or has a unit."""
    assert (
        seconds == load(f"resources: [{{name: a.b/c, counter: 1, scanInterval: {given}}}]").resources[0].scan_interval
    )


def test_paths_beside_hardware_may_be_used_by_all_devices(load: Load) -> None:
    """Beside another source a path has no limit; among paths its limit is one."""
    beside = load("resources: [{name: a.b/c, usb: [{vendor: 0403}], paths: [{path: /dev/x}]}]")
    among = load("resources: [{name: a.b/c, paths: [{path: /dev/x}]}]")

    assert (0, 1) == (_source(beside).groups[0].members[1].limit, _member(among).limit)


def test_shared_on_purpose(load: Load) -> None:
    """One node in two resources is fine when both say so, or when the path does."""
    both = "{name: a.b/%s, shared: true, paths: [{path: /dev/fuse}]}"
    path = "{name: a.b/%s, paths: [{path: /dev/fuse, shared: true}]}"

    for text in (both, path):
        assert 2 == len(load(f"resources: [{text % 'c'}, {text % 'd'}]").resources)
