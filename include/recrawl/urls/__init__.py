"""URLs as a crawler sees them: canonical form, keys, filters, scope."""
