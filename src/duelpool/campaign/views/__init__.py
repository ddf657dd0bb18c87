"""What others read of a campaign: tally, status, exports, previews."""
