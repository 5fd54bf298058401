"""Runs the recorded sessions of both plugins on real etcds and notes what of the store they use: scripts/profile."""

import sys
import tempfile
from pathlib import Path

import pyz
from resource_extend.pack import modules, packer, profile, trace
from resource_extend.pack.interpreters import discover
from support.etcd_surroundings import configured


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
            trace.function_names(sources),
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
