"""DVL2: transfers that cost more than they need to."""
