"""From any scene graph to question sets in the formats of the sibling benchmarks, each answer computed and proved."""
