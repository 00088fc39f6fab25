"""From a bare Python to a machine that can crawl: environment, Java, Delta's two jars.

Standard library only: `python3 -m recrawl.bootstrap` runs before any package is installed.
Every part is done once, marked as done, and left alone after that, so a second run needs no
network; a run that failed half-way goes on where it stopped.
"""
