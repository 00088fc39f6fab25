"""The Spark jobs of a round, one a step: read, `transform(frames)`, write."""
