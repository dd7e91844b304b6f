"""Every write of the catalog, by noun."""
