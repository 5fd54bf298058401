"""Build real Kubernetes programs from registry modules, to check against (Go 1.26 or later has to be on the PATH).

usage: build.py [--kubernetes 1.37.2] [--jobs 2] PROGRAM ...

PROGRAM: kube-apiserver, kube-scheduler, kubelet, etcd, or a folder beside this file that holds a Go program of our own.
The programs go to $KUBE_OUT (default ~/.cache/kube-real), in bin-VERSION; the first one takes some minutes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = Path(os.environ.get("KUBE_OUT") or Path.home() / ".cache" / "kube-real")
KUBERNETES = "1.37.2"
ETCD = "3.7.0"
COMPONENTS = ("kube-apiserver", "kube-scheduler", "kubelet")
ETCD_MODULES = ("api", "client/pkg", "client", "pkg", "server")
ENVIRONMENT = {"GOFLAGS": "-mod=mod -buildvcs=false", "CGO_ENABLED": "0", "GOWORK": "off"}


def program(name: str, kubernetes: str = KUBERNETES) -> Path:
    """Where a built program is."""
    return OUT / ("bin-etcd" if name == "etcd" else f"bin-{kubernetes}") / name


def build(name: str, kubernetes: str = KUBERNETES, jobs: int = 2) -> Path:
    """Build one program; its path.

    Raises:
        ValueError: there is no such program.
        subprocess.CalledProcessError: Go says no.
    """
    source = OUT / ("src-etcd" if name == "etcd" else f"src-{kubernetes}")
    source.mkdir(parents=True, exist_ok=True)
    target = program(name, kubernetes)
    target.parent.mkdir(parents=True, exist_ok=True)
    module = source / "go.mod"
    if name == "etcd":
        module.write_text(_etcd_module())
        package = "go.etcd.io/etcd/server/v3"
    else:
        if not module.exists():
            module.write_text(_kubernetes_module(kubernetes, source))
        package = _package(name, source)
    minor = int(kubernetes.split(".")[1])
    tags = f"k8s_1_{minor}" + (",k8s_ge_1_37" if minor >= 37 else "")
    flags = f"-s -w {_stamp(kubernetes)}"
    _go(["build", "-p", str(jobs), "-trimpath", "-tags", tags, "-ldflags", flags, "-o", str(target), package], source)
    return target


def _package(name: str, source: Path) -> str:
    if name in COMPONENTS:
        return f"k8s.io/kubernetes/cmd/{name}"
    if not (HERE / name).is_dir():
        raise ValueError(f"{name!r} is no program that can be built: {', '.join(COMPONENTS)}, etcd, or a folder here")
    shutil.rmtree(source / name, ignore_errors=True)
    shutil.copytree(HERE / name, source / name)
    return f"./{name}"


def _kubernetes_module(version: str, where: Path) -> str:
    """A main module for k8s.io/kubernetes.

    Its own go.mod replaces the staging modules by folders that exist in its source tree alone; here they are replaced
    by the released modules of the same number.
    """
    found = json.loads(_go(["mod", "download", "-json", f"k8s.io/kubernetes@v{version}"], where, capture=True))
    upstream = Path(found["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"^\s*(\S+) => \./staging/", upstream, re.MULTILINE)))
    language = re.search(r"^go (\S+)", upstream, re.MULTILINE)
    released = "v0." + version.partition(".")[2]
    lines = [
        "module resource-extend.invalid/kubernetes",
        f"go {language[1] if language else '1.26'}",
        *(f"godebug {setting}" for setting in re.findall(r"^godebug (\S+=\S+)$", upstream, re.MULTILINE)),
        f"require k8s.io/kubernetes v{version}",
        *(f"replace {name} => {name} {released}" for name in staging),
        *(f"tool k8s.io/kubernetes/cmd/{name}" for name in COMPONENTS),
    ]
    return "\n".join(lines) + "\n"


def _etcd_module() -> str:
    required = [f"require go.etcd.io/etcd/{name}/v3 v{ETCD}" for name in ETCD_MODULES]
    head = ["module resource-extend.invalid/etcd", "go 1.26.0"]
    return "\n".join([*head, *required, "tool go.etcd.io/etcd/server/v3"]) + "\n"


def _stamp(version: str) -> str:
    """Linker flags that tell the components their version; without them they take themselves for v0.0.0."""
    major, minor = version.split(".")[:2]
    words = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in words.items())


def _go(words: list[str], where: Path, *, capture: bool = False) -> str:
    done = subprocess.run(
        ["nice", "-n", "10", "go", *words],
        cwd=where,
        env={**os.environ, **ENVIRONMENT},
        check=True,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    return done.stdout or ""


def main() -> None:
    """Build what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", default=KUBERNETES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    for name in options.programs:
        sys.stdout.write(f"{build(name, options.kubernetes, options.jobs)}\n")


if __name__ == "__main__":
    main()
