"""`fewlier export`: a model as an ONNX graph."""

from pathlib import Path
from typing import Annotated

from fewlier.cli import options
from fewlier.cli.inputs import check_file_output
from fewlier.cli.options import option
from fewlier.cli.screen import echo, echo_json, say
from fewlier.errors import missing_package
from fewlier.process.signals import said_if_stopped


def export(
    model: options.ModelFile,
    output: Annotated[Path, option("ONNX file to write.", "FILE", "--output", "-o")],
    check: Annotated[
        bool,
        option(
            "Run it in onnxruntime first, and write it only if it scores as the model does.",
            "",
            "--check",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a model as one ONNX graph: columns in; score, p-value and decision out."""
    check_file_output(output, "A graph", model)
    _require_extra(check)
    with said_if_stopped(lambda: "stopped; no graph was written."):
        say("writing the graph; this takes half a minute to a few minutes.")
        from fewlier.detector import AnomalyDetector
        from fewlier.export.onnx.export import export as write
        from fewlier.export.onnx.export import facts_of

        detector = AnomalyDetector.load(model)
        found = write(detector.model_, output, is_checked=check, tell=say)
    size = output.stat().st_size
    if as_json:
        facts = {"output": str(output), "bytes": size, "check": found and found._asdict()}
        echo_json(facts | facts_of(detector.model_))
        return
    checked = "not checked"
    if found is not None:
        checked = f"{found.n_rows} made-up rows score as in the model, within {found.score:.1e}"
    echo(f"graph  {output}, {size / 1e6:.1f} MB; {checked}")


def _require_extra(check: bool) -> None:
    """Raise an error unless the packages that write and run graphs are installed."""
    try:
        import onnx  # noqa: F401 - only whether it is there
        import onnxscript  # noqa: F401

        if check:
            import onnxruntime  # noqa: F401
    except ModuleNotFoundError as error:
        needs = "An ONNX graph needs onnx, onnxscript and onnxruntime"
        raise missing_package(needs, error, "onnx") from error
