"""Error codes and their texts."""

from __future__ import annotations

from kpybroker.wire.errors import ErrorCode, KafkaError


def test_every_code_has_a_sentence_of_its_own() -> None:
    texts = [code.message for code in ErrorCode]
    assert all(text.endswith(".") for text in texts)
    assert len(set(texts)) == len(texts)


def test_a_kafka_error_has_the_text_of_its_code_by_default() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert error.message == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message
    assert KafkaError(ErrorCode.INVALID_REQUEST, "no topic").message == "no topic"
    assert str(KafkaError(ErrorCode.INVALID_REQUEST, "no topic")) == "INVALID_REQUEST: no topic"
