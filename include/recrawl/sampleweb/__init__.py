"""A small web of made-up sites on loopback, so that a first round needs no network."""

from recrawl.sampleweb.server import SampleWeb

__all__ = ["SampleWeb"]
