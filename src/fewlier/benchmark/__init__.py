"""The paper's experiments, and comparisons like them: jobs, results, tables, figures.

Read in this order: blocks, deep_peers, few_labels, protocol, results, experiments, jobs, peers,
stacks, statistics, execution, footnotes, measuring, published, baseline_jobs, collection,
detector_jobs, tables, claims, comparison, rendering, reproduction, comparison_tables, figures,
remarks, comparison_page, illustrations, page.
"""
