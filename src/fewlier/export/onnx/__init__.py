"""A fitted model as one ONNX graph: columns in; score, p-value and decision out.

Read in this order: columns, operations, whole, check, export.
"""
