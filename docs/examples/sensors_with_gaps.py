# %% [markdown]
# # Sensors with gaps
#
# A pump has five sensors, read once a minute. Sensors drop out for a while, so about one reading in
# eight is missing. Twelve faults are known. Most methods need a complete table, and whatever fills
# the gaps is then taken for a measurement. `fewlier` leaves a missing reading out: the others say
# what there is to say, and the gap itself counts only if gaps are unusual there.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier import AnomalyDetector
from fewlier.report.plots import ReasonDisplay, ScoreDisplay

GAPS = {"speed": 0.0, "flow": 0.1, "pressure": 0.15, "temperature": 0.2, "vibration": 0.15}
SENSORS = list(GAPS)


def readings(n, n_faults, seed):
    """Return readings of a pump with gaps, and which of them were taken during a fault."""
    rng = np.random.default_rng(seed)
    speed = rng.normal(1500, 120, n)
    flow = 0.04 * speed + rng.normal(0, 1.2, n)
    pressure = 12 - 0.1 * flow + rng.normal(0, 0.25, n)
    temperature = 20 + 0.02 * speed + rng.normal(0, 1, n)
    vibration = np.exp(0.001 * (speed - 1500) + rng.normal(0, 0.2, n))
    readings = {"speed": speed, "flow": flow, "pressure": pressure}
    table = pd.DataFrame(readings | {"temperature": temperature, "vibration": vibration})
    table["mode"] = np.where(speed > 1500, "high", "low")
    faults = rng.permutation(n)[:n_faults]
    clogged, worn = faults[::2], faults[1::2]
    # A clogged filter: too little flow for the speed, too much pressure for the flow.
    table.loc[clogged, "flow"] -= rng.uniform(5, 9, len(clogged))
    table.loc[clogged, "pressure"] += rng.uniform(0.5, 1.5, len(clogged))
    # A worn bearing: it shakes and warms up.
    table.loc[worn, "vibration"] *= rng.uniform(1.6, 2.4, len(worn))
    table.loc[worn, "temperature"] += rng.uniform(2, 5, len(worn))
    for sensor, share in GAPS.items():
        table.loc[rng.random(n) < share, sensor] = np.nan
    labels = np.zeros(n, dtype=int)
    labels[faults] = 1
    return table.round(2), labels


train, known = readings(2000, 12, seed=0)
test, truth = readings(4000, 200, seed=1)
train.isna().mean().rename("share of gaps").to_frame().T

# %% [markdown]
# No single reading of a fault is impossible: every value also occurs in normal operation. What is
# wrong is how the readings fit together, and that can be seen in a row only if the sensors
# concerned were on.

# %%
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for label, name, marker in ((0, "normal", "."), (1, "fault", "x")):
    rows = test[truth == label]
    ax.plot(rows["speed"], rows["flow"], marker, alpha=0.6, label=name, markersize=5)
ax.set(xlabel="speed (1/min)", ylabel="flow (l/min)")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Fit, with the gaps as they are

# %%
detector = AnomalyDetector(false_alarm_rate=0.02, random_state=0).fit(train, known)
detector

# %% [markdown]
# For comparison: an isolation forest on the same sensors with each gap filled by the median. It
# cannot use the labels, so we also show our detector fitted without them.

# %%
median = train[SENSORS].median()
forest = IsolationForest(random_state=0).fit(train[SENSORS].fillna(median))
scores = {
    "fewlier, 12 faults known": detector.anomaly_score(test),
    "fewlier, no label": AnomalyDetector(random_state=0).fit(train).anomaly_score(test),
    "isolation forest, gaps filled": -forest.score_samples(test[SENSORS].fillna(median)),
}
pd.DataFrame(
    {
        name: {
            "AUC": roc_auc_score(truth, score),
            "average precision": average_precision_score(truth, score),
        }
        for name, score in scores.items()
    }
).T.round(3)

# %% [markdown]
# ## Does a gap make a row look odd?
#
# It should not, as gaps are ordinary here. We asked for 2 % of false alarms over all normal rows,
# and look at the share among normal rows with and without gaps. Rows with two gaps or more are
# flagged a little more often, as less is left to show that they are normal; the rest are below 2 %.

# %%
is_flagged = detector.predict(test) == 1
n_gaps = test.isna().sum(axis=1).clip(upper=2)
normal = pd.DataFrame({"gaps": n_gaps, "flagged": is_flagged})[truth == 0]
normal.groupby("gaps")["flagged"].agg(rows="size", share_flagged="mean").round(3)

# %%
ScoreDisplay.from_detector(detector, test, truth)
plt.show()

# %% [markdown]
# ## Why a row was flagged
#
# For each sensor the explanation says what was expected given the others. A sensor that is off adds
# little, and what it should have shown is still predicted from the rest.

# %%
faults_with_gap = np.flatnonzero((truth == 1) & is_flagged & (n_gaps > 0))
row = int(faults_with_gap[0])
ReasonDisplay.from_detector(detector, test, row=row)
plt.show()

# %%
detector.explain(test.iloc[faults_with_gap[:5]])

# %% [markdown]
# ## A gap that should not be there
#
# The speed sensor has never been off. When it is, the gap itself is a reason.

# %%
reading = test.iloc[[np.flatnonzero((truth == 0) & (n_gaps == 0))[0]]]
off = reading.assign(speed=np.nan)
pd.concat(
    [
        detector.explain(rows).to_frame().assign(rows=name)
        for name, rows in (("speed known", reading), ("speed missing", off))
    ]
).query("column == 'speed'")[["rows", "value", "contribution", "expected", "expected_missing"]]

# %% [markdown]
# ## What we decide
#
# Nothing is filled in: the table goes to the detector as the sensors deliver it, and nearly four
# faults in five are found at less than two false alarms in a hundred normal readings. A missing
# speed remains an alarm, because it has never happened. If that sensor is to be switched off at
# times, readings with it off belong in the training table; then its gaps are ordinary too.
