"""The messages against bytes made from the upstream descriptions (specification, kubernetes 1.5)."""

from typing import Any

import pytest
from google.protobuf.message import DecodeError

from resource_extend.kubernetes.api import (
    DEVICE_PLUGIN,
    PLUGIN_WATCHER,
    POD_RESOURCES,
    REGISTRATION,
    Messages,
    device_plugin,
    methods,
    plugin_registration,
    pod_resources,
)

GOLDEN: list[tuple[Messages, str, dict[str, Any], str]] = [
    (
        device_plugin,
        "DevicePluginOptions",
        {"pre_start_required": True, "get_preferred_allocation_available": True},
        "08011001",
    ),
    (
        device_plugin,
        "RegisterRequest",
        {
            "version": "v1beta1",
            "endpoint": "a.sock",
            "resource_name": "example.com/x",
            "options": {"get_preferred_allocation_available": True},
        },
        "0a07763162657461311206612e736f636b1a0d6578616d706c652e636f6d2f7822021001",
    ),
    (
        device_plugin,
        "ListAndWatchResponse",
        {
            "devices": [
                {"ID": "d0", "health": "Healthy", "topology": {"nodes": [{"ID": 0}, {"ID": 1}]}},
                {"ID": "d1", "health": "Unhealthy"},
            ]
        },
        "0a150a02643012074865616c7468791a060a000a0208010a0f0a0264311209556e6865616c746879",
    ),
    (
        device_plugin,
        "PreferredAllocationRequest",
        {
            "container_requests": [
                {"available_deviceIDs": ["d0", "d1"], "must_include_deviceIDs": ["d1"], "allocation_size": 1}
            ]
        },
        "0a0e0a0264300a026431120264311801",
    ),
    (
        device_plugin,
        "PreferredAllocationResponse",
        {"container_responses": [{"deviceIDs": ["d1"]}]},
        "0a040a026431",
    ),
    (
        device_plugin,
        "AllocateRequest",
        {"container_requests": [{"devices_ids": ["d0", "d1"]}]},
        "0a080a0264300a026431",
    ),
    (
        device_plugin,
        "AllocateResponse",
        {
            "container_responses": [
                {
                    "envs": {"K": "V"},
                    "mounts": [{"host_path": "/h", "container_path": "/c", "read_only": True}],
                    "devices": [{"host_path": "/dev/a", "container_path": "/dev/b", "permissions": "rw"}],
                    "annotations": {"n": "v"},
                    "cdi_devices": [{"name": "v.io/c=d"}],
                }
            ]
        },
        "0a3e0a060a014b120156120a0a022f6312022f6818011a140a062f6465762f6212062f6465762f611a02727722060a016e120176"  # noqa: ISC004
        "2a0a0a08762e696f2f633d64",
    ),
    (device_plugin, "PreStartContainerRequest", {"devices_ids": ["d0"]}, "0a026430"),
    (
        plugin_registration,
        "PluginInfo",
        {
            "type": "DevicePlugin",
            "name": "example.com/x",
            "endpoint": "/p/a.sock",
            "supported_versions": ["v1beta1"],
        },
        "0a0c446576696365506c7567696e120d6578616d706c652e636f6d2f781a092f702f612e736f636b220776316265746131",
    ),
    (plugin_registration, "RegistrationStatus", {"error": "no"}, "12026e6f"),
    (
        pod_resources,
        "ListPodResourcesResponse",
        {
            "pod_resources": [
                {
                    "name": "p",
                    "namespace": "n",
                    "containers": [
                        {
                            "name": "c",
                            "devices": [
                                {
                                    "resource_name": "example.com/x",
                                    "device_ids": ["d0"],
                                    "topology": {"nodes": [{"ID": 1}]},
                                }
                            ],
                        }
                    ],
                }
            ]
        },
        "0a260a017012016e1a1e0a016312190a0d6578616d706c652e636f6d2f78120264301a040a020801",
    ),
]


@pytest.mark.parametrize(("messages", "name", "fields", "golden"), GOLDEN, ids=[row[1] for row in GOLDEN])
def test_a_message_has_the_upstream_bytes(messages: Messages, name: str, fields: dict[str, Any], golden: str) -> None:
    """A message built by field names serialises to the golden bytes, and those bytes parse to an equal message."""
    message = getattr(messages, name)(**fields)
    assert golden == message.SerializeToString(deterministic=True).hex()
    assert message == type(message).FromString(bytes.fromhex(golden))


def test_there_are_as_many_messages_as_upstream() -> None:
    """The tables hold 20 device plugin messages, 4 of plugin registration, and 15 of pod resources."""
    assert (len(device_plugin.names), len(plugin_registration.names), len(pod_resources.names)) == (20, 4, 15)


def test_defaults_are_not_on_the_wire() -> None:
    """NUMA node 0 is an empty entry, yet it is an entry."""
    assert device_plugin.TopologyInfo(nodes=[{"ID": 0}]).SerializeToString().hex() == "0a00"


def test_bad_utf8_is_refused_when_decoding() -> None:
    """A device id that is not UTF-8 makes the whole message undecodable, as in a kubelet from 1.34 on."""
    with pytest.raises(DecodeError):
        device_plugin.ListAndWatchResponse.FromString(bytes.fromhex("0a030a01ff"))


def test_share_id_tells_absent_from_empty() -> None:
    """`share_id` is optional with presence: an empty one is on the wire, an absent one is not."""
    assert pod_resources.ClaimResource(share_id="").SerializeToString().hex() == "2a00"
    assert not pod_resources.ClaimResource().HasField("share_id")


def test_unknown_fields_of_newer_kubelets_are_skipped() -> None:
    """A field number that the tables do not have is no error (a newer kubelet may add one)."""
    assert pod_resources.PodResources.FromString(bytes.fromhex("0a0170" + "7a0178")).name == "p"


def test_json_names_match_the_protobuf_compiler() -> None:
    """Field spelling follows the upstream files, also where it is odd."""
    fields = device_plugin.ContainerPreferredAllocationRequest.DESCRIPTOR.fields
    assert [f.name for f in fields] == ["available_deviceIDs", "must_include_deviceIDs", "allocation_size"]
    assert [f.json_name for f in fields] == ["availableDeviceIDs", "mustIncludeDeviceIDs", "allocationSize"]


def test_the_services_have_their_methods() -> None:
    """Four services with eleven methods; a method's request and response are message classes."""
    count = {name: len(methods(name)) for name in (REGISTRATION, DEVICE_PLUGIN, PLUGIN_WATCHER, POD_RESOURCES)}
    assert count == {REGISTRATION: 1, DEVICE_PLUGIN: 5, PLUGIN_WATCHER: 2, POD_RESOURCES: 3}
    request, response = methods(DEVICE_PLUGIN)["Allocate"]
    assert (
        request.DESCRIPTOR.full_name,
        response.DESCRIPTOR.full_name,
    ) == ("v1beta1.AllocateRequest", "v1beta1.AllocateResponse")


def test_an_unknown_message_is_named() -> None:
    """Asking for a message that the package does not have says which."""
    with pytest.raises(AttributeError, match="v1beta1 has no message Nothing"):
        _ = device_plugin.Nothing
