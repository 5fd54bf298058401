"""What goes into `extended-resource.pyz`: the packages that the program needs, and no others."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[3]


def recipe() -> dict[str, str]:
    """How the file is built."""
    return dict(tomllib.loads((ROOT / "build" / "artefacts.toml").read_text())["program"]["extended-resource.pyz"])


def locked() -> set[str]:
    """The packages on the list that the recipe names."""
    text = (ROOT / recipe()["requirements"]).read_text()
    return {name.lower() for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


def test_the_file_holds_no_package_of_the_device_plugin() -> None:
    """The tool speaks no gRPC and serves no metrics; grpcio alone would be most of the file."""
    assert set() == locked() & {"grpcio", "protobuf", "prometheus-client"}
    assert {"click", "lightkube", "rich"} <= locked()


def test_the_file_holds_every_package_that_is_imported() -> None:
    """All that the program loads comes with Python, from the project, or from a package on the list."""
    code = "import json, sys, resource_extend.kubernetes.extended_resource.cli; print(json.dumps(list(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(subprocess.check_output([sys.executable, "-c", code]))}
    owners = packages_distributions()
    needed = {owner.lower().replace("_", "-") for name in loaded for owner in owners.get(name, ())}

    assert "lightkube" in needed
    assert set() == needed - locked() - {"resource-extend", "setuptools"}


def test_the_manifest_runs_the_image_that_the_dockerfile_makes() -> None:
    """The Deployment's image is a stage whose entry point is in the built file; the manifest adds its arguments."""
    stages = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    (stage,) = [stage for stage in stages if stage.partition("\n")[0].endswith(" AS extended-resource")]
    entry = json.loads(stage[stage.index("ENTRYPOINT ") + len("ENTRYPOINT ") :].partition("\n")[0])
    documents = yaml.safe_load_all((ROOT / "build" / "manifests" / "extended-resource" / "keep.yaml").read_text())
    (deployment,) = [document for document in documents if document["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    words = [sys.executable, *entry[1:], *container["args"], "--help"]

    helped = subprocess.run(words, capture_output=True, check=False)

    assert container["image"].startswith("resource-extend/extended-resource:")
    assert "command" not in container
    assert (0, b"") == (helped.returncode, helped.stderr)
    assert f"{entry[2]}.__main__" == recipe()["entry"].partition(":")[0]
