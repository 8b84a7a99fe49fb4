"""A worker that dies with a job in its hands, and the next one that gets it."""

from confluent_kafka import AcknowledgeType

from kpybroker.testing import Broker


def job_of(worker):
    return broker.wait_for(lambda: [*worker.poll(0.1)], 30, "a job")[0]


with Broker() as broker:
    broker.create_topic("jobs")
    broker.produce("jobs", ["resize"])
    dying = broker.share_consumer("workers", "jobs", share_acknowledgement_mode="explicit")
    print("first:", job_of(dying).delivery_count())  # it says nothing more
    next_one = broker.share_consumer("workers", "jobs", share_acknowledgement_mode="explicit")
    broker.clock.advance(seconds=30)  # share.record.lock.duration.ms: the job is free again
    job = job_of(next_one)
    print("again:", job.value(), job.delivery_count())
    next_one.acknowledge(job, AcknowledgeType.ACCEPT)
    next_one.commit_sync(30)
    broker.assert_acknowledged("workers", "jobs", [0])
    next_one.close()
    dying.close()
