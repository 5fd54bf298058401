"""From a kubeconfig, or the service account of the pod we run in, to a lightkube client."""

import json
import os
from pathlib import Path

import httpx2
import msgspec
import yaml
from lightkube import Client, KubeConfig
from lightkube.config.kubeconfig import DEFAULT_KUBECONFIG, SingleConfig
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
    where = f"kubeconfig {kubeconfig}" if kubeconfig else "kubeconfig"
    try:
        config = _config(kubeconfig, context)
        return Client(_with_exec_version(config), timeout=httpx2.Timeout(timeout), field_manager=FIELD_MANAGER)
    except OSError as error:
        raise ClusterError(f"{where}: {error.filename or 'a certificate'}: {error.strerror}") from error
    except (ConfigError, msgspec.ValidationError, ValueError) as error:
        raise ClusterError(f"{where}: {error}") from error
    except KeyError as error:
        raise ClusterError(f"{where}: there are no `{error.args[0]}`, or none of that name") from error
    except yaml.YAMLError as error:
        raise ClusterError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except (AttributeError, TypeError) as error:
        raise ClusterError(f"{where}: is no kubeconfig: a mapping with clusters, contexts and users") from error


def _config(kubeconfig: str, context: str) -> SingleConfig:
    """What the context says, its files looked at: lightkube's own errors do not name them."""
    config = _found(kubeconfig).get(context_name=context or None)
    if config is None or config.user is None:
        raise ConfigError("the context names no user")
    for name in (config.cluster.certificate_auth, config.user.client_cert, config.user.client_key):
        if name:
            Path(config.abs_file(name)).open("rb").close()
    return config


def _found(kubeconfig: str) -> KubeConfig:
    if kubeconfig:
        return KubeConfig.from_file(kubeconfig)
    try:
        return KubeConfig.from_service_account()
    except ConfigError:
        path = os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    if os.pathsep in path:
        raise ConfigError("$KUBECONFIG names several files, which is not supported: name one with --kubeconfig")
    try:
        return KubeConfig.from_file(path)
    except ConfigError as error:
        raise ConfigError(f"{error}: name one with --kubeconfig or $KUBECONFIG") from error


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
