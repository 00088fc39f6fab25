"""The command `recrawl`.

Modules are imported by the command that needs them, so that `recrawl --help` is instant.
"""
