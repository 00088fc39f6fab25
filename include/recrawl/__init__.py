"""recrawl: a batch recrawl platform of Airflow rounds, Spark jobs and Delta tables."""

__version__ = "0.1.0"
