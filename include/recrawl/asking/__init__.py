"""Asking the crawl without a JVM: its tables through deltalake, and what they say of a URL."""
