"""WARC 1.1 files (ISO 28500:2017): the only package that knows their form."""
