"""What MLflow runs to load a detector.

It is copied into the folder of a model and run there, under another name than here.
"""

import json
from typing import Any, final


def make_model() -> Any:  # noqa: ANN401 - a PythonModel
    """Return the model that MLflow loads and asks."""
    import pandas as pd
    from mlflow.pyfunc import PythonModel

    from fewlier.detector import AnomalyDetector
    from fewlier.errors import UserError

    @final
    class Detector(PythonModel):  # type: ignore[misc] # MLflow may not be there to be looked into
        def load_context(self, context: Any) -> None:  # noqa: ANN401
            self.detector = AnomalyDetector.load(context.artifacts["detector"])

        def predict(
            self,
            context: Any,  # noqa: ANN401, ARG002 - of the interface
            model_input: pd.DataFrame,
            params: dict[str, Any] | None = None,
        ) -> pd.DataFrame:
            n = int((params or {}).get("reasons", 0))
            if n < 0:
                raise UserError(
                    f"'reasons' must be how many columns to name for each row, 0 or more; got {n}."
                )
            why = self.detector.explain(model_input)
            found = why.scored.columns()
            if n:
                rows = why.tops(n=n)
                found["reasons"] = [json.dumps([one.to_json() for one in row]) for row in rows]
            return pd.DataFrame(found, index=model_input.index)

    return Detector()


if __name__ != "fewlier.export.mlflow_code":
    from mlflow.models import set_model

    set_model(make_model())
