"""What the crawl knows, declared: vocabularies, columns and tables."""
