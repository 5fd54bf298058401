"""The fake API server agrees with the table of facts, which the real one is checked against as well."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubernetes.extended_resource.fake_api_server import FakeApiServer
from kubernetes.extended_resource.server_facts import FACTS, Fact, Request, check


@pytest.fixture(scope="module")
def request_() -> Iterator[Request]:
    """Calls to one fake server."""
    with FakeApiServer() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)

        def call(method: str, path: str, body: Any, kind: str) -> tuple[int, Any]:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Authorization": "Bearer admin-token", "Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        yield call
        connection.close()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.words)
def test_the_fake_server_does_what_the_real_one_does(fact: Fact, request_: Request) -> None:
    """Each fact of the table holds on the fake server."""
    check(fact, request_, "n1")


def test_facts_have_names_of_their_own() -> None:
    """No two facts say the same."""
    assert len(FACTS) == len({fact.words for fact in FACTS})
