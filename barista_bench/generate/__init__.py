"""Question sets in the formats of the sibling benchmarks out of any scene graph, each answer computed and proved."""
