"""From a kubeconfig, or the service account of the pod we run in, to a lightkube client."""

import json

import httpx2
import msgspec
import yaml
from lightkube import Client, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import NameValue
from lightkube.core.exceptions import ConfigError

from resource_extend.kubernetes.extended_resource.errors import ClusterError

FIELD_MANAGER = "extended-resource"
TIMEOUT = 30.0

_EXEC = "client.authentication.k8s.io/"


def connect(kubeconfig: str = "", context: str = "", timeout: float = TIMEOUT) -> Client:
    """A client for the cluster of `context` in `kubeconfig`.

    With neither, as lightkube finds it: the pod's service account, $KUBECONFIG, ~/.kube/config. `timeout` is in
    seconds, for each connect, read and write.

    Raises:
        ClusterError: there is no usable configuration; the text says what is wrong with it.
    """
    try:
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        config = found.get(context_name=context or None)
        if config is None or config.user is None:
            raise ConfigError("the context names no user")
        return Client(_with_exec_version(config), timeout=httpx2.Timeout(timeout), field_manager=FIELD_MANAGER)
    except (ConfigError, OSError, msgspec.ValidationError, ValueError) as error:
        raise ClusterError(f"kubeconfig: {error}") from error
    except (AttributeError, KeyError, TypeError, yaml.YAMLError) as error:
        raise ClusterError(f"kubeconfig: not understood: {' '.join(str(error).split())}") from error


def _with_exec_version(config: SingleConfig) -> SingleConfig:
    """Let lightkube run credential programs of API version v1.

    It knows v1beta1 only, and reads the token from the answer, which is the same in both. The program is told the
    version that the kubeconfig asks for.
    """
    command = config.user.exec if config.user else None
    if command and command.apiVersion == f"{_EXEC}v1":
        told = {"kind": "ExecCredential", "apiVersion": command.apiVersion, "spec": {"interactive": False}}
        command.env = [*(command.env or []), NameValue("KUBERNETES_EXEC_INFO", json.dumps(told))]
        command.apiVersion = f"{_EXEC}v1beta1"
    return config
