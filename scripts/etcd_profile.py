"""Runs the recorded sessions of both plugins on real etcds and notes what of the store they use: scripts/profile."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyz
from resource_extend.pack import modules, packer, profile, trace
from resource_extend.pack.interpreters import discover
from support.certificates import Certificates
from support.etcd import running
from support.etcd_users import ROOT, ROOT_PASSWORD, add_users, enable_login


@contextlib.contextmanager
def configured(surroundings: str) -> Iterator[str]:
    """Run an etcd and give the text of the plugins' configuration, `{folder}` for what keeps plugins apart."""
    with contextlib.ExitStack() as stack:
        more = ""
        if surroundings == "etcd tls":
            files = Certificates(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            flags = ["--client-cert-auth", f"--trusted-ca-file={files.ca}"]
            etcd = stack.enter_context(running(flags, tls=files))
            more = f"  ca: {files.ca}\n  cert: {files.root_cert}\n  key: {files.root_key}\n"
        else:
            etcd = stack.enter_context(running())
        if surroundings == "etcd login":
            add_users(etcd)
            enable_login(etcd)
            more = f"  auth:\n    username: {ROOT}\n    password: {ROOT_PASSWORD}\n"
        # As most people write theirs: addresses in quotes, others not.
        yield f'etcd:\n  machines:\n    - "{etcd.url}"\n  prefix: /{{folder}}\n{more}'


def record() -> str:
    """Return the content of the recording as it would be now."""
    traces: dict[str, list[dict[str, trace.Run]]] = {}
    for surroundings in profile.SURROUNDINGS:
        with configured(surroundings) as configuration:
            traces[surroundings] = [traced(name, configuration) for name in pyz.read_recipes()["plugin"]]
    return profile.text(traces)


def traced(name: str, configuration: str) -> "dict[str, trace.Run]":
    """Return what the verbs of a plugin run in its recorded session."""
    file = pyz.plugin_file(name, pyz.read_recipes()["plugin"][name], one=True)
    interpreters = discover(file.versions, (pyz.base_python(),))
    with tempfile.TemporaryDirectory() as folder:
        site_packages = Path(folder)
        own = packer.stage(file, interpreters, "unknown", pyz.CACHE / "wheels", site_packages)
        sources = {name: module.source for name in own if (module := modules.find(name, [folder]))}
        return trace.trace(
            interpreters[file.versions[0]],
            site_packages,
            sources,
            (file.plugin, file.plugin_class),
            packer.read_session(file.session) if file.session else [],
            configuration,
        )


def main(arguments: "list[str]") -> int:
    """Write the recording, or compare it."""
    now = record()
    if "--check" not in arguments:
        profile.FILE.write_text(now, encoding="utf-8")
        print(f"wrote {profile.FILE}")
    elif profile.FILE.read_text(encoding="utf-8") != now:
        print("The recording of the etcd store is out of date: scripts/profile", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
