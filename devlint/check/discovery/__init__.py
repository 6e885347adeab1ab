"""Discovery: from the paths that a user names to the Python files behind them."""
