"""A misbehaving web on loopback: what the crawler is tested against (see README.md)."""

from tests.web.audit import Audit
from tests.web.log import Hit
from tests.web.server import MisbehavingWeb
from tests.web.site import Site

__all__ = ["Audit", "Hit", "MisbehavingWeb", "Site"]
