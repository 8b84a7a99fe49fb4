"""Changes of Kafka Connect: connectors restarted, paused, stopped and deleted (`states`), made and configured
(`configs`). What never lives here: a request to a broker.
"""
