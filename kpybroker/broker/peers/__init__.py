"""Requests from this broker to the others: connections, channels and retries.

Start at `peers.Peers`, which makes everything else here: one request, a connection that is kept, the channel to the
controller, and the controller's ordered channels to each broker.

Never here: what a request or a response means (`cluster`, `replication` and `coordinators` know), or who is where in
the cluster. Addresses and the controller's id are looked up through callbacks.
"""
