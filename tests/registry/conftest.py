"""A registry whose topic is a list: no broker, no socket, no second thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.registry.api.app import make_app
from kpybroker.registry.api.forward import Forwarder
from kpybroker.registry.service import Service
from kpybroker.registry.store.records import Record
from kpybroker.registry.texts.desk import Replier
from kpybroker.registry.texts.questions import Question, Reply, Unknown
from kpybroker.registry.texts.replies import Replies


class MemoryLog:
    """The topic: what was written is applied at once. `before_append` is called once, as another instance writes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.records: list[Record] = []
        self.before_append: Callable[[], None] | None = None

    def refresh(self) -> None:
        """Nothing is ever behind."""

    def append(self, written: Sequence[Record]) -> None:
        call, self.before_append = self.before_append, None
        if call is not None:
            call()
        for record in written:
            self.records.append(record)
            self._service.apply(*record)


class Direct:
    """Replies to questions in this process, at once."""

    def __init__(self) -> None:
        self._replies = Replies()

    def ask(self, question: Question, client: str) -> Future[Reply]:
        future: Future[Reply] = Future()
        future.set_result(self._replies.reply(question))
        return future


def finished(service: Service, run: Callable[[], Any]) -> Any:
    """The result of what asks questions, as a request does."""
    while True:
        try:
            return run()
        except Unknown as unknown:
            asyncio.run(service.learn(unknown.questions, "the test"))


class Leader:
    """Leads or not, as a test says."""

    def __init__(self) -> None:
        self.leads = True
        self.url: str | None = None

    def is_leader(self) -> bool:
        return self.leads

    def leader_url(self) -> str | None:
        return self.url


class Registry:
    """An instance and a client of it; `call` checks the status and returns the JSON."""

    def __init__(self, desk: Replier | None = None) -> None:
        self.service = Service(lambda: "cluster-1", desk or Direct())
        self.log = MemoryLog(self.service)
        self.leader = Leader()
        self.service.attach(self.log, self.leader)
        self.http = TestClient(make_app(self.service, Forwarder()), base_url="http://127.0.0.1:8081")

    def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        response = self.http.request(method, path, json=body) if body is not None else self.http.request(method, path)
        assert response.status_code == status, response.text
        return response.json()

    def refused(self, method: str, path: str, body: Any = None) -> int:
        """The error code of a request that is refused."""
        response = self.http.request(method, path, json=body) if body is not None else self.http.request(method, path)
        error = response.json()
        assert response.status_code == int(str(error["error_code"])[:3]), response.text
        assert error["message"]
        return int(error["error_code"])

    def register(self, subject: str, schema: str, **more: Any) -> int:
        made = self.call("POST", f"/subjects/{subject}/versions", {"schema": schema, **more})
        return int(made["id"])


@pytest.fixture
def registry() -> Registry:
    return Registry()
