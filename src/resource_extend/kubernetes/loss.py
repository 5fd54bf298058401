"""Why a resource was lost, in words for the log and in one word for the metrics, and the pause that follows."""

from __future__ import annotations

import random

import grpc
import grpc.aio

from resource_extend.errors import PluginError
from resource_extend.kubernetes import rpc

FIRST_DELAY, LAST_DELAY = 1.0, 30.0  # seconds

# What the kubelet says (specification, kubernetes 2.2), and what it means to the reader of the log.
EXPLANATIONS = {
    "is invalid": "the kubelet does not take this resource name",
    "is not supported by kubelet": "this kubelet does not speak v1beta1",
    "failed to dial device plugin": "the kubelet cannot reach our socket: is the folder the kubelet's own one?",
    "already connected": "the kubelet still tracks this socket",
}


class LostError(PluginError):
    """A round with the kubelet is over; `result` is its short name for the metrics."""

    def __init__(self, result: str, text: str) -> None:
        super().__init__(text)
        self.result = result


class Delay:
    """The pause before the next round: 1 s, doubled each time up to 30 s, a fifth more or less by chance."""

    def __init__(self, first: float = FIRST_DELAY, last: float = LAST_DELAY) -> None:
        self._first, self._last = first, last
        self._next = first

    def take(self) -> float:
        """Give this pause in seconds, and make the next one longer."""
        now, self._next = self._next, min(self._next * 2, self._last)
        return now * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries, keeps no secret

    def reset(self) -> None:
        """Start small again."""
        self._next = self._first


def refusal(error: grpc.RpcError, deadline: float) -> LostError:
    """Turn a Register that failed within `deadline` seconds into words."""
    text = rpc.error_text(error)
    code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
    if code is grpc.StatusCode.UNAVAILABLE:
        return LostError("unreachable", f"nobody answers on kubelet.sock: {text.rpartition('error: ')[2]}")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return LostError("timeout", f"Register took longer than {deadline:g} s")
    for words, meaning in EXPLANATIONS.items():
        if words in text:
            return LostError("refused", f"{meaning}; it says: {text}")
    return LostError("refused", f"the kubelet refused: {text}")
