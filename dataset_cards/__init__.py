"""Bodies of the cards that the builders write into published dataset folders."""
