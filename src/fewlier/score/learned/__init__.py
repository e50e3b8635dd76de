"""What is learned from the labels: trees and rules.

Read in this order: bagged, nodes, steps, supervised, trees.
"""
