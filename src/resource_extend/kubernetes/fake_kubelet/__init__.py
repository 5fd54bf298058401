"""A kubelet good enough to register, list, allocate, restart and misbehave: for tests of device plugins.

It follows the kubelet's device manager in both generations (specification, kubernetes 8.4): up to 1.36 it knows a
plugin by its resource, from 1.37 on by its resource and socket. Everything runs in the caller's asyncio loop, in a
folder of the caller's, without rights:

    async with FakeKubelet(folder, "ge137") as kubelet:
        ...start the plugin...
        await kubelet.wait_for("example.com/resource", capacity=2, allocatable=2)
        pod = await kubelet.admit("pod", {"example.com/resource": 1})
"""

from resource_extend.kubernetes.fake_kubelet.devices import Amounts
from resource_extend.kubernetes.fake_kubelet.faults import FakeClock, Faults, Limits
from resource_extend.kubernetes.fake_kubelet.kubelet import FakeKubelet
from resource_extend.kubernetes.fake_kubelet.pods import AdmissionError, ContainerError, Pod

__all__ = ["AdmissionError", "Amounts", "ContainerError", "FakeClock", "FakeKubelet", "Faults", "Limits", "Pod"]
