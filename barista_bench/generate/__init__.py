"""Generate question sets in related benchmarks' formats from any scene graph; each answer is computed and proved."""
