"""Just enough of an API client to set a scene and to look at it, independent of the tool that is checked."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any


class ApiError(Exception):
    """An answer other than 2xx."""

    def __init__(self, code: int, body: Any) -> None:
        self.code = code
        self.body = body
        super().__init__(f"{code}: {body.get('message') if isinstance(body, dict) else body}")


class Client:
    """Calls with one user's token, each on a connection of its own."""

    def __init__(self, port: int, authority: Path, token: str) -> None:
        self._port = port
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(authority))

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """Status code and document, whatever they are."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=30)
        try:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind or "application/json"}
            connection.request(method, path, data, {**headers, "Accept": "application/json"})
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(raw)
        except ValueError:
            return answer.status, raw.decode(errors="replace")

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The document.

        Raises:
            ApiError: the server answered something else than 2xx.
        """
        code, document = self.request(method, path, body, kind)
        if code >= 300:
            raise ApiError(code, document)
        return document

    def get(self, path: str) -> Any:
        """GET."""
        return self.call("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """POST."""
        return self.call("POST", path, body)

    def delete(self, path: str, body: Any = None) -> Any:
        """DELETE."""
        return self.call("DELETE", path, body)
