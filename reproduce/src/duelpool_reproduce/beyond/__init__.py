"""Beyond the papers: what they leave open, measured with the same tools."""
