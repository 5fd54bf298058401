"""How a request at etcd fails, beside the system's own errors."""


class Unanswered(Exception):  # noqa: N818 - a state, which may still turn out well
    """A request whose answer does not come. `processed` is False when the peer surely did nothing with the request."""

    def __init__(self, reason: str, processed: bool = True):
        super().__init__(reason)
        self.processed = processed


class Refusal(Exception):  # noqa: N818 - an answer, though not the wanted one
    """The peer's answer is an error: its gRPC code and text."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code
