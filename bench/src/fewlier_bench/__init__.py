"""What the project claims of fewlier, repeatable: the paper's experiments, and comparisons."""
