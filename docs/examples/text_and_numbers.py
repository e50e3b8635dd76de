# %% [markdown]
# # Text, dates and numbers in one table
#
# An export of expense claims as accounting systems write them: amounts such as `1.234,50 €`, dates
# as text, codes, free text, and a running number. Nothing is converted by hand. We look at what
# `fewlier` takes each column for, correct it in one place, and find the claims that do not fit
# together.

# %%
import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewlier import AnomalyDetector, FewlierWarning, Training
from fewlier.report.plots import CurveDisplay, ReasonDisplay

PER_NIGHT = {"BER": 110, "VIE": 130, "ZRH": 190, "LYS": 120}


def euros(amount):
    """Write an amount as German software does."""
    return f"{amount:,.2f} €".translate(str.maketrans(",.", ".,"))


def claims(n, n_odd, seed):
    """Return claims as text, and of each what is odd about it, if anything."""
    rng = np.random.default_rng(seed)
    place = rng.choice(list(PER_NIGHT), n, p=[0.5, 0.25, 0.15, 0.1])
    nights = 1 + rng.poisson(1.2, n)
    price = np.array([PER_NIGHT[code] for code in place])
    amount = nights * price * np.exp(rng.normal(0, 0.1, n))
    weekday = rng.integers(0, 5, n)  # Monday to Friday
    kind = np.full(n, "", dtype=object)
    odd = rng.permutation(n)[:n_odd]
    kind[odd[::2]], kind[odd[1::2]] = "too expensive", "weekend"
    amount[kind == "too expensive"] *= rng.uniform(1.7, 2.3, (kind == "too expensive").sum())
    weekday[kind == "weekend"] = rng.integers(5, 7, (kind == "weekend").sum())
    days = pd.to_timedelta(7 * rng.integers(0, 38, n) + weekday, unit="D")
    hours = pd.to_timedelta(rng.normal(18, 2, n).clip(8, 23), unit="h")
    moment = pd.Timestamp("2026-01-05") + days + hours
    table = pd.DataFrame(
        {
            "claim": [f"R-{seed}{number:05d}" for number in range(n)],
            "submitted": moment.strftime("%d.%m.%Y %H:%M"),
            "place": place,
            "nights": nights,
            "total": [euros(value) for value in amount],
            "cost_centre": rng.choice([4100, 4200, 7300], n, p=[0.6, 0.3, 0.1]),
            "remark": [f"visit to customer no. {number}" for number in rng.integers(0, 10**6, n)],
        }
    )
    return table, kind


table, kind = claims(3000, 16, seed=1)
known = kind != ""
table.head()

# %% [markdown]
# ## What the columns are taken for
#
# A fit says what it leaves out, and asks you to confirm: claim numbers identify rows, and remarks
# are free text. Both are left out unless you declare them to be categories.

# %%
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always", FewlierWarning)
    AnomalyDetector(training=Training(max_epochs=1), random_state=0).fit(table, known)
print(*(warning.message for warning in told), sep="\n")

# %% [markdown]
# We say so in `columns`. There is one more thing to put right: cost centres are written as numbers,
# but 7300 is not more than 4100. They are a category. The date and the amounts are read as they
# are: the detector shows the form that it has found, and keeps it for later tables. Of a date it
# looks at the day, the time and the weekday.

# %%
columns = {"claim": "ignore", "remark": "ignore", "cost_centre": "category"}
detector = AnomalyDetector(columns=columns, false_alarm_rate=0.02, random_state=0)
detector.fit(table, known)
detector

# %% [markdown]
# ## Fresh claims
#
# Sixteen odd claims were known. They are of two kinds: too expensive for place and nights, and
# submitted at a weekend. How well are fresh ones of these kinds found?

# %%
fresh, kind = claims(3000, 60, seed=2)
CurveDisplay.from_detector(detector, fresh, kind != "", kind="precision_recall")
plt.show()

# %%
scored = fresh.drop(columns=["claim", "remark"]).join(detector.score_frame(fresh)).assign(kind=kind)
print(scored.groupby("kind")["is_anomaly"].agg(rows="size", flagged="sum"))
scored.nlargest(5, "anomaly_score")

# %% [markdown]
# At the threshold, the diamond in the figure, most odd claims are found, and about half of the
# flagged ones are odd: two in a hundred of the normal claims are allowed above it, and there are
# fifty times as many of them.
#
# A claim that is too expensive has no odd total: others are as high. What makes it odd is the place
# and the nights that go with it, and the explanation says so: the total that it states as expected
# is the one for this place and this many nights.

# %%
expensive = scored[scored["is_anomaly"] & (scored["kind"] == "too expensive")].index
detector.explain(fresh.loc[expensive[:5]])

# %%
ReasonDisplay.from_detector(detector, fresh, row=int(expensive[0]))
plt.show()

# %% [markdown]
# The other kind shows in the weekday. What is expected in one column is what is usual given the
# others; where one of these is unlike anything seen, such as a Sunday, the others' expectations are
# rough.

# %%
weekend = scored[scored["is_anomaly"] & (scored["kind"] == "weekend")].index
detector.explain(fresh.loc[weekend[:2]])

# %% [markdown]
# ## Unknown codes and other forms
#
# A place that was never seen is odd in itself. An amount in another form than the column's cannot
# be read; it counts as missing, and a warning says which cell it was.

# %%
late = pd.read_csv(
    io.StringIO(
        "claim;submitted;place;nights;total;cost_centre;remark\n"
        "R-1;02.09.2026 17:10;BER;2;231,40 €;4100;as usual\n"
        "R-2;02.09.2026 17:40;XXX;2;231,40 €;4100;unknown place\n"
        "R-3;02.09.2026 18:05;BER;2;USD 231.40;4100;amount in dollars\n"
    ),
    sep=";",
    index_col="claim",
)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always", FewlierWarning)
    scored = detector.score_frame(late, with_reason=True)
print(*(warning.message for warning in told), sep="\n")
late[["place", "total"]].join(scored[["anomaly_score", "p_value", "is_anomaly", "reason"]])

# %% [markdown]
# ## What we decide
#
# Three columns are declared, and everything else is left as it was exported. Flagged claims go to
# somebody who checks them, with the reason beside them. Of the last three, the first is fine, the
# second waits until the new place has its price, and the third goes back to be filled in in euros.
