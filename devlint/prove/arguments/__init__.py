"""What a call is given: candidate arguments, and what hints at them."""
