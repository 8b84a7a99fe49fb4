"""What all pipelines share: their options, the Spark session, checkpoints, outputs that have each row once, the run."""
