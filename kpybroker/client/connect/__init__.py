"""How a command reaches the cluster: its configuration, the clients, and what a failure means.

`settings.load` reads the options, `admin.Cluster` is the way in for everything that confluent-kafka offers, and
`wire.WireCluster` for the rest. What never lives here: what is asked, and how it is shown.
"""
