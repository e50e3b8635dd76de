"""Methods to compare with: the paper's, and others in use today.

Read in this order: askers, baselines, deep_peers, peers.
"""
