"""Generate question sets in the formats of related benchmarks from any scene graph. Each answer is computed and proved."""
