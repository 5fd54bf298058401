"""gRPC over unix sockets with the messages of `api`: handlers for a server, calls for a client. No generated code.

The kubelet's own settings are followed: `localhost` as authority, 4 MiB as the most that a client takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from resource_extend.errors import PluginError
from resource_extend.kubernetes import api

Handler = Callable[[Any, Any], Any]


def to_bytes(message: Any) -> bytes:
    """Serialise a message; bytes that were serialised before go through as they are."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def _refusing(handler: Callable[[Any, Any], Awaitable[Any]]) -> Handler:
    """Turn an error that is meant for people into a gRPC status with its text."""

    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await handler(request, context)
        except PluginError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

    return call


def handlers(service: str, implementation: Mapping[str, Handler]) -> grpc.GenericRpcHandler[Any, Any]:
    """Make a server's handlers for `service` from coroutine functions, async generators for streaming methods."""
    table = {}
    for name, (request, _) in api.methods(service).items():
        handler = implementation[name]
        if name in api.STREAMING:
            if not inspect.isasyncgenfunction(handler):
                raise TypeError(f"{service}/{name} has to be an async generator")
            make = grpc.unary_stream_rpc_method_handler
        else:
            make, handler = grpc.unary_unary_rpc_method_handler, _refusing(handler)
        table[name] = make(handler, request_deserializer=request.FromString, response_serializer=to_bytes)
    return grpc.method_handlers_generic_handler(service, table)


def open_channel(path: str, authority: str = "localhost") -> grpc.aio.Channel:
    """Open a channel of its own (no shared connection, no shared delay) to the unix socket at `path`."""
    return grpc.aio.insecure_channel(
        f"unix:{path}",
        options=[
            ("grpc.default_authority", authority),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", api.MESSAGE_LIMIT),
            ("grpc.initial_reconnect_backoff_ms", 1000),
            ("grpc.max_reconnect_backoff_ms", 5000),
        ],
    )


class Client:
    """The calls of one service as attributes: `Client(channel, DEVICE_PLUGIN).Allocate(request, timeout=1)`."""

    def __init__(self, channel: grpc.aio.Channel, service: str) -> None:
        for name, (_, response) in api.methods(service).items():
            make: Any = channel.unary_stream if name in api.STREAMING else channel.unary_unary
            setattr(
                self,
                name,
                make(f"/{service}/{name}", request_serializer=to_bytes, response_deserializer=response.FromString),
            )

    def __getattr__(self, name: str) -> Any:
        """Tell type checkers that calls are attributes; only unknown names get here."""
        raise AttributeError(f"the service has no method {name}")


def error_text(error: grpc.RpcError) -> str:
    """Say in one line what a failed call got: the status and the other side's text."""
    if isinstance(error, grpc.aio.AioRpcError):
        return " ".join(f"{error.code().name}: {error.details()}".split())
    return " ".join(str(error).split())
