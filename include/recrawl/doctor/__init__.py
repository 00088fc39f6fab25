"""What `recrawl doctor` looks at: each part of the machine that a round needs, with its mend."""
