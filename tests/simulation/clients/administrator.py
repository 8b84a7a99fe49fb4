"""What an administrator does: topics for now."""

from __future__ import annotations

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from tests.simulation.clients.client import Client, Lost


class Administrator(Client):
    """One at a time, and each until it is done."""

    async def create_topic(self, name: str, partitions: int, replicas: int, **configs: str) -> None:
        wanted = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        while True:
            try:
                response = await self.ask(
                    self.any_broker(), CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 5, timeout_s=10
                )
                if response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
                self.note(f"{name} is not created: {ErrorCode(response.topics[0].error_code).name}")
            except Lost:
                pass
            await self.pause()
