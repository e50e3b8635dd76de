"""The paper's experiments, and comparisons like them: jobs, results, tables, figures."""
