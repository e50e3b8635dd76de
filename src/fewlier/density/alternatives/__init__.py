"""Densities other than MADE.

Read in this order: vae, flow, autoencoder.
"""
