"""What one host does with rows: windows, indexes, probing."""
