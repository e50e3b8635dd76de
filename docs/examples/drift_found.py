# %% [markdown]
# # Drift that was found
#
# A detector for the quality control of a bakery was fitted in spring. Every week it scores a
# thousand batches. In June the number of alarms jumps. Are there more bad batches, or does the
# table no longer look as it did? `drift` answers that, column by column.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewlier import AnomalyDetector
from fewlier.report.plots import PValueDisplay, ScoreDisplay


def batches(n, seed, *, fahrenheit=False, new_flour=False, dead_probe=False, n_bad=0):
    """Return batches of bread, of which the last `n_bad` went wrong."""
    rng = np.random.default_rng(seed)
    oven = rng.normal(220, 6, n)
    minutes = 45 - 0.3 * (oven - 220) + rng.normal(0, 1.5, n)
    flour = rng.choice(["rye", "wheat", "spelt"], n, p=[0.3, 0.5, 0.2])
    if new_flour:
        flour = np.where(rng.random(n) < 0.3, "emmer", flour)
    moisture = np.where(flour == "rye", 44, 39) - 0.4 * (minutes - 45) + rng.normal(0, 0.7, n)
    weight = rng.normal(1000, 12, n)
    table = pd.DataFrame(
        {
            "oven": oven,
            "minutes": minutes,
            "flour": flour,
            "moisture": moisture,
            "weight": weight,
        },
        index=[f"{seed}-{number:04d}" for number in range(n)],
    )
    if n_bad:
        table.loc[table.index[-n_bad:], "moisture"] += rng.uniform(4, 7, n_bad)
    if fahrenheit:
        table["oven"] = table["oven"] * 9 / 5 + 32
    if dead_probe:
        table["moisture"] = table["moisture"].mask(rng.random(n) < 0.4)
    return table.round(1)


detector = AnomalyDetector(false_alarm_rate=0.01, random_state=0).fit(batches(3000, seed=1))
detector

# %% [markdown]
# ## Seven weeks
#
# The alarms of each week, and the columns that have drifted. What happened when is known to us, and
# not to the detector.

# %%
weeks = {
    "week 19": batches(1000, seed=19),
    "week 20": batches(1000, seed=20, n_bad=30),
    "week 21": batches(1000, seed=21),
    "week 22": batches(1000, seed=22, dead_probe=True),
    "week 23": batches(1000, seed=23, fahrenheit=True),
    "week 24": batches(1000, seed=24, new_flour=True),
    "week 25": batches(1000, seed=25, new_flour=True, n_bad=30),
}
drifts = {week: detector.drift(rows) for week, rows in weeks.items()}
overview = pd.DataFrame(
    {
        week: {
            "alarms": int(detector.predict(rows).sum()),
            "drifted columns": ", ".join(drifts[week].columns) or "none",
        }
        for week, rows in weeks.items()
    }
).T
overview

# %%
_, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(
    overview.index, overview["alarms"], color=["C3" if d.found else "C0" for d in drifts.values()]
)
ax.axhline(10, color="C2", linestyle="--", label="expected of 1,000 normal batches")
ax.set(ylabel="alarms", yscale="log", title="alarms; red: drift found")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Week 20 has more alarms than it should, and no drift: thirty odd rows among a thousand change no
# column as a whole. These are bad batches, and the reasons say what is wrong with them. That is
# what the detector is for, and it needs no change.

# %%
detector.explain(weeks["week 20"])

# %% [markdown]
# ## Week 22: gaps
#
# The moisture probe failed in two batches out of five. The drift is in the gaps, not in the values.

# %%
drifts["week 22"]

# %% [markdown]
# **Decided**: have the probe repaired. The detector can go on, as it scores rows with gaps by their
# other columns. In spring this column had no gap, so every batch with one is flagged; that is right
# as long as a probe should not fail.
#
# ## Week 23: another unit

# %%
drifts["week 23"]

# %%
oven = pd.DataFrame(
    {"spring": batches(1000, seed=1)["oven"], "week 23": weeks["week 23"]["oven"].to_numpy()}
)
oven.describe().loc[["mean", "std", "min", "max"]].round(1)

# %% [markdown]
# The oven was replaced, and the new one reports degrees Fahrenheit: 428 °F are 220 °C.
#
# **Decided**: convert the column before scoring. Fitting again would be wrong: the detector would
# learn the new unit and forget the old batches, though nothing about baking has changed.

# %%
repaired = weeks["week 23"].assign(oven=lambda rows: (rows["oven"] - 32) * 5 / 9)
print(f"{int(detector.predict(repaired).sum())} alarms after the conversion.")
detector.drift(repaired)

# %% [markdown]
# ## Week 24: something new

# %%
drifts["week 24"]

# %%
ScoreDisplay.from_detector(detector, weeks["week 24"])
plt.show()

# %% [markdown]
# Three batches in ten are now made of emmer, which the detector has never seen. Every batch of it
# is flagged.
#
# **Decided**: this is the new normal, so the detector is fitted again, to weeks 24 to 26. Spring is
# left out: with it, emmer would still look rarer than it is. The thirty bad batches of week 25 have
# come to light in the meantime, and join as labels.

# %%
later = [weeks["week 24"], weeks["week 25"], batches(1000, seed=26, new_flour=True)]
known = np.zeros(3000)
known[1970:2000] = 1
detector = AnomalyDetector(false_alarm_rate=0.01, random_state=0).fit(pd.concat(later), known)

week_27, is_bad = batches(1000, seed=27, new_flour=True, n_bad=30), np.arange(1000) >= 970
alarms = detector.predict(week_27) == 1
print(f"Flagged: {(alarms & is_bad).sum()} of 30 bad batches, {(alarms & ~is_bad).sum()} others.")
detector.drift(week_27)

# %% [markdown]
# A last look at what the false-alarm rate promises: of normal batches, a share α has a p-value of
# at most α. The curve of the normal batches of week 27 stays near the diagonal, within the band in
# which 95 % of fits lie.

# %%
PValueDisplay.from_detector(detector, week_27[~is_bad])
plt.show()
