"""`AnomalyDetector`: the scikit-learn face of the method."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, final

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fewlier.decision.drift import Drift
from fewlier.density import read_density
from fewlier.density.base import DensitySettings
from fewlier.density.made import Made
from fewlier.errors import UserError, parameter
from fewlier.fitting.fit import fit_plan, fit_update
from fewlier.fitting.kept_rows import KeptRows
from fewlier.fitting.recipe import read_recipe, read_seed
from fewlier.fitting.summary import summarise
from fewlier.fitting.training_rows import read_training_rows, read_validation
from fewlier.modelfile.file import Saved, load, save
from fewlier.process import markup
from fewlier.process.memory import within_memory
from fewlier.process.progress import Progress, no_progress
from fewlier.reasons.explanation import Explanation, reasons_of_anomalies
from fewlier.score.held_out import held_out_scores
from fewlier.score.model import FittedModel
from fewlier.scoring.scored import Scored
from fewlier.table import Table
from fewlier.table.arrays import Floats, Ints
from fewlier.table.frame import Origin
from fewlier.table.labels import Labels
from fewlier.table.matching import match_rows
from fewlier.training.history import MemberHistory
from fewlier.training.plan import Plan, make_plan, plan_with_validation
from fewlier.training.settings import Selection, Training
from fewlier.training.unlabelled import Unlabelled


@final
class AnomalyDetector(ClassifierMixin, BaseEstimator):
    """Finds anomalies in tables from normal rows and a handful of labelled anomalies.

    A neural density p(x) is trained so that normal rows are likely and labelled anomalies are
    less likely than normal rows (Iwata & Yamanaka 2019); an unlikely row is an anomaly. A binary
    classifier with classes 0 (normal) and 1 (anomaly) that also fits without labels.

    Parameters
    ----------
    columns : mapping of str to str, str, or None
        What columns hold, by name, where the inferred kind is not right: a kind ("real", "binary",
        "count", "positive" or "category"), or the distribution that scores the column
        ("gaussian_mixture", "bernoulli", "poisson", "gamma" or "categorical"; each belongs to one
        kind). If the numbers of a text column can be read in two ways, give an example of how they
        are written: "1.234,5", or "count:1.234,5" with a kind. If its dates can, give their
        pattern: "%d/%m/%Y". "ignore" leaves a column out; identifiers and free text are left out
        with a warning unless declared. A single kind, such as "real", is for all that can take it.
    missing : number, str, several, mapping of columns to these, or None
        What also stands for a missing cell: -200, or ``{"age": [0, -1]}``.
    density : str, Made, Vae, Flow or Autoencoder
        The model of normal rows: "made", "vae", "flow" or "autoencoder" with its default sizes, or
        an object with others, such as ``Made(hidden=(128,))``.
    selection : {"average", "best"}
        "average" is the most accurate. It averages densities with several lambdas, and adds how
        near a row is to normal rows and to labelled anomalies, and what trees and rules learned
        from the labels. "best" is the paper's rule: one density, with the lambda and epoch of the
        highest validation AUC; its score is -log p(x), but for rows with impossible or far cells.
    unlabelled : {"robust", "normal"}
        What to make of rows without a label; if y is None, these are all rows. "robust": anomalies
        may be hidden among them, so those far less likely than the rest count less in training,
        and some are left out of validation. "normal": they are normal rows.
    training : Training or None
        How the density is trained, such as ``Training(max_epochs=50)``: its lambdas, epochs,
        batches and learning rate; None for the defaults.
    false_alarm_rate : float
        Share of fresh normal rows that may score above the threshold.
    keep_rows : bool
        Whether to keep a sample of the training rows, also in the model file, so that `update`
        can add labels later: up to 5,500 rows or 16 MB. With "average", rows that scores compare
        with are kept in any case, in standardised form.
    device : {"auto", "cpu", "cuda"}
        Where to compute; "auto" uses a GPU if there is one.
    random_state : int, RandomState or None
        Seed; the same seed on the same machine gives the same numbers.

    Attributes
    ----------
    classes_ : array([0, 1])
    summary_ : Summary
        What the fit did; ``print(detector.summary_)``.
    model_ : FittedModel
        The fitted model itself.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> fruit = pd.DataFrame({"grams": [*range(190), *range(900, 910)]})
    >>> fruit["melon"] = [0.0] * 150 + [None] * 45 + [1.0] * 5
    >>> detector = AnomalyDetector(false_alarm_rate=0.05, random_state=0).fit(fruit, "melon")
    >>> new = pd.DataFrame({"grams": [95.0, 950.0]}, index=["apple", "melon"])
    >>> detector.score_frame(new)["is_anomaly"].to_dict()
    {'apple': False, 'melon': True}
    >>> detector.explain(new).top(1)[0].column
    'grams'
    >>> detector.set_threshold(contamination=0.1).summary_.rule
    'contamination 10 %'
    >>> detector.update(pd.DataFrame({"grams": [800, 810]}), [1, 1]).summary_.n_anomaly
    7
    >>> detector.drift(fruit[["grams"]] + 500).columns
    ('grams',)
    >>> AnomalyDetector.as_published().density
    Made(hidden=(500,), n_orderings=10)
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's parameters are constructor arguments
        self,
        *,
        columns: Mapping[str, str] | str | None = None,
        missing: object = None,
        density: str | DensitySettings = "made",
        selection: Selection = "average",
        unlabelled: Unlabelled = "robust",
        training: Training | None = None,
        false_alarm_rate: float = 0.01,
        keep_rows: bool = True,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.columns = columns
        self.missing = missing
        self.density = density
        self.selection = selection
        self.unlabelled = unlabelled
        self.training = training
        self.false_alarm_rate = false_alarm_rate
        self.keep_rows = keep_rows
        self.device = device
        self.random_state = random_state

    @classmethod
    def as_published(cls) -> "AnomalyDetector":
        """Return a detector with the settings of the paper's experiments.

        Mixtures of three Gaussians on columns scaled to [0, 1], one hidden layer of 500 units, ten
        orderings, and the lambda and epoch, out of 100, of the highest validation AUC. Rows without
        a label count as normal. The paper leaves the size of batches open. `set_params` changes
        what should differ, such as ``device`` or ``random_state``.
        """
        return cls(
            columns="real",
            density=Made(hidden=(500,), n_orderings=10, n_components=3),
            selection="best",
            unlabelled="normal",
            training=Training(
                lambdas=(0, 0.1, 1, 10, 100, 1e3, 1e4),
                max_epochs=100,
                patience=None,
                batch_size=100,
                learning_rate=1e-3,
            ),
        )

    def set_params(self, **params: object) -> "AnomalyDetector":
        """Set parameters, also those of density and training: ``set_params(density__latent=5)``.

        A density given by name, and a training of None, become objects that can be changed.

        Examples
        --------
        >>> from fewlier import AnomalyDetector
        >>> AnomalyDetector().set_params(density="vae", density__latent=5)
        AnomalyDetector(density=Vae(latent=5))
        """
        density = params.get("density", self.density)
        if isinstance(density, str) and any(name.startswith("density__") for name in params):
            params["density"] = read_density(density)
        training = params.get("training", self.training)
        if training is None and any(name.startswith("training__") for name in params):
            params["training"] = Training()
        super().set_params(**params)
        return self

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        validation: tuple[object, object] | None = None,
        progress: Progress = no_progress,
    ) -> "AnomalyDetector":
        """Learn what normal rows look like, and what sets the labelled anomalies apart.

        Parameters
        ----------
        X : DataFrame (pandas, polars, pyarrow), Arrow stream (a DuckDB relation) or 2-D array
            Training rows. Numbers and text may be mixed, and cells may be missing. A stream of any
            length, a dataset of pyarrow or an iterable of record batches is read once, with y its
            label column; memory holds a sample of the rows.
        y : sequence, Labels, str, LabelColumn, or None
            1 (True) for an anomaly, 0 (False) for a normal row, missing for an unlabelled one; or
            the column of X that says so. ``fewlier.table.label_column.LabelColumn`` reads text,
            and keeps kinds too.
        validation : (X, y), or None
            Rows that choose epoch and lambda; without them, some of the training rows do.
        progress : callable
            Called at the start and after each epoch with the share of the epochs that is done.
        """
        started = time.perf_counter()
        parameters = self.get_params(deep=False)
        recipe, seed = read_recipe(parameters), read_seed(self.random_state)
        rows = read_training_rows(X, y, parameters, seed)
        schema, training = rows.schema, (rows.table, rows.labels.codes)
        how = seed, recipe.unlabelled, rows.counts
        if validation is None:
            plan = make_plan(schema, training, recipe.selection, *how)
        else:
            held_out = read_validation(validation, schema)
            plan = plan_with_validation(schema, training, held_out, *how)
        with within_memory():
            model, history = fit_plan(plan, recipe, progress)
        self.__dict__.pop("_plan", None)
        if rows.is_complete:
            self._plan = plan
        self._remember_columns(rows.names, rows.has_names)
        return self._take(model, plan, history, rows.notes, started)

    def update(
        self, X: object, y: object, *, progress: Progress = no_progress
    ) -> "AnomalyDetector":
        """Learn from more labelled rows, without the table that the detector was fitted to.

        This is a new fit to these rows and to those that the model keeps, with columns read as
        before. `false_alarm_rate` sets the threshold again.

        Parameters
        ----------
        X, y : as in `fit`
            Rows that are labelled now. The label of a row that the model keeps replaces the one
            it had; a kept row given again with its label, or without one, adds nothing.
        progress : callable
            Called at the start and after each epoch with the share of the epochs that is done.
        """
        started = time.perf_counter()
        model, kept = self._model(), self._kept_rows
        if kept is None:
            raise UserError(
                f"This model cannot be updated: it was fitted with {parameter('keep_rows', False)} "
                f"and kept no training rows. Fit again with {parameter('keep_rows', True)}."
            )
        recipe, seed = read_recipe(self.get_params(deep=False)), read_seed(self.random_state)
        table = self._table(X)
        labels = Labels.of(y, table.n_rows, X)
        news = kept.news(model.encoder.encode(table), labels.codes)
        more = labels.take(news.is_news)
        counts = self.summary_.counts.updated(more.counts, news.replaced)
        plan = kept.plan(model.encoder, news, recipe.unlabelled, seed, counts)
        with within_memory():
            updated, history = fit_update(model, plan, recipe, progress)
        notes = [*more.notes, *more.doubts, news.note(plan)]
        by_rate = model.calibration.at_false_alarm_rate(self.false_alarm_rate)
        if model.calibration.threshold != by_rate.threshold:
            notes.append(f"The threshold had been moved ({self.summary_.rule}); move it again.")
        if hasattr(self, "_plan"):
            self._plan = self._plan.after(plan)
        return self._take(updated, plan, history, notes, started)

    def _take(
        self,
        model: FittedModel,
        plan: Plan,
        history: Sequence[MemberHistory],
        notes: Iterable[str],
        started: float,
    ) -> "AnomalyDetector":
        """Take over what a fit has made of a plan."""
        self.model_ = model
        self._kept_rows = KeptRows.draw(plan) if self.keep_rows else None
        self.summary_ = summarise(model, plan, history, notes, time.perf_counter() - started)
        model.calibration.warn_of_rate(self.false_alarm_rate)
        return self

    def anomaly_score(self, X: object) -> Floats:
        """Return how anomalous each row is, shape (n,), in `score_unit_`; higher is odder."""
        return self._scored(X).scores

    def decision_function(self, X: object) -> Floats:
        """Return `anomaly_score` minus `threshold_`: positive means anomaly."""
        return self.anomaly_score(X) - self.threshold_

    def predict(self, X: object, *, fdr: float | None = None) -> Ints:
        """Return 1 for rows that score above the threshold, else 0.

        X are new rows. Rows of the fit score lower than new rows like them; `labels_` says which
        of them are above the threshold, each by what has not seen it.

        With `fdr`, a false-discovery rate, the threshold is that of this batch instead: as low as
        it can be while at most this share of the rows above it is expected to be normal
        (Benjamini & Hochberg 1995). To flag k of n rows takes about n / (k fdr) held-out normals.
        """
        scored, calibration = self._scored(X), self._model().calibration
        if fdr is None:
            return scored.is_anomaly.astype(np.int64)
        moved = calibration.at_discovery_rate(fdr, calibration.counts(scored.scores))
        moved.warn_if_too_few("false-discovery rate", fdr, "no row can be flagged")
        return moved.is_anomaly(scored.scores).astype(np.int64)

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each row being normal and being an anomaly, shape (n, 2).

        It rises with the score, and is as well calibrated as the labels allow. The odds come from
        held-out normals, from labelled anomalies that members did not train on, and from the share
        of anomalies that `set_threshold` was given; without one, 1/2 is at the threshold. With few
        labels the probability is cautious and rough. With fewer than two it only orders rows and
        is not a frequency (`p_value` is one). ``model_.calibration.meaning`` says which.
        """
        probability = self._model().calibration.probability(self.anomaly_score(X))
        return np.column_stack([1 - probability, probability])

    def score_samples(self, X: object) -> Floats:
        """Return log p(x) of the weighted mixture of members, higher is more normal.

        For "vae" it is a bound; an autoencoder has no density, and raises an error.
        """
        model = self._model()
        return model.scorer.log_density(model.encoder.encode(self._table(X)))

    def p_value(self, X: object) -> Floats:
        """Return the conformal p-value of each row being normal.

        The share of held-out normals that score at least as high, counting the row itself.
        ``model_.calibration.guarantee`` says what it promises.
        """
        return self._scored(X).p_values

    def drift(self, X: object) -> Drift:
        """Return how rows as a whole differ from the training normals.

        `str()` of the result names what differs.
        """
        model, scored = self._model(), self._scored(X)
        cells = model.reference.count(scored.encoded)
        return model.drift(model.calibration.counts(scored.scores), cells)

    def explain(self, X: object) -> Explanation:
        """Return what each column adds to the score of each row; its `meaning` says how."""
        return Explanation(self._scored(X), self._model(), Origin.of(X))

    def score_frame(self, X: object, *, with_reason: bool = False) -> Any:  # noqa: ANN401
        """Return a DataFrame of the library of X: score, verdict and p-value of each row.

        It has the columns that `fewlier score` adds, `anomaly_score`, `is_anomaly` and `p_value`,
        and with `with_reason` the `reason` of each anomaly in words. Rows keep their order, and of
        pandas their index. An array or a stream gives a pyarrow table.
        """
        scored = self._scored(X)
        reasons = reasons_of_anomalies(self._model(), scored) if with_reason else None
        return Origin.of(X).frame(scored.to_arrow(reasons))

    def set_threshold(
        self,
        *,
        false_alarm_rate: float | None = None,
        contamination: float | None = None,
        cost_miss: float | None = None,
        cost_alarm: float | None = None,
    ) -> "AnomalyDetector":
        """Move the threshold without refitting.

        Parameters
        ----------
        false_alarm_rate : float
            Share of fresh normal rows that may score above it.
        contamination : float
            Share of new rows that should score above it, if they are like the training rows; with
            costs, the share of anomalies among the rows to come.
        cost_miss, cost_alarm : float
            What a missed anomaly and a false alarm cost. A row is flagged if that is cheaper by
            `predict_proba`. `contamination` may be left out if every training row is labelled:
            then it is the share of labelled anomalies.
        """
        model = self._model()
        calibration = model.calibration.by_rule(
            false_alarm_rate=false_alarm_rate,
            contamination=contamination,
            cost_miss=cost_miss,
            cost_alarm=cost_alarm,
            is_labelled=not self.summary_.n_unlabelled,
        )
        self.model_ = model.with_calibration(calibration)
        self.summary_ = replace(self.summary_, decision=calibration.decision)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to a file, whole or not at all; scores survive bit for bit.

        It is read back and checked before it takes the place of another. Of the training rows it
        keeps those that `update` needs, unless ``keep_rows=False``, and those that scores compare
        with, unless ``selection="best"``; a `random_state` that is not an integer is not kept.
        """
        model, has_names = self._model(), hasattr(self, "feature_names_in_")
        parameters = self.get_params(deep=False)
        save(Saved(parameters, has_names, model, self._kept_rows, self.summary_), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "AnomalyDetector":
        """Read a detector that `save` has written; a damaged file raises a `FormatError`.

        It scores on the GPU if its `device` says so and there is one, else on the CPU.
        """
        saved = load(path, cls().get_params(deep=False))
        detector = cls(**saved.parameters)
        detector.model_, detector._kept_rows = saved.model, saved.kept_rows
        detector._remember_columns(saved.model.encoder.schema.given, saved.has_column_names)
        detector.summary_ = saved.summary
        return detector

    @property
    def threshold_(self) -> float:
        """Score above which a row is predicted to be an anomaly."""
        return self._model().calibration.threshold

    @property
    def history_(self) -> tuple[MemberHistory, ...]:
        """Learning curve, best epoch, validation criterion and weight of every member."""
        return self.summary_.history

    @property
    def score_unit_(self) -> str:
        """Unit of the score: "standard units", with "best" "nats" or "reconstruction error"."""
        return self._model().ensemble.unit

    @property
    def decision_scores_(self) -> Floats:
        """Anomaly scores of the rows given to `fit`, each by what has not seen it.

        By members that trained neither on it nor on a copy, in the fit or later, if there are any;
        not its own neighbour, nor are its copies; by other trees. Computed when asked for.
        """
        model = self._model()
        if not hasattr(self, "_plan"):
            raise AttributeError(
                "decision_scores_ and labels_ need the training rows; a loaded model does not keep "
                "them. Call anomaly_score or predict on the rows."
            )
        return held_out_scores(self._plan, model.scorer)

    @property
    def labels_(self) -> Ints:
        """1 for rows given to `fit` whose `decision_scores_` lie above the threshold, else 0."""
        return self._model().calibration.is_anomaly(self.decision_scores_).astype(np.int64)

    def _model(self) -> FittedModel:
        check_is_fitted(self, "model_")
        model: FittedModel = self.model_
        return model

    def _scored(self, X: object) -> Scored:
        return Scored.of(self._model(), self._table(X))

    def _table(self, X: object) -> Table:
        """Read rows to score into the form of the training table, by position without names."""
        was_named = hasattr(self, "feature_names_in_")
        return match_rows(X, self._model().encoder.schema, was_named=was_named)

    def _remember_columns(self, names: tuple[str, ...], has_names: bool) -> None:
        """Set what scikit-learn asks of a fitted classifier; names only if the user gave some."""
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = len(names)
        if has_names:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _repr_html_inner(self) -> str:
        """Show what the fit did; before the fit, scikit-learn's diagram."""
        if not hasattr(self, "model_"):
            diagram: str = super()._repr_html_inner()
            return diagram
        return markup.fragment(" ".join(repr(self).split()), self.summary_.to_markup())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the ways to show it; scikit-learn may be told to show no HTML."""
        as_html = getattr(self, "_repr_html_", None)
        return {"text/plain": repr(self)} | ({"text/html": as_html()} if as_html else {})

    def __sklearn_tags__(self) -> Tags:
        """Describe the detector to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # The threshold keeps a false-alarm rate; on balanced classes that costs accuracy.
        tags.classifier_tags.poor_score = True
        tags.target_tags.required = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
