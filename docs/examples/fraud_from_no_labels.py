# %% [markdown]
# # Fraud, starting from no labels
#
# A shop has 4,000 card payments and suspects that some of them are fraud. Nobody has labelled a
# single one. We let a labelling session choose which payments to look at, answer its questions,
# and end with a detector for the payments of next month.
#
# The payments are made up, so that we know the truth: it answers the questions in place of a
# person, and tells us at the end how well it went.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewlier import AnomalyDetector, Session
from fewlier.report.plots import ScoreDisplay


def payments(n, n_fraud, seed):
    """Return payments and which of them are fraud."""
    rng = np.random.default_rng(seed)
    habit = rng.normal(size=n)  # people who buy much buy expensive things, too
    table = pd.DataFrame(
        {
            "amount": np.exp(3.4 + 0.5 * habit + 0.5 * rng.normal(size=n)).round(2),
            "items": 1 + rng.poisson(np.exp(0.4 + 0.5 * habit)),
            "hour": (rng.normal(15, 3.5, n) % 24).round(1),
            "days_since_signup": rng.gamma(2, 200, n).round(),
            "country": rng.choice(["DE", "AT", "CH", "FR"], n, p=[0.6, 0.2, 0.15, 0.05]),
            "card": rng.choice(["credit", "debit", "prepaid"], n, p=[0.5, 0.45, 0.05]),
        },
        index=[f"payment {number}" for number in range(n)],
    )
    fraud = rng.permutation(n)[:n_fraud]
    stolen, tested = fraud[: n_fraud // 2], fraud[n_fraud // 2 :]
    labels = np.zeros(n, dtype=int)
    labels[fraud] = 1
    # Stolen cards: one expensive item, at night, from a new account.
    rows = table.index[stolen]
    table.loc[rows, "amount"] = rng.uniform(120, 400, len(rows)).round(2)
    table.loc[rows, "items"] = 1
    table.loc[rows, "hour"] = rng.uniform(0, 6, len(rows)).round(1)
    table.loc[rows, "days_since_signup"] = rng.integers(0, 30, len(rows))
    # Cards being tried out: tiny amounts, prepaid, from new accounts.
    rows = table.index[tested]
    table.loc[rows, "amount"] = rng.uniform(0.5, 3, len(rows)).round(2)
    table.loc[rows, "card"] = "prepaid"
    table.loc[rows, "days_since_signup"] = rng.integers(0, 10, len(rows))
    return table, labels


orders, truth = payments(4000, 40, seed=0)
orders.head()

# %% [markdown]
# ## Forty questions
#
# `Session` asks about the row that is most worth asking about. Before the first answer that is the
# oddest row of the table; every answer changes the order. A person would answer on the page of
# `fewlier label`, or in a notebook, `fewlier.labelling.widget.label(session)`; both show the same
# questions as this loop.

# %%
session = Session(orders, fit_every=None, random_state=0)
question = session.next()
print(f"The first question is about {orders.index[question.row]}:")
for reason in question.reasons[:3]:
    print(f"  {reason}")

# %%
for _ in range(40):
    question = session.next()
    session.answer(question.row, int(truth[question.row]))
session

# %% [markdown]
# By chance, forty questions would have found fewer than one fraud. The curve below rises steeply
# where the session has learned what fraud looks like, and is flat where it asks about rows that
# are odd and honest: those answers are worth having too, since they are what a detector would
# otherwise raise false alarms about.

# %%
curve = session.progress.curve
_, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.step(range(1, len(curve) + 1), curve, where="post", label="the session")
ax.plot([1, 40], [0.01, 0.4], linestyle=":", color="C2", label="questions drawn at random")
ax.set(xlabel="questions answered", ylabel="frauds found", xlim=(1, 40))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## A detector that knows the answers
#
# `session.labels` has the answers, and nothing about the rows that were not asked. That is what
# `fit` is made for. We allow one false alarm in a hundred normal payments, which is what the shop
# has time to check by hand.

# %%
detector = AnomalyDetector(false_alarm_rate=0.01, random_state=0)
detector.fit(orders, session.labels)
session.close()
detector

# %% [markdown]
# ## Next month
#
# Fresh payments, with the same two kinds of fraud. We compare with a detector that was fitted to
# the same table without any label.

# %%
fresh, fresh_truth = payments(4000, 40, seed=1)
without = AnomalyDetector(false_alarm_rate=0.01, random_state=0).fit(orders)


def judge(scored):
    """Return how much of the fraud is flagged, and how many honest payments are."""
    flagged = scored["is_anomaly"].to_numpy()
    return {
        "frauds flagged": f"{flagged[fresh_truth == 1].mean():.0%}",
        "false alarms": f"{flagged[fresh_truth == 0].mean():.1%}",
    }


pd.DataFrame(
    {
        "forty answers": judge(detector.score_frame(fresh)),
        "no label": judge(without.score_frame(fresh)),
    }
)

# %%
ScoreDisplay.from_detector(detector, fresh, fresh_truth)
plt.show()

# %% [markdown]
# `score_frame` returns one line for each payment with the index of the table, so that it can be
# joined to it. The payments that score highest are explained: what each column adds to the score,
# and what was expected there given the other columns of the row.

# %%
fresh.join(detector.score_frame(fresh)).sort_values("anomaly_score").tail(5)

# %%
detector.explain(fresh)

# %% [markdown]
# ## What we decide
#
# Forty answers, perhaps an hour of somebody's time, are worth it: without them more than half of
# the fraud would pass. The detector goes to work with its threshold at one false alarm in a
# hundred. Whoever checks its alarms labels payments by doing so, and
# `detector.update(rows, labels)` learns from them every month.
