"""What students hand in, turned into values: names, archives, directories and notebooks."""
