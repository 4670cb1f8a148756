"""Survival analysis by definition: loops over cases, pairs and times."""

import numpy as np


def kaplan_meier(event, time, t):
    """Return the product over event times up to t of 1 − deaths / cases at risk."""
    survival = 1.0
    for s in sorted(set(time[event])):
        if s <= t:
            survival *= 1.0 - np.sum(event & (time == s)) / np.sum(time >= s)
    return survival


def censoring(event, time, t):
    """Return the probability of not being censored by t; events at a time come first."""
    survival = 1.0
    for s in sorted(set(time[~event])):
        if s <= t:
            at_risk = np.sum(time > s) + np.sum((time == s) & ~event)
            survival *= 1.0 - np.sum(~event & (time == s)) / at_risk
    return survival


def curve(lower, upper, t, S):
    """Return the survival curve at t of a case with its event within (lower, upper]."""
    if t < lower:
        return 1.0
    if t >= upper:
        return 0.0
    end = 0.0 if np.isinf(upper) else S(upper)
    mass = S(lower) - end
    return 1.0 if mass <= 1e-12 else (S(t) - end) / mass


def concordance(event, time, risk, weight=None):
    """Return the weighted share of comparable pairs in the right order."""
    weight = np.ones(len(time)) if weight is None else weight
    right = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            first = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if i != j and event[i] and first:
                total += weight[i]
                right += weight[i] * (1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j]))
    return right / total


def brier(train, test, survival, t):
    """Return the Brier score at t of the survival probabilities of test cases."""
    event, time = test
    total = 0.0
    for i in range(len(time)):
        if event[i] and time[i] <= t:
            total += survival[i] ** 2 / censoring(*train, time[i])
        elif time[i] > t:
            total += (1.0 - survival[i]) ** 2 / censoring(*train, t)
    return total / len(time)


def turnbull(intervals, n_iterations=20000):
    """Return upper bounds and the mass at each (and after all), by plain self-consistency."""
    points = np.append(np.unique(intervals[np.isfinite(intervals[:, 1]), 1]), np.inf)
    member = np.array([[(lo < s <= up) or (lo == up == s) for s in points] for lo, up in intervals])
    mass = np.where(member.any(axis=0), 1.0, 0.0)
    mass /= mass.sum()
    for _ in range(n_iterations):
        share = member * mass
        mass = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    return points, mass
