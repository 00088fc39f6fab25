"""The only pyspark under the package: session, tables, rounds, the fold."""
