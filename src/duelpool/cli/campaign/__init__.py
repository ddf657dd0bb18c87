"""Commands on a campaign: from the pool to the export, and everything between."""
