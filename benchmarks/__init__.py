"""What is measured: speed, and accuracy on labelled tables."""
