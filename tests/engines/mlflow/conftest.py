"""Warnings of other packages are theirs: MLflow and SQLAlchemy have some that nobody here mends."""


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "default")
