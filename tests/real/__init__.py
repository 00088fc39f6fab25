"""Real input: HTML documentation of Debian packages, served by nginx under many host names on loopback."""
