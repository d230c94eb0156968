"""Learning platforms: what students hand in there is collected, and grades go back to them."""
