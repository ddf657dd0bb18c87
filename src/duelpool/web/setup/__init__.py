"""Setting up over the web: files are sent, a dry run says what they come to, and then the campaign is made."""
