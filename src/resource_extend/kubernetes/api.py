"""The kubelet's gRPC APIs as tables: device plugin `v1beta1`, `pluginregistration`, pod resources `v1`.

The messages are made at import from the field tables below (specification, kubernetes 1.1 - 1.3): no generated code, so
any protobuf runtime fits, and no `.proto` file to keep beside them. They live in a descriptor pool of their own, so a
program that has loaded generated code of the same APIs may import this module as well.

A field is written `number name type`, in the upstream files' own spelling; `*type` is repeated, `?type` is optional,
`map` is map<string,string>.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

API_VERSION = "v1beta1"
HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"
KUBELET_SOCKET = "kubelet.sock"
MESSAGE_LIMIT = 4 * 1024 * 1024  # bytes: the kubelet's receive limit
PLUGIN_TYPE = "DevicePlugin"  # what a device plugin calls itself in PluginInfo

_Field = descriptor_pb2.FieldDescriptorProto

_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "string": _Field.TYPE_STRING,
}

_DEVICE_PLUGIN = {
    "Empty": "",
    "DevicePluginOptions": "1 pre_start_required bool, 2 get_preferred_allocation_available bool",
    "RegisterRequest": "1 version string, 2 endpoint string, 3 resource_name string, 4 options DevicePluginOptions",
    "ListAndWatchResponse": "1 devices *Device",
    "TopologyInfo": "1 nodes *NUMANode",
    "NUMANode": "1 ID int64",
    "Device": "1 ID string, 2 health string, 3 topology TopologyInfo",
    "PreStartContainerRequest": "1 devices_ids *string",
    "PreStartContainerResponse": "",
    "PreferredAllocationRequest": "1 container_requests *ContainerPreferredAllocationRequest",
    "ContainerPreferredAllocationRequest": (
        "1 available_deviceIDs *string, 2 must_include_deviceIDs *string, 3 allocation_size int32"
    ),
    "PreferredAllocationResponse": "1 container_responses *ContainerPreferredAllocationResponse",
    "ContainerPreferredAllocationResponse": "1 deviceIDs *string",
    "AllocateRequest": "1 container_requests *ContainerAllocateRequest",
    "ContainerAllocateRequest": "1 devices_ids *string",
    "AllocateResponse": "1 container_responses *ContainerAllocateResponse",
    "ContainerAllocateResponse": (
        "1 envs map, 2 mounts *Mount, 3 devices *DeviceSpec, 4 annotations map, 5 cdi_devices *CDIDevice"
    ),
    "CDIDevice": "1 name string",
    "Mount": "1 container_path string, 2 host_path string, 3 read_only bool",
    "DeviceSpec": "1 container_path string, 2 host_path string, 3 permissions string",
}

_PLUGIN_REGISTRATION = {
    "InfoRequest": "",
    "PluginInfo": "1 type string, 2 name string, 3 endpoint string, 4 supported_versions *string",
    "RegistrationStatus": "1 plugin_registered bool, 2 error string",
    "RegistrationStatusResponse": "",
}

_POD_RESOURCES = {
    "AllocatableResourcesRequest": "",
    "AllocatableResourcesResponse": "1 devices *ContainerDevices, 2 cpu_ids *int64, 3 memory *ContainerMemory",
    "ListPodResourcesRequest": "",
    "ListPodResourcesResponse": "1 pod_resources *PodResources",
    "PodResources": (
        "1 name string, 2 namespace string, 3 containers *ContainerResources, 4 cpu_ids *int64, "
        "5 memory *ContainerMemory"
    ),
    "ContainerResources": (
        "1 name string, 2 devices *ContainerDevices, 3 cpu_ids *int64, 4 memory *ContainerMemory, "
        "5 dynamic_resources *DynamicResource"
    ),
    "ContainerMemory": "1 memory_type string, 2 size uint64, 3 topology TopologyInfo",
    "ContainerDevices": "1 resource_name string, 2 device_ids *string, 3 topology TopologyInfo",
    "TopologyInfo": "1 nodes *NUMANode",
    "NUMANode": "1 ID int64",
    "DynamicResource": "2 claim_name string, 3 claim_namespace string, 4 claim_resources *ClaimResource",
    "ClaimResource": (
        "1 cdi_devices *CDIDevice, 2 driver_name string, 3 pool_name string, 4 device_name string, 5 share_id ?string"
    ),
    "CDIDevice": "1 name string",
    "GetPodResourcesRequest": "1 pod_name string, 2 pod_namespace string",
    "GetPodResourcesResponse": "1 pod_resources PodResources",
}


def _json_name(name: str) -> str:
    """Spell a field the way the protobuf compiler's JSON mapping does: `read_only` becomes `readOnly`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _add_field(message: Any, package: str, text: str) -> None:
    """Add the field written as `number name type` to a message description."""
    number, name, kind = text.split()
    field = message.field.add(name=name, number=int(number), json_name=_json_name(name), label=_Field.LABEL_OPTIONAL)
    if kind == "map":
        entry_name = name[:1].upper() + name[1:] + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        _add_field(entry, package, "1 key string")
        _add_field(entry, package, "2 value string")
        field.label, field.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
        field.type_name = f".{package}.{message.name}.{entry_name}"
        return
    if kind[0] == "*":
        field.label, kind = _Field.LABEL_REPEATED, kind[1:]
    elif kind[0] == "?":
        kind = kind[1:]
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"


def _describe(package: str, table: dict[str, str]) -> descriptor_pb2.FileDescriptorProto:
    """Describe a package of messages as the file that the protobuf compiler would have read."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}/api.proto", package=package, syntax="proto3")
    for name, fields in table.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            _add_field(message, package, text)
    return file


class Messages:
    """The message classes of one package, as attributes: `device_plugin.Device(ID="a", health="Healthy")`."""

    def __init__(self, package: str, table: dict[str, str]) -> None:
        self.package = package
        self.names = tuple(table)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(_describe(package, table))
        for name in table:
            setattr(self, name, message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")))

    def __getattr__(self, name: str) -> Any:
        """Tell type checkers that any attribute may be a message class; only unknown names get here."""
        raise AttributeError(f"{self.package} has no message {name}")


device_plugin = Messages("v1beta1", _DEVICE_PLUGIN)
plugin_registration = Messages("pluginregistration", _PLUGIN_REGISTRATION)
pod_resources = Messages("v1", _POD_RESOURCES)

# (messages, service) -> method -> (request, response). ListAndWatch is the only one that streams.
REGISTRATION = "v1beta1.Registration"
DEVICE_PLUGIN = "v1beta1.DevicePlugin"
PLUGIN_WATCHER = "pluginregistration.Registration"
POD_RESOURCES = "v1.PodResourcesLister"

_METHODS: dict[str, tuple[Messages, dict[str, tuple[str, str]]]] = {
    REGISTRATION: (device_plugin, {"Register": ("RegisterRequest", "Empty")}),
    DEVICE_PLUGIN: (
        device_plugin,
        {
            "GetDevicePluginOptions": ("Empty", "DevicePluginOptions"),
            "ListAndWatch": ("Empty", "ListAndWatchResponse"),
            "GetPreferredAllocation": ("PreferredAllocationRequest", "PreferredAllocationResponse"),
            "Allocate": ("AllocateRequest", "AllocateResponse"),
            "PreStartContainer": ("PreStartContainerRequest", "PreStartContainerResponse"),
        },
    ),
    PLUGIN_WATCHER: (
        plugin_registration,
        {
            "GetInfo": ("InfoRequest", "PluginInfo"),
            "NotifyRegistrationStatus": ("RegistrationStatus", "RegistrationStatusResponse"),
        },
    ),
    POD_RESOURCES: (
        pod_resources,
        {
            "List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
            "GetAllocatableResources": ("AllocatableResourcesRequest", "AllocatableResourcesResponse"),
            "Get": ("GetPodResourcesRequest", "GetPodResourcesResponse"),
        },
    ),
}

STREAMING = frozenset({"ListAndWatch"})


def methods(service: str) -> dict[str, tuple[Any, Any]]:
    """Give each method of a service with its request and response classes."""
    messages, table = _METHODS[service]
    return {name: (getattr(messages, q), getattr(messages, r)) for name, (q, r) in table.items()}
