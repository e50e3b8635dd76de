"""fewlier compared with other methods, all given the same few labels.

Read in this order: collection, peer_jobs, comparison_tables, overview_table, comparison_figure,
parts_tables, discovery_page, adgym_published, adgym_jobs, adgym_tables, comparison_page.
"""
