"""What the demos share: a broker of their own, feeding a topic, running a pipeline, reading results, tables."""
