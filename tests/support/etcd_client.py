"""Another client of etcd than the plugins' own, to plant and read records: grpc over messages made on the spot."""

from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Of etcd's rpc.proto and kv.proto: message -> (field, number, type).
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "KeyValue": [("key", 1, "bytes"), ("mod_revision", 3, "int64"), ("value", 5, "bytes")],
    "RangeRequest": [("key", 1, "bytes"), ("range_end", 2, "bytes")],
    "RangeResponse": [("kvs", 2, "KeyValue")],
    "PutRequest": [("key", 1, "bytes"), ("value", 2, "bytes")],
    "PutResponse": [],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="etcd_of_tests.proto", package="etcd_of_tests", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            if kind in _MESSAGES:
                message.field.add(
                    name=field,
                    number=number,
                    type=kinds.TYPE_MESSAGE,
                    label=kinds.LABEL_REPEATED,
                    type_name=f".etcd_of_tests.{kind}",
                )
            else:
                scalar = {"bytes": kinds.TYPE_BYTES, "int64": kinds.TYPE_INT64}[kind]
                message.field.add(name=field, number=number, type=scalar, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"etcd_of_tests.{name}")) for name in _MESSAGES
    }


class EtcdClient:
    """Puts and prefix reads, as texts."""

    def __init__(self, endpoint: str) -> None:
        self._channel = grpc.insecure_channel(endpoint)
        self._messages = _classes()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _call(self, method: str, **fields: Any) -> Any:
        request, response = (self._messages[f"{method}{end}"] for end in ("Request", "Response"))
        call = self._channel.unary_unary(
            f"/etcdserverpb.KV/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return call(request(**fields), timeout=10, wait_for_ready=True)

    def put(self, key: str, value: str) -> None:
        """Store a value."""
        self._call("Put", key=key.encode(), value=value.encode())

    def read_prefix(self, prefix: str) -> dict[str, str]:
        """Return every value under a prefix, which ends with a slash, by full key."""
        pairs = self._call("Range", key=prefix.encode(), range_end=prefix[:-1].encode() + b"0").kvs
        return {pair.key.decode(): pair.value.decode() for pair in pairs}
