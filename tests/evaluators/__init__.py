"""What evaluators ask of their tools, as a user writes it."""
