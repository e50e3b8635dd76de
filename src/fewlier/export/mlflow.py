"""Detectors as models of MLflow: a folder with the `.fewlier` file, and without any pickle."""

import tempfile
from pathlib import Path
from typing import Any

from fewlier import __version__
from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError
from fewlier.files.atomic import PathLike
from fewlier.modelfile.probes import probe_rows, table_of
from fewlier.table import Encoder

CODE = Path(__file__).with_name("mlflow_code.py")
"""What MLflow runs to load a model; it copies the file into the model's folder."""
ARTIFACT = "detector"


def save_model(detector: AnomalyDetector, path: PathLike, **more: Any) -> None:  # noqa: ANN401
    """Write a detector to a new folder, as `mlflow.pyfunc.load_model` and `mlflow models` read it.

    Parameters
    ----------
    detector : AnomalyDetector
        A fitted detector.
    path : str or PathLike
        The folder; there must be none yet.
    more
        Further arguments of `mlflow.pyfunc.save_model`, such as `pip_requirements`.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.export.mlflow import save_model
    >>> X = pd.DataFrame({"amount": np.random.default_rng(0).normal(50, 10, 200)})
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(detector, f"{folder}/model")
    ...     model = mlflow.pyfunc.load_model(f"{folder}/model")
    ...     found = model.predict(pd.DataFrame({"amount": [50.0, 400.0]}))
    >>> found["is_anomaly"].tolist()
    [False, True]
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        arguments = _arguments(detector, Path(folder), more)
        mlflow.pyfunc.save_model(str(path), **arguments)


def log_model(detector: AnomalyDetector, name: str = "detector", **more: Any) -> Any:  # noqa: ANN401
    """Log a detector to the current run; return what `mlflow.pyfunc.log_model` returns.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.export.mlflow import log_model
    >>> X = pd.DataFrame({"amount": np.random.default_rng(0).normal(50, 10, 200)})
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> with mlflow.start_run():
    ...     logged = log_model(detector)
    >>> model = mlflow.pyfunc.load_model(logged.model_uri)
    >>> model.predict(pd.DataFrame({"amount": [50.0, 400.0]}))["is_anomaly"].tolist()
    [False, True]
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        return mlflow.pyfunc.log_model(name=name, **_arguments(detector, Path(folder), more))


def _arguments(detector: AnomalyDetector, folder: Path, more: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that saving and logging share."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    path = folder / "detector.fewlier"
    detector.save(path)
    encoder = detector.model_.encoder
    names = dict.fromkeys(column.source for column in encoder.schema.columns)
    outputs = {"anomaly_score": "double", "is_anomaly": "boolean", "p_value": "double"}
    signature = ModelSignature(
        # A detector reads numbers, flags, text and dates in any form. MLflow would refuse most of
        # them: of a column of fractions whole numbers, of one of text categories.
        Schema([ColSpec(AnyType(), name, required=False) for name in names]),
        Schema([ColSpec(kind, name) for name, kind in outputs.items()]),
        ParamSchema([ParamSpec("reasons", "integer", 0)]),
    )
    own = {
        "python_model": str(CODE),
        "artifacts": {ARTIFACT: str(path)},
        "signature": signature,
        "input_example": _example(encoder),
        "pip_requirements": [f"fewlier=={__version__}"],
    }
    return own | more


def _example(encoder: Encoder) -> Any:  # noqa: ANN401 - a DataFrame of pandas
    """Return made-up rows; none if the model reads dates, which are made up in no form."""
    if any(column.date is not None for column in encoder.schema.columns):
        return None
    import pandas as pd

    return pd.DataFrame(table_of(encoder, probe_rows(encoder)[:2]).cells)


def _mlflow() -> Any:  # noqa: ANN401 - a module
    try:
        import mlflow.pyfunc
    except ModuleNotFoundError as error:
        raise UserError(
            f"A model of MLflow needs mlflow; {error.name} is not installed. Run: pip install "
            "mlflow"
        ) from error
    return mlflow
