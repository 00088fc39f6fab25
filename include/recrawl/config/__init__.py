"""The one configuration model and its one loader."""

from recrawl.config.load import load_configuration
from recrawl.config.model import Configuration

__all__ = ["Configuration", "load_configuration"]
