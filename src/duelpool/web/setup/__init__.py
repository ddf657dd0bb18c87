"""Setup in the browser: upload files, look at the dry run, create the campaign."""
