"""Statistics of recordings: lengths, rates and gaps, computed and drawn."""
