"""Pages of the catalog, by noun. For administrators, save a persona owner's own page."""
