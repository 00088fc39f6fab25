"""Benchmarks: scripts outside the test run, each with --help (`python -m tests.bench.round`)."""
