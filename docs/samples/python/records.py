"""Build a batch and read its records."""

from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from kpybroker.wire.records.record import iter_records

batch = build_batch([(b"en", b"hello", 0), (b"fr", b"bonjour", 0)])
for position, header in iter_batches(batch):
    for record in iter_records(batch, header, position):
        print(record.offset, bytes(record.key), bytes(record.value))
