"""`kpybroker doctor`: why a client cannot work with a cluster, step by step, with a fix for each finding.

It looks as a client does: names, connections, what a port speaks, versions, login, the addresses that the brokers
advertise, and what the cluster says of itself. `run.doctor` is the way in. Everything but the check with librdkafka
and `--write` uses the standard library and `connect.wire`, so that it works where nothing is installed. Nothing is
changed in the cluster without `--write`. `replicas` is another command: it compares the logs of replicas.
"""
