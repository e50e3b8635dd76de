"""The paper's experiments: jobs, published numbers, claims, tables, figures and their page.

Read in this order: protocol, experiments, baseline_jobs, detector_jobs, paper_jobs, published,
tables, claims, remarks, figures, illustrations, reproduction_page.
"""
