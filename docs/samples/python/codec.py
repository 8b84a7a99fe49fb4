"""Encode a request and decode it again."""

from kpybroker.wire.codec import decode, encode
from kpybroker.wire.messages.metadata import MetadataRequest

request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="demo")], allow_auto_topic_creation=False)
data = encode(request, version=9)
print(decode(MetadataRequest, data, version=9).topics[0].name)
