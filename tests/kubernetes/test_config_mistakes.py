"""Mistakes in the configuration: each is told in one line, with the file, the line and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.config.rules import MESSAGE_LIMIT, SNAPSHOT_LIMIT
from resource_extend.kubernetes.model import ConfigError, Device
from resource_extend.kubernetes.table import SNAPSHOT_LIMIT as TABLE_LIMIT
from resource_extend.kubernetes.table import SnapshotTooLarge, build_snapshot
from support.configuration import Load, loader


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a text as the configuration file."""
    return loader(tmp_path)


A = "name: a.b/c, counter: 1"
# (text, line, way to the place and what is wrong)
MISTAKES = [
    ("", 1, "it is empty"),
    ("resources: [", 1, "it is no YAML"),
    ("a: b\n\tc: d", 2, "it is no YAML"),
    ("[]", 1, "it must be a mapping"),
    ("{}", 1, "exactly one of 'resources', 'devices' is needed"),
    ("resources: []", 1, "resources: the list must not be empty"),
    ("resources: x", 1, "resources: it must be a list"),
    ("resources:", 1, "resources: it must be a list"),
    (f"resources: [{{{A}}}]\ndevices: [{{{A}}}]", 1, "exactly one of 'resources', 'devices' is needed"),
    (f"resources: [{{{A}}}]\nresources: [{{{A}}}]", 2, "key 'resources' is there twice"),
    (f"resource: [{{{A}}}]", 1, "unknown key 'resource': did you mean 'resources'?"),
    (f"resources:\n- {{{A},\n   nam: x}}", 3, "resources[0]: unknown key 'nam': did you mean 'name'?"),
    (f"resources: [{{{A}}}]\nzzz: 1", 2, "unknown key 'zzz': known keys are devices, domain,"),
    (f"resources: [{{{A}}}]\n<<: {{}}", 2, "unknown key '<<'"),
    (f"resources: [{{{A}}}]\n? [a]\n: b", 2, "it must be a mapping with texts as keys"),
    ("resources: [{counter: 1}]", 1, "resources[0]: 'name' is missing"),
    ("resources: [{name: a.b/c}]", 1, "resources[0]: one of 'groups', 'paths',"),
    ("resources: [{name: 1, counter: 1}]", 1, "resources[0].name: it must be a text: put 1 in quotes"),
    ("resources: [{name: [], counter: 1}]", 1, "resources[0].name: it must be a text"),
    ("resources: [{name: , counter: 1}]", 1, "resources[0].name: it must be a text"),
    ("resources: [{name: Example.com/x, counter: 1}]", 1, "'Example.com/x' is not an extended resource name"),
    ("resources: [{name: kubernetes.io/x, counter: 1}]", 1, "such names belong to Kubernetes"),
    ("resources: [{name: a.b/c, counter: 1, nameSuffix: '/'}]", 1, "nameSuffix: '/' must be letters"),
    ("domain: kubernetes.io\nresources: [{name: x, counter: 1}]", 1, "domain: 'kubernetes.io' cannot be the domain"),
    (f"resources:\n- {{{A}}}\n- {{{A}}}", 3, "resources[1].name: 'a.b/c' is there twice, first on line 2"),
    (
        "resources:\n- {name: a-b.c/d, counter: 1}\n- {name: a.b.c/d, counter: 1}",
        3,
        "the same environment keys A_B_C_D",
    ),
    ("resources: [{name: a.b/c, counter: 0}]", 1, "counter: it must be a whole number from 1 to"),
    ("resources: [{name: a.b/c, counter: -1}]", 1, "counter: it must be a whole number from 1 to"),
    ("resources: [{name: a.b/c, counter: 1.5}]", 1, "counter: it must be a whole number from 1 to"),
    ("resources: [{name: a.b/c, counter: two}]", 1, "counter: it must be a whole number from 1 to"),
    ("resources: [{name: a.b/c, counter: 1, paths: [{}]}]", 1, "paths[0]: exactly one of 'path', 'regex' is needed"),
    ("resources: [{name: a.b/c, paths: [{path: /a, regex: /b}]}]", 1, "exactly one of 'path', 'regex' is needed"),
    ("resources: [{name: a.b/c, paths: []}]", 1, "paths: the list must not be empty"),
    ("resources: [{name: a.b/c, paths: [{path: dev/x}]}]", 1, "paths[0].path: 'dev/x' must be an absolute path"),
    ("resources: [{name: a.b/c, paths: [{path: /a/../b}]}]", 1, "may not contain '.' or '..'"),
    ("resources: [{name: a.b/c, paths: [{regex: '/dev/(a'}]}]", 1, "'/dev/(a' is not a regular expression"),
    ("resources: [{name: a.b/c, paths: [{path: {match}}]}]", 1, "it must be a text"),
    ("resources: [{name: a.b/c, paths: [{path: '/dev/{id}'}]}]", 1, "only {match} can be used here"),
    ("resources: [{name: a.b/c, paths: [{path: '/dev/{match}'}]}]", 1, "there is none that has one"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, optional: true}]}]", 1, "every member is optional"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, mountPath: x}]}]", 1, "mountPath: 'x' must be an absolute path"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, mountPath: '/{nr}'}]}]", 1, "unknown variable {nr}"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, permissions: rx}]}]", 1, "'rx' must be one or more of r, w, m"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, type: device}]}]", 1, "it must be one of Device, Mount"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, readOnly: 'yes'}]}]", 1, "it must be true or false, not 'yes'"),
    ("resources: [{name: a.b/c, paths: [{path: /dev/a, limit: 0}]}]", 1, "limit: it must be a whole number from 1"),
    ("resources: [{name: a.b/c, usb: [{product: '0001'}]}]", 1, "usb[0]: 'vendor' is missing"),
    ("resources: [{name: a.b/c, usb: [{vendor: 403}]}]", 1, "vendor: it must be 4 hexadecimal digits, not '403'"),
    ("resources: [{name: a.b/c, usb: [{vendor: wxyz}]}]", 1, "vendor: it must be 4 hexadecimal digits"),
    ("resources: [{name: a.b/c, pci: [{}]}]", 1, "pci[0]: one of 'vendor', 'device', 'class'"),
    ("resources: [{name: a.b/c, pci: [{class: '1'}]}]", 1, "class: it must be 2 or 4 or 6 hexadecimal digits"),
    ("resources: [{name: a.b/c, sysfs: [{subsystem: ../x}]}]", 1, "'../x' must be a kernel class or bus"),
    ("resources: [{name: a.b/c, sysfs: [{subsystem: a, attributes: {../x: b}}]}]", 1, "name of a sysfs attribute"),
    ("resources: [{name: a.b/c, command: {timeout: 1s}}]", 1, "command: 'command' is missing"),
    ("resources: [{name: a.b/c, command: {command: []}}]", 1, "command.command: the list must not be empty"),
    ("resources: [{name: a.b/c, usb: [{vendor: '0001'}], counter: 1}]", 1, "a group has one of usb, pci, sysfs"),
    ("resources: [{name: a.b/c, counter: 1, groups: [{counter: 1}]}]", 1, "'counter' belongs into the groups"),
    ("resources: [{name: a.b/c, groups: [{counter: 1}, {counter: 1}]}]", 1, "one 'counter' only"),
    ("resources: [{name: a.b/c, groups: [{}]}]", 1, "groups[0]: one of 'paths', 'usb'"),
    ("resources: [{name: a.b/c, counter: 1, env: {1a: b}}]", 1, "env: '1a' must be letters, digits and '_'"),
    ("resources: [{name: a.b/c, counter: 1, env: {A: '{x}'}}]", 1, "unknown variable {x}"),
    ("resources: [{name: a.b/c, counter: 1, env: {A: true}}]", 1, "env.A: it must be a text: put true in quotes"),
    ("resources: [{name: a.b/c, counter: 1, cdiNames: [gpu]}]", 1, "cdiNames: 'gpu' is no CDI name"),
    ("resources: [{name: 1a.b/c, counter: 1, cdiSpec: true}]", 1, "cdiSpec: '1a.b/c' cannot be a CDI kind"),
    ("resources: [{name: a.b/c, counter: 1, allocationPolicy: best}]", 1, "one of none, packed, spread, numa"),
    ("resources: [{name: a.b/c, counter: 1, scanInterval: 0}]", 1, "scanInterval: it must be a time from 0.1s"),
    ("resources: [{name: a.b/c, counter: 1, scanInterval: 5 minutes}]", 1, "not '5 minutes'"),
    ("resources: [{name: a.b/c, counter: 1, health: {failures: 3, window: 2}}]", 1, "'window' (2) must be at least"),
    ("resources: [{name: a.b/c, counter: 1, health: {command: [a, '{x}']}}]", 1, "unknown variable {x}"),
    ("resources: [{name: a.b/c, counter: 1, preStart: {command: [a], timeout: 30s}}]", 1, "from 0.1s to 25s"),
    (f"resources: [{{{A}}}]\nlisten: 9100", 2, "listen: it must be a text: put 9100 in quotes"),
    (f"resources: [{{{A}}}]\nlisten: '::1:9100'", 2, "must be HOST:PORT"),
    (f"resources: [{{{A}}}]\nlisten: 'x:70000'", 2, "must be HOST:PORT"),
    (f'resources: [{{{A}, env: {{"B\\n": x}}}}]', 1, "must be letters, digits and '_'"),
    (f'resources: [{{{A}, env: {{B: "\\ud800"}}}}]', 1, "env.B: '\\ud800' has a NUL character or half"),
    (f'resources: [{{{A}, annotations: {{b: "x\\0"}}}}]', 1, "annotations.b: 'x\\x00' has a NUL character"),
    (f"resources: [{{{A}}}]\nlogFormat: xml", 2, "it must be one of text, json"),
    (f"resources: [{{{A}}}]\nroots: {{dev: dev}}", 2, "roots.dev: 'dev' must be an absolute path"),
    (
        "roots: {dev: /host/dev}\nresources: [{name: a.b/c, paths: [{path: /opt/*, type: Mount}]}]",
        2,
        "'/opt/*' cannot be looked at",
    ),
    ("roots: {dev: /h}\nresources: [{name: a.b/c, paths: [{path: /opt/x}]}]", 2, "'/opt/x' cannot be looked at"),
    (
        "resources:\n- {name: a.b/c, paths: [{path: /dev/fuse}]}\n- {name: a.b/d, paths: [{path: /dev/fuse}]}",
        3,
        "resources[1]: /dev/fuse is in a.b/c as well",
    ),
]


@pytest.mark.parametrize(("text", "line", "fault"), MISTAKES)
def test_mistakes(load: Load, text: str, line: int, fault: str) -> None:
    """Each mistake is one line that begins with file and line and says what is wrong."""
    with pytest.raises(ConfigError) as caught:
        load(text)

    place, _, said = str(caught.value).partition(": ")
    assert f"config.yaml:{line}" == Path(place).name
    assert fault in said
    assert "\n" not in said


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is no text are named with the reason."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, fault in (("missing", "No such file"), ("", "Is a directory"), ("binary", "it is no UTF-8 text")):
        with pytest.raises(ConfigError, match=fault):
            load_config(str(tmp_path / name))


def test_endless_aliases(load: Load) -> None:
    """A file that contains itself is refused, not followed."""
    with pytest.raises(ConfigError):
        load("resources: &a [*a]")
    with pytest.raises(ConfigError):
        load("resources: [{name: a.b/c, counter: 1, env: &a {A: *a}}]")


@pytest.mark.parametrize("count", [1, 10])
def test_list_that_the_kubelet_would_refuse(load: Load, count: int) -> None:
    """A number of devices that cannot be told in one message is refused with its size and the largest number."""
    text = "resources: [{name: a.b/c, counter: %d, count: %d}]"
    with pytest.raises(ConfigError, match=r"the kubelet takes 4194304: at most [0-9]+ devices") as caught:
        load(text % (1_000_000 // count, count))
    most = int(str(caught.value).rpartition("at most ")[2].split()[0])

    assert load(text % (most // count, count))
    with pytest.raises(ConfigError):
        load(text % (most // count + count, count))
    length = int(str(caught.value).rpartition("ids of ")[2].split()[0])
    devices = [Device(f"{n:0{length}}") for n in range(most)]
    assert SNAPSHOT_LIMIT - 100 < len(build_snapshot(devices)) <= SNAPSHOT_LIMIT == TABLE_LIMIT < MESSAGE_LIMIT
    with pytest.raises(SnapshotTooLarge):
        build_snapshot([*devices, Device("0" * length)])
