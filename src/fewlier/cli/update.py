"""`fewlier update`: add labelled rows to a model."""

from fewlier.cli import options
from fewlier.cli.fit import save
from fewlier.cli.inputs import check_file_output, open_table_and_model, read_label
from fewlier.cli.screen import announcing


def update(  # noqa: PLR0913 - options of a command are its arguments
    model: options.ModelFile,
    table: options.Data,
    label: options.Label,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    output: options.ModelOutput = None,
    as_json: options.AsJson = False,
) -> None:
    """Add labelled rows to a model, without the table that it was fitted to."""
    target = output or model
    check_file_output(target, "A model", table)
    as_before = "the model is as before."
    with open_table_and_model(table, model, "updating", as_before) as (file, detector, show):
        from fewlier.files import update_file

        column = read_label(label, anomaly, normal)
        update_file(detector, file, column, progress=announcing("updating", show))
    save(detector, target, as_json)
