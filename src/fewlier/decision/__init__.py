"""What a score means: thresholds, p-values, drift, evaluation. No torch.

Read in this order: threshold, evidence, calibration, drift, evaluation.
"""
