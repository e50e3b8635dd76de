"""What a score means: thresholds, p-values, drift, evaluation. No torch.

Read in this order: threshold, ranking, evidence, calibration, reference, drift, evaluation.
"""
