"""A detector for other programs: as an ONNX graph, as a model of MLflow.

Read in this order: mlflow, mlflow_code, onnx.
"""
