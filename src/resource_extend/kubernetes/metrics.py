"""Prometheus metrics of the device plugin, read from plain counters at the moment of a scrape.

The client library is imported when the first scrape or the server needs it: it costs as much as gRPC itself, and the
first list of devices must not wait for it. Labels stay few: resources and fixed words, never device ids.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from resource_extend.kubernetes.kubelet import State

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from resource_extend.kubernetes.runner import Runner

PREFIX = "device_plugin"


class Offered(Protocol):
    """What the metrics are about: the resources, and how the configuration fares."""

    @property
    def runners(self) -> Iterable[Runner]:
        """The resources that are offered now."""
        ...

    @property
    def generation(self) -> int:
        """How often a configuration was taken, the first included."""
        ...

    @property
    def config_error(self) -> str:
        """Why the latest configuration was not taken, empty when it was."""
        ...


class Collector:
    """Makes the metrics of everything that is offered."""

    def __init__(self, offered: Offered) -> None:
        self._offered = offered

    def collect(self) -> Iterator[Metric]:
        """Give all metrics with their values as of now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        runners = list(self._offered.runners)

        def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["resource", *labels])

        def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
            return CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["resource", *labels])

        devices = gauge("devices", "Devices that are listed, by health.", "health")
        stream = gauge("stream_open", "1 while the kubelet follows the list of this resource.")
        age = gauge("state_age_seconds", "Seconds since the resource entered its state.", "state")
        current = gauge("devices_current", "1 when the latest scan worked and its list was published.")
        size = gauge("list_bytes", "Size of the latest list as a message to the kubelet.")
        seconds = gauge("scan_duration_seconds", "How long the latest scan took.")
        refused = gauge("list_too_large", "1 when the latest list was too large for the kubelet and was not sent.")
        scans = counter("scans", "Scans for devices.")
        failures = counter("scan_failures", "Scans that failed.")
        allocations = counter("allocations", "Containers that Allocate was answered for.")
        refusals = counter("allocation_failures", "Containers that Allocate was refused for.")
        preferred = counter("preferred_allocations", "Containers that a preferred allocation was answered for.")
        streams = counter("streams", "ListAndWatch streams that the kubelet opened.")
        registrations = counter("registrations", "Ends of a try to be offered, by result; ok is success.", "result")
        hooks = counter("hook_runs", "Hooks and health checks that were run, by result.", "hook", "result")
        for runner in runners:
            name, counts, life = runner.resource.name, runner.counts, runner.life
            devices.add_metric([name, "healthy"], runner.table.count(healthy=True))
            devices.add_metric([name, "unhealthy"], runner.table.count(healthy=False))
            stream.add_metric([name], life.state is State.ACTIVE)
            age.add_metric([name, life.state.value], time.monotonic() - life.since)
            current.add_metric([name], not runner.problem)
            size.add_metric([name], len(runner.table.snapshot))
            seconds.add_metric([name], counts.scan_seconds)
            refused.add_metric([name], counts.snapshot_refused)
            scans.add_metric([name], counts.scans)
            failures.add_metric([name], counts.scan_failures)
            allocations.add_metric([name], counts.allocations)
            refusals.add_metric([name], counts.allocation_failures)
            preferred.add_metric([name], counts.preferred)
            streams.add_metric([name], counts.streams)
            for result, number in list(counts.registrations.items()):
                registrations.add_metric([name, result], number)
            for (hook, result), number in list(counts.hooks.items()):
                hooks.add_metric([name, hook, result], number)
        yield from (devices, stream, age, current, size, seconds, refused)
        yield from (scans, failures, allocations, refusals, preferred, streams, registrations, hooks)
        yield GaugeMetricFamily(f"{PREFIX}_config_generation", "Configurations taken.", value=self._offered.generation)
        yield GaugeMetricFamily(
            f"{PREFIX}_config_error",
            "1 when the latest configuration was not taken.",
            value=bool(self._offered.config_error),
        )
