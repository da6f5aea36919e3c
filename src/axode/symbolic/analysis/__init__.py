"""What a mechanism can do: mobility, actuation, symmetries, conflicting wheels."""
