"""`kpybroker metrics`: MBeans of a broker over HTTP, as Jolokia serves them; ours, or a Kafka's with Jolokia's agent.

`watch` does what Kafka's `JmxTool` does. What never lives here: names of MBeans of a broker, and what they mean.
"""
