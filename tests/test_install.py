"""scripts/install: core never meets anything but whole plugin files, and there is always a way back."""

import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.calls import call_program, source_program
from support.checkout import Checkout

EXECUTE = 0o111
NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user or mount")


class Project(Checkout):
    """A built clone beside an empty plugin directory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "project")
        self.folder = folder / "plugins"
        self.replaced = folder / "plugins.replaced"
        self.folder.mkdir()

    def start(self, *arguments: object, **options: object) -> "subprocess.Popen[str]":
        """Start scripts/install on the plugin directory."""
        command = [str(self.root / "scripts" / "install"), str(self.folder), *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": "/"}
        return subprocess.Popen(command, **{**pipes, **options})  # type: ignore[call-overload, no-any-return]

    def install(self, *arguments: object, **options: object) -> str:
        """Install and return what was said."""
        process = self.start(*arguments, **options)
        output, errors = process.communicate(timeout=60)
        assert (0, "") == (process.returncode, errors)
        return output

    def fail(self, *arguments: object, **options: object) -> str:
        """Fail to install and return the one line that says why."""
        process = self.start(*arguments, **options)
        output, errors = process.communicate(timeout=60)
        assert (1, "", 1) == (process.returncode, output, errors.count("\n"))
        return errors

    def names(self) -> list[str]:
        """What lies in the plugin directory."""
        return sorted(path.name for path in self.folder.iterdir())


def loaded_by_core(folder: Path) -> dict[str, int]:
    """Name what core would load (specification, protocol 9.1), with the mode of each."""
    found = {}
    for entry in os.scandir(folder):
        path = Path(entry)
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and mode & EXECUTE == EXECUTE:
            found[path.name] = stat.S_IMODE(mode)
    return found


def text(path: Path) -> str:
    """Return what a text file holds."""
    return path.read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project and an empty plugin directory."""
    return Project(tmp_path)


def test_plugins_get_the_names_that_core_uses(project: Project) -> None:
    """Both plugins are installed without their suffix, 0755 whatever the umask is, and answer there."""
    project.install(umask=0o077)

    assert {"resource-gpu": 0o755, "resource-storage": 0o755} == loaded_by_core(project.folder)
    assert project.built("gpu").read_bytes() == (project.folder / "resource-gpu").read_bytes()
    assert (0, b'"gpu"', b"") == call_program(project.folder / "resource-gpu", ["name"])


def test_a_missing_configuration_gets_an_example(project: Project) -> None:
    """The example is readable for owner and group only, and a plugin accepts it."""
    project.install()

    example = project.folder / "gpu.yaml"
    assert text(project.root / "examples" / "gpu.yaml") == text(example)
    assert 0o640 == stat.S_IMODE(example.stat().st_mode)
    assert 0 == call_program(project.folder / "resource-gpu", ["get-metrics-description"]).status


def test_a_configuration_is_never_touched(project: Project) -> None:
    """A configuration that is there stays as it is, with --replace too."""
    configuration = project.folder / "gpu.yaml"
    configuration.write_text("sqlite: {path: mine.db}\n")
    configuration.chmod(0o600)
    project.install()
    project.change("gpu")
    project.install("--replace")

    assert "sqlite: {path: mine.db}\n" == text(configuration)
    assert 0o600 == stat.S_IMODE(configuration.stat().st_mode)


def test_installing_again_changes_nothing(project: Project) -> None:
    """The same files again are no replacement: they are left alone, and nothing is kept."""
    project.install()
    before = (project.folder / "resource-gpu").stat().st_ino
    output = project.install()

    assert before == (project.folder / "resource-gpu").stat().st_ino
    assert f"{project.folder}/resource-gpu: already there, unchanged\n" in output
    assert not project.replaced.exists()


def test_a_different_file_is_replaced_on_demand_only(project: Project) -> None:
    """Without --replace one differing file stops everything: the other plugin is not installed either."""
    (project.folder / "resource-storage").write_text("#!/bin/sh\n")
    reason = project.fail()

    assert (
        f"scripts/install: {project.folder}/resource-storage: exists and differs; "
        "--replace replaces it and keeps the old file\n"
    ) == reason
    assert ["resource-storage"] == project.names()
    assert "#!/bin/sh\n" == text(project.folder / "resource-storage")


def way_back(output: str) -> list[str]:
    """Return the command that the output gives for going back."""
    found = re.search("; to go back: (mv .*)", output)
    assert found
    return shlex.split(found[1])


def test_the_old_file_is_kept_outside(project: Project) -> None:
    """A replaced file lies outside the folder, as it was, and the command that is said brings it back."""
    project.install()
    old = (project.folder / "resource-gpu").read_bytes()
    new = project.change("gpu")
    output = project.install("--replace")

    assert new == (project.folder / "resource-gpu").read_bytes()
    assert {"resource-gpu", "resource-storage"} == loaded_by_core(project.folder).keys()
    (kept,) = project.replaced.iterdir()
    assert old == kept.read_bytes()
    subprocess.run(way_back(output), check=True)
    assert old == (project.folder / "resource-gpu").read_bytes()
    assert 0o755 == stat.S_IMODE((project.folder / "resource-gpu").stat().st_mode)


def test_the_way_back_holds_for_every_folder(project: Project) -> None:
    """The command that brings the old file back can be typed as it is printed, whatever the folder is called."""
    project.folder = project.folder / "core's own; plugins"
    project.folder.mkdir()
    project.install()
    old = (project.folder / "resource-gpu").read_bytes()
    project.change("gpu")
    found = re.search("; to go back: (mv .*)", project.install("--replace"))

    assert found
    subprocess.run(["/bin/sh", "-c", found[1]], check=True)
    assert old == (project.folder / "resource-gpu").read_bytes()


def test_every_replaced_file_is_kept(project: Project) -> None:
    """Three builds one after the other leave two old files; each is kept once, however often it comes back."""
    project.install()
    first = project.built("gpu").read_bytes()
    for note in ("second", "third"):
        project.change("gpu", note)
        project.install("--replace")
    assert 2 == len(list(project.replaced.iterdir()))
    for content in (first, project.change("gpu", "fourth"), first):
        project.built("gpu").write_bytes(content)
        project.install("--replace")

    assert 4 == len(list(project.replaced.iterdir()))


def test_a_symbolic_link_is_replaced_as_what_it_is(project: Project) -> None:
    """A link to a plugin elsewhere is kept as a link, so that going back restores it; its target is not touched."""
    target = source_program(project.root / "elsewhere", "gpu")
    before = target.read_bytes()
    (project.folder / "resource-gpu").symlink_to("../project/elsewhere")
    output = project.install("--replace")

    assert before == target.read_bytes()
    assert not (project.folder / "resource-gpu").is_symlink()
    subprocess.run(way_back(output), check=True)
    assert target == (project.folder / "resource-gpu").resolve()


def test_a_file_with_another_mode_counts_as_different(project: Project) -> None:
    """A plugin that core would not see, because it lost an execute bit, is not called unchanged."""
    project.install()
    (project.folder / "resource-gpu").chmod(0o744)

    assert "resource-gpu: exists and differs" in project.fail()
    project.install("--replace")
    assert 0o755 == stat.S_IMODE((project.folder / "resource-gpu").stat().st_mode)


def with_first_line(path: Path, line: str) -> None:
    """Give a file another first line."""
    _, _, rest = text(path).partition("\n")
    path.write_text(f"{line}\n{rest}")


@pytest.mark.parametrize(
    ("first_line", "reason"),
    [
        ("#!/nowhere/python3 -IS", "its first line names /nowhere/python3, which is no Python that runs here"),
        ("#!/usr/bin/env -S python9.9 -I", "its first line names python9.9, which is no Python that runs here"),
        ("#!/bin/false", "its first line names /bin/false, which is no Python that runs here"),
        ("#!OLD -IS", "which is Python 3.9.2; 3.10 or newer is needed"),
        ("#!", "its first line names no interpreter"),
        ("PK", "its first line names no interpreter"),
    ],
)
def test_the_interpreter_is_checked(project: Project, tmp_path: Path, first_line: str, reason: str) -> None:
    """A file whose interpreter is missing, no Python or too old is refused, and nothing is installed."""
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho 3 9 2\n")
    old.chmod(0o755)
    with_first_line(project.built("storage"), first_line.replace("OLD", str(old)))
    error = project.fail()

    assert error.startswith(f"scripts/install: {project.built('storage')}: ")
    assert reason in error
    assert [] == project.names()


def test_an_interpreter_may_be_found_by_env(project: Project, tmp_path: Path) -> None:
    """`env -S` is looked through: the Python that it finds on PATH is the one that is checked."""
    (tmp_path / "python-of-tests").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python-of-tests").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    for kind in ("gpu", "storage"):
        with_first_line(project.built(kind), "#!/usr/bin/env -S python-of-tests -I")

    project.install(env={**os.environ, "PATH": path})


def test_a_plugin_that_cannot_answer_is_refused(project: Project) -> None:
    """Core would not start with a file that cannot answer `verbs`, so it is not installed; its reason is passed on."""
    project.built("gpu").write_text(f"#!{sys.executable} -I\nimport sys\nsys.exit('broken on purpose')\n")

    assert (
        f"scripts/install: {project.built('gpu')}: cannot answer `verbs`, so core would not start: broken on purpose\n"
    ) == project.fail()
    assert [] == project.names()


def test_what_else_core_would_load_is_said(project: Project) -> None:
    """Files with all execute bits, symbolic links and shared objects are named; what core skips is not."""
    for name, mode in (("backup", 0o755), ("notes", 0o644), ("partly", 0o754), ("extra.so", 0o644)):
        (project.folder / name).write_text("")
        (project.folder / name).chmod(mode)
    (project.folder / "gpu.yaml").symlink_to("/etc/hostname")
    (project.folder / "folder").mkdir()
    output = project.install()

    said = [line for line in output.splitlines() if "core" in line and "too" in line]
    assert [
        f"{project.folder}/backup: core runs this too, and does not start if it cannot answer `verbs`",
        f"{project.folder}/extra.so: core loads this too, as a shared object",
        f"{project.folder}/gpu.yaml: core runs this too: a symbolic link counts as executable, whatever it points to",
    ] == said


def test_a_wrong_folder_is_named(project: Project) -> None:
    """A folder that is missing, or is a file, is not made up; the error names it."""
    for wrong in (project.folder / "typo", project.built("gpu")):
        project.folder = wrong

        assert (
            f"scripts/install: {wrong}: no such folder; make it, or give core's resource_plugin.dir\n" == project.fail()
        )


def test_a_folder_in_the_place_of_a_plugin_is_named(project: Project) -> None:
    """A folder called like the plugin cannot be replaced by it."""
    (project.folder / "resource-gpu").mkdir()

    assert "resource-gpu: is a folder where the plugin file should go" in project.fail("--replace")


def test_what_is_no_file_in_the_place_of_a_plugin_is_named(project: Project) -> None:
    """A pipe called like the plugin is not waited for, and cannot be kept: it is refused."""
    os.mkfifo(project.folder / "resource-gpu")

    assert "resource-gpu: is no file, and stands where the plugin file should go" in project.fail("--replace")


def test_nothing_built_is_said(project: Project) -> None:
    """Without built files the error says which command makes them."""
    shutil.rmtree(project.root / "dist")

    assert "scripts/install: nothing is built: run scripts/build first\n" == project.fail()


@pytest.fixture
def open_project() -> Iterator[Project]:
    """A project where other users can go, whose plugins need no more than the system's Python."""
    if not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"no {SYSTEM_PYTHON}, which other users can run")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        project = Project(Path(folder))
        for kind in ("gpu", "storage"):
            project.built(kind).write_text(f"#!{SYSTEM_PYTHON} -I\nprint('\"{kind}\"', end='')\n")
        yield project


AS_NOBODY = {
    "user": NOBODY,
    "group": NOBODY,
    "extra_groups": [],
    "env": {"PATH": "/usr/bin:/bin"},
}


@needs_root
def test_another_user_can_install(open_project: Project) -> None:
    """A user who owns the folder and its parent installs and replaces like root."""
    for path in (open_project.folder, open_project.folder.parent):
        os.chown(path, NOBODY, NOBODY)
    open_project.install(**AS_NOBODY)
    open_project.change("gpu")
    open_project.install("--replace", **AS_NOBODY)

    assert NOBODY == (open_project.folder / "resource-gpu").stat().st_uid
    assert {"resource-gpu": 0o755, "resource-storage": 0o755} == loaded_by_core(open_project.folder)
    assert 1 == len(list(open_project.replaced.iterdir()))


@needs_root
def test_a_folder_of_somebody_else_is_refused(open_project: Project) -> None:
    """Without the right to write into the folder nothing is changed."""
    assert f"scripts/install: {open_project.folder}/.install-" in open_project.fail(**AS_NOBODY)
    assert [] == open_project.names()


@needs_root
def test_an_old_file_that_cannot_be_kept_stays(open_project: Project) -> None:
    """Without the right to make the folder for old files nothing is replaced, and its name is said."""
    open_project.install()
    os.chown(open_project.folder, NOBODY, NOBODY)
    before = (open_project.folder / "resource-gpu").read_bytes()
    open_project.change("gpu")

    assert (
        f"scripts/install: {open_project.replaced}: Permission denied; make this folder, the old file is kept there\n"
    ) == open_project.fail("--replace", **AS_NOBODY)
    assert before == (open_project.folder / "resource-gpu").read_bytes()
    assert ["gpu.yaml", "resource-gpu", "resource-storage", "storage.yaml"] == open_project.names()


@needs_root
def test_a_full_file_system_changes_nothing(project: Project) -> None:
    """When the new files do not fit, the old ones stay whole and nothing else is left behind."""
    project.change("storage", "x" * 300_000)
    script = f"""
        mount -t tmpfs -o size=256k none {project.folder} || exit 77
        printf '#!/bin/sh\\n' >{project.folder}/resource-gpu
        {project.root}/scripts/install {project.folder} --replace
        echo "status $?"; ls -A {project.folder}; cat {project.folder}/resource-gpu
    """
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not permitted here")

    assert "No space left on device" in done.stderr
    assert "status 1\nresource-gpu\n#!/bin/sh\n" == done.stdout


def test_core_never_meets_half_a_file(project: Project) -> None:
    """While builds replace each other, a look as core takes it finds the two plugins and nothing else, and they run."""
    builds = {kind: [project.built(kind).read_bytes(), project.change(kind)] for kind in ("gpu", "storage")}
    project.install()
    done = threading.Event()
    seen = []

    def look() -> None:
        while not done.is_set():
            found = loaded_by_core(project.folder)
            content = (project.folder / "resource-gpu").read_bytes()
            seen.append((found, content in builds["gpu"]))

    def call() -> None:
        while not done.is_set():
            seen.append(call_program(project.folder / "resource-gpu", ["name"]))  # type: ignore[arg-type]

    threads = [threading.Thread(target=target) for target in (look, call)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        for kind, contents in builds.items():
            project.built(kind).write_bytes(contents[turn % 2])
        project.install("--replace")
    done.set()
    for thread in threads:
        thread.join()

    expected = ({"resource-gpu": 0o755, "resource-storage": 0o755}, True)
    assert [] == [entry for entry in seen if entry not in (expected, (0, b'"gpu"', b""))]
    assert 50 < len(seen)


def test_a_killed_installation_leaves_nothing_that_runs(project: Project) -> None:
    """Killed at any moment, an installation leaves whole plugin files or none, and the next one works."""
    project.change("gpu", "x" * 3_000_000)
    whole = {kind: {project.built(kind).read_bytes()} for kind in ("gpu", "storage")}
    for attempt in range(14):
        process = project.start("--replace", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.2 + attempt * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name in loaded_by_core(project.folder):
            kind = name.removeprefix("resource-")
            assert (project.folder / name).read_bytes() in whole[kind]
        whole["gpu"].add(project.change("gpu"))
    project.install("--replace")

    assert {"resource-gpu": 0o755, "resource-storage": 0o755} == loaded_by_core(project.folder)
