"""All odd behaviours by their path: `/odd/<name>`."""

from tests.web import odd_answers, odd_wire
from tests.web.registry import BEHAVIOURS, Gone

__all__ = ["BEHAVIOURS", "Gone", "odd_answers", "odd_wire"]
