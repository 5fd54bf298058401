"""The manifests: the demands that only they can meet, on what is rendered from the one source.

Plain YAML is always checked; kustomize and helm where their programs are on PATH.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube.models.apps_v1 import DaemonSet
from lightkube.models.core_v1 import ConfigMap

import manifests
from resource_extend import __version__
from resource_extend.kubernetes.command_line import device_plugin
from resource_extend.kubernetes.config import load_config
from support.configuration import loader

MEASURED = 48  # MiB resident with 5,000 devices, at most (scripts/bench device-plugin)
HELM = ["template", "device-plugin", "CHART", "--namespace", "kube-system", "--kube-version", "1.37.0"]

Rendered = dict[str, dict[str, Any]]


def _by_kind(text: str) -> Rendered:
    return {document["kind"]: document for document in yaml.safe_load_all(text) if document}


def _run(*command: str, expect: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert expect == done.returncode, done.stderr
    return done.stdout if expect == 0 else done.stderr


def _kustomize() -> list[str]:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    pytest.skip("needs kustomize or kubectl")


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the helm chart."""
    folder = tmp_path_factory.mktemp("manifests") / "chart"
    manifests.write_chart(folder)
    return folder


def _helm(chart: Path, *more: str, expect: int = 0) -> str:
    if not shutil.which("helm"):
        pytest.skip("needs helm")
    return _run("helm", *(str(chart) if word == "CHART" else word for word in HELM), *more, expect=expect)


@pytest.fixture(scope="module", params=["plain", "kustomize", "helm"])
def rendered(request: pytest.FixtureRequest, chart: Path) -> Rendered:
    """Give what people apply, by kind, from each way to get it."""
    if request.param == "plain":
        return _by_kind(manifests.plain())
    if request.param == "kustomize":
        return _by_kind(_run(*_kustomize(), str(manifests.SOURCE)))
    return _by_kind(_helm(chart))


def _pod(rendered: Rendered) -> Any:
    return rendered["DaemonSet"]["spec"]["template"]["spec"]


def _container(rendered: Rendered) -> Any:
    (container,) = _pod(rendered)["containers"]
    return container


def _bytes(quantity: str) -> int:
    assert quantity.endswith("Mi")
    return int(quantity[:-2]) * 1024 * 1024


def test_every_key_is_one_that_kubernetes_knows(rendered: Rendered) -> None:
    """Nothing is lost on the way through the API's own types: no key is misspelt or misplaced."""
    assert {"DaemonSet", "ConfigMap"} == set(rendered)
    assert rendered["DaemonSet"] == DaemonSet.from_dict(rendered["DaemonSet"]).to_dict()
    assert rendered["ConfigMap"] == ConfigMap.from_dict(rendered["ConfigMap"]).to_dict()


def test_new_instance_never_meets_the_old_one(rendered: Rendered) -> None:
    """Demand 2: a rolling update stops the old plugin before the new one starts."""
    assert {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}} == rendered["DaemonSet"][
        "spec"
    ]["updateStrategy"]


def test_starts_before_others_and_everywhere(rendered: Rendered) -> None:
    """Demand 3: the plugin is critical for the node and tolerates every taint."""
    assert "system-node-critical" == _pod(rendered)["priorityClassName"]
    assert [{"operator": "Exists"}] == _pod(rendered)["tolerations"]


def test_memory_limit_is_twice_what_was_measured(rendered: Rendered) -> None:
    """Demand 4: the limit leaves room, the request is no less than what it takes, the CPU is not limited."""
    resources = _container(rendered)["resources"]

    assert 2 * MEASURED * 1024 * 1024 <= _bytes(resources["limits"]["memory"])
    assert MEASURED * 1024 * 1024 <= _bytes(resources["requests"]["memory"])
    assert {"memory"} == set(resources["limits"])


def test_least_privilege(rendered: Rendered) -> None:
    """No capability, no escalation, a read-only root, the default filters, no token, no host namespaces; root's uid."""
    pod, container = _pod(rendered), _container(rendered)

    assert {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == container["securityContext"]
    assert {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}} == pod["securityContext"]
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName", "initContainers"} & set(pod)


def test_host_folders(rendered: Rendered) -> None:
    """Of the host there are folders only, and only the kubelet's plugin folder can be written to."""
    volumes = {volume["name"]: volume.get("hostPath") for volume in _pod(rendered)["volumes"]}
    mounts = {mount["name"]: mount for mount in _container(rendered)["volumeMounts"]}

    assert {
        "device-plugins": {"path": "/var/lib/kubelet/device-plugins", "type": "Directory"},
        "pod-resources": {"path": "/var/lib/kubelet/pod-resources", "type": "Directory"},
        "dev": {"path": "/dev", "type": "Directory"},
        "sys": {"path": "/sys", "type": "Directory"},
        "config": None,
    } == volumes
    assert set(volumes) == set(mounts)
    assert {"device-plugins"} == {name for name, mount in mounts.items() if not mount.get("readOnly")}
    # A file, or a part of a ConfigMap, would be the one from the start for ever.
    assert not any("subPath" in mount for mount in mounts.values())


def test_arguments_are_the_programs(rendered: Rendered) -> None:
    """Every argument is an option of the command, and every path in one is mounted."""
    container = _container(rendered)
    command, *arguments = container["args"]
    options = {name for option in device_plugin.commands[command].params for name in option.opts}
    given = dict(argument.split("=", 1) for argument in arguments)
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]

    assert set(given) <= options
    for path in (value for value in given.values() if value.startswith("/")):
        assert any(path == place or path.startswith(f"{place}/") for place in mounted), path


def test_probes_ask_what_is_served(rendered: Rendered) -> None:
    """Liveness and readiness go to the port that the program listens on."""
    container = _container(rendered)
    (port,) = container["ports"]

    assert f"--listen=:{port['containerPort']}" in container["args"]
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        assert {"path": path, "port": port["name"]} == container[probe]["httpGet"]
        # The program itself takes up to two seconds to say that it is stuck.
        assert container[probe]["timeoutSeconds"] > 2


def test_stops_in_time(rendered: Rendered) -> None:
    """The plugin needs two seconds to leave; the pod gives it a little more."""
    assert 2 < _pod(rendered)["terminationGracePeriodSeconds"] <= 10


def test_selector_fits_the_pods(rendered: Rendered) -> None:
    """The DaemonSet finds its own pods."""
    spec = rendered["DaemonSet"]["spec"]

    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_configuration_is_a_good_one(rendered: Rendered, tmp_path: Path) -> None:
    """The ConfigMap that the pods mount holds a configuration that loads."""
    config_map = rendered["ConfigMap"]
    (volume,) = [volume for volume in _pod(rendered)["volumes"] if volume["name"] == "config"]

    assert config_map["metadata"]["name"] == volume["configMap"]["name"]
    assert config_map["metadata"]["namespace"] == rendered["DaemonSet"]["metadata"]["namespace"] == "kube-system"
    assert "example.com/resource" == loader(tmp_path)(config_map["data"]["config.yaml"]).resources[0].name


def test_all_ways_give_the_same_pod(chart: Path) -> None:
    """Demand 28: plain YAML, kustomize and helm are one thing."""
    plain = _pod(_by_kind(manifests.plain()))

    assert plain == _pod(_by_kind(_run(*_kustomize(), str(manifests.SOURCE))))
    assert plain == _pod(_by_kind(_helm(chart)))


def test_versions_are_the_packages(chart: Path) -> None:
    """Image and chart carry the version of the package."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())

    assert f"resource-extend/device-plugin:{__version__}" == _container(_by_kind(manifests.plain()))["image"]
    assert (__version__, __version__) == (about["version"], about["appVersion"])


def test_no_comment_of_the_source_is_left(chart: Path) -> None:
    """What is for the chart only is in the chart only."""
    assert "chart" not in manifests.plain()
    assert "# chart" not in (chart / "templates/daemonset.yaml").read_text()


def test_chart_is_sound(chart: Path) -> None:
    """Helm's own check has nothing against it."""
    if not shutil.which("helm"):
        pytest.skip("needs helm")
    _run("helm", "lint", "--strict", "--kube-version", "1.37.0", str(chart))


def test_chart_options(chart: Path, tmp_path: Path) -> None:
    """What can be chosen ends where it belongs, and what is turned off leaves nothing."""
    values = tmp_path / "values.yaml"
    values.write_text(
        yaml.safe_dump(
            {
                "config": {"resources": [{"name": "a.b/c", "usb": [{"vendor": "0403"}]}]},
                "files": {"list.py": "print('{}')\n"},
                "image": {"repository": "mirror/device-plugin", "tag": "9"},
                "imagePullSecrets": [{"name": "secret"}],
                "kubelet": {"devicePlugins": "/other/device-plugins", "podResources": ""},
                "cdi": {"enabled": True},
                "logFormat": "text",
                "tolerations": [],
                "nodeSelector": {"a": "b"},
                "seLinuxType": "spc_t",
                "podMonitor": {"enabled": True},
            }
        )
    )
    rendered = _by_kind(_helm(chart, "--values", str(values)))
    pod, container = _pod(rendered), _container(rendered)
    volumes = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}

    assert rendered["DaemonSet"] == DaemonSet.from_dict(rendered["DaemonSet"]).to_dict()
    assert {"device-plugins": "/other/device-plugins", "cdi": "/var/run/cdi"}.items() <= volumes.items()
    assert {"device-plugins", "dev", "sys", "config", "cdi"} == set(volumes)
    assert set(volumes) == {mount["name"] for mount in container["volumeMounts"]}
    assert "mirror/device-plugin:9" == container["image"]
    assert not any("pod-resources" in argument for argument in container["args"])
    assert "--log-format=text" in container["args"]
    assert "tolerations" not in pod
    assert ("b", [{"name": "secret"}]) == (pod["nodeSelector"]["a"], pod["imagePullSecrets"])
    assert {"type": "spc_t"} == pod["securityContext"]["seLinuxOptions"]
    assert "print('{}')\n" == rendered["ConfigMap"]["data"]["list.py"]
    (tmp_path / "config.yaml").write_text(rendered["ConfigMap"]["data"]["config.yaml"])
    assert "a.b/c" == load_config(str(tmp_path / "config.yaml")).resources[0].name
    assert "metrics" == rendered["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["port"]


def test_chart_refuses_a_wrong_configuration(chart: Path) -> None:
    """Mistakes in the configuration are found before anything is installed."""
    said = _helm(chart, "--set", "config.resources[0].colour=red", expect=1)

    assert "colour" in said
    assert "config" in json.loads((chart / "values.schema.json").read_text())["properties"]
