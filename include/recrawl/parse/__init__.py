"""The pure part of the step `parse`: what a captured body says.

`handlers.parse_capture` turns a capture into a `ParsedPage`; `resolve.resolve_links` turns its
links into edges and rejects. No input makes either raise.
"""
