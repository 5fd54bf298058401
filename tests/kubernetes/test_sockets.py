"""Names and checks of the plugin's sockets."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from resource_extend.kubernetes.folder import PluginFolder
from resource_extend.kubernetes.sockets import (
    PATH_LIMIT,
    SocketError,
    check_bindable,
    fresh_name,
    identity,
    remove_dead,
    resource_prefix,
)
from support.device_plugin import dead_socket

LONGEST = f"{'a' * 61}.{'b' * 61}.{'c' * 61}.{'d' * 58}/{'n' * 63}"


def test_any_resource_name_fits() -> None:
    """The longest legal resource name (244 + 63 characters) gives a path within the limit (demand 11)."""
    assert 308 == len(LONGEST)
    path = f"/var/lib/kubelet/device-plugins/{fresh_name(LONGEST)}"
    assert len(path) <= PATH_LIMIT
    assert re.fullmatch(r"rex-[0-9a-f]{8}-[0-9a-z-]+\.sock", os.path.basename(path))


def test_names_are_never_used_again() -> None:
    """Ten thousand names of one resource are ten thousand names, all with its prefix."""
    names = {fresh_name("example.com/x") for _ in range(10_000)}
    assert 10_000 == len(names)
    assert all(name.startswith(resource_prefix("example.com/x")) for name in names)
    assert resource_prefix("example.com/x") != resource_prefix("example.com/y")


def test_bind_checks_say_what_to_do(tmp_path: Path) -> None:
    """A missing folder, a path too long and something in the way have texts of their own; a free path passes."""
    check_bindable(str(tmp_path / "a.sock"))
    with pytest.raises(SocketError, match="does not exist: is the kubelet's folder mounted here"):
        check_bindable(str(tmp_path / "no" / "a.sock"))
    with pytest.raises(SocketError, match="108 bytes and Linux allows 107"):
        check_bindable("/" + "x" * 107)
    (tmp_path / "b.sock").write_text("")
    with pytest.raises(SocketError, match="there is something at"):
        check_bindable(str(tmp_path / "b.sock"))


def test_the_limit_is_the_systems(tmp_path: Path) -> None:
    """A path of 107 bytes binds, one of 108 does not: the limit in the code is the real one."""
    base = f"/tmp/{'x' * 200}"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(base[:PATH_LIMIT])
        os.unlink(base[:PATH_LIMIT])
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(OSError, match="too long"):
        one.bind(base[: PATH_LIMIT + 1])


def test_identity_tells_a_socket_made_again(tmp_path: Path) -> None:
    """A socket and its successor of the same name differ; no socket has no identity."""
    path = str(tmp_path / "a.sock")
    assert identity(path) is None
    dead_socket(path)
    first = identity(path)
    os.unlink(path)
    dead_socket(path)
    assert None not in {first, identity(path)}
    assert first != identity(path)
    (tmp_path / "file").write_text("")
    assert identity(str(tmp_path / "file")) is None


def test_only_own_dead_sockets_are_removed(tmp_path: Path) -> None:
    """Own and dead goes; alive, foreign, and files that only look like a socket of ours stay."""
    mine, alive, looks = (fresh_name("example.com/x") for _ in range(3))
    dead_socket(str(tmp_path / mine))
    dead_socket(str(tmp_path / "rex.sock"))
    dead_socket(str(tmp_path / "kubelet.sock"))
    (tmp_path / looks).write_text("")
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(tmp_path / alive))
        living.listen()
        assert [mine] == remove_dead(str(tmp_path))
    assert sorted([alive, looks, "kubelet.sock", "rex.sock"]) == sorted(os.listdir(tmp_path))
    assert [] == remove_dead(str(tmp_path / "no folder"))


def test_folder_calls_when_something_changed(tmp_path: Path) -> None:
    """A look calls its watchers for a new entry, and as long as their own name is missing."""
    calls: list[str] = []

    def any_change() -> None:
        calls.append("any")

    def missing() -> None:
        calls.append("missing")

    folder = PluginFolder(str(tmp_path))
    folder.look()
    folder.watch(any_change)
    folder.watch(missing, "mine.sock")
    folder.look()
    assert ["missing"] == calls
    (tmp_path / "mine.sock").write_text("")
    folder.look()
    folder.look()
    assert ["missing", "any", "missing"] == calls
    dead_socket(folder.kubelet_socket)
    folder.unwatch(missing)
    folder.look()
    assert folder.kubelet is not None
    assert ["missing", "any", "missing", "any"] == calls
