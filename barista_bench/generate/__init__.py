"""Generate question sets in related benchmarks' formats from any scene graph. Each answer is computed and proved."""
