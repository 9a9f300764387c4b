"""The contract as data: limits, exit statuses, option tables. Imports nothing of the project."""
