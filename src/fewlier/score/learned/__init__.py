"""What is learned from the labels: trees and rules.

Read in this order: nodes, steps, supervised, trees.
"""
