"""Sessions that let a judge work through a campaign: people at a terminal, programs, language models."""
