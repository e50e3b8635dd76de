"""A fitted model as one ONNX graph: columns in; score, p-value and decision out.

Read in this order: constants, columns, search, density, nearest, learned, whole, gamma, check,
export.
"""
