"""The scales on which censored outputs are fitted: any increasing function of time."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from okforest._kaplan_meier import SurvivalEstimate, estimate_survival
from okforest._typing import Floats

ScaleName = Literal["km", "log"] | None


@dataclass(frozen=True)
class Scale:
    """An increasing function of outputs, and its inverse.

    Parameters
    ----------
    name : {"km", "log"} or None
        1 − S(t) with the Kaplan–Meier curve S, the logarithm, or the outputs themselves.
    times, survival : ndarray of shape (m,)
        The Kaplan–Meier curve; empty for other scales.
    """

    name: ScaleName
    times: Floats
    survival: Floats

    @staticmethod
    def learn(name: ScaleName, intervals: Floats) -> "Scale":
        """Return the scale for training outputs."""
        if name == "km":
            return Scale(name, *estimate_survival(intervals))
        if name == "log" and (intervals[:, 1] <= 0).any():
            raise ValueError(
                "scale='log' needs positive times, and y holds times that are at most 0; use "
                "scale='km' or None."
            )
        return Scale(name, np.empty(0), np.empty(0))

    @property
    def estimate(self) -> SurvivalEstimate:
        """The Kaplan–Meier curve of the scale."""
        return SurvivalEstimate(self.times, self.survival)

    def forward(self, t: Floats) -> Floats:
        """Return outputs on the scale; infinite ones stay infinite."""
        if self.name is None:
            return np.asarray(t, dtype=np.float64)
        if self.name == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(t > 0, np.log(t), -np.inf)
        values = 1.0 - self.estimate(t)
        return np.where(np.isfinite(t), values, t)

    def place(self, t: Floats) -> Floats:
        """Return the values whose inverse is t; infinite where there is none.

        On the scale "km" it differs from ``forward`` between two times of the curve.
        """
        if self.name != "km":
            return self.forward(t)
        times, levels = self._knots()
        with np.errstate(invalid="ignore"):
            values = np.interp(t, times, levels)
        return np.where(t < 0, -np.inf, np.where(t > times[-1], np.inf, values))

    def inverse(self, u: Floats) -> Floats:
        """Return outputs from values on the scale; between times of the curve by interpolation."""
        if self.name is None:
            return u
        if self.name == "log":
            return np.exp(u)
        times, levels = self._knots()
        return np.interp(u, levels, times)

    def _knots(self) -> tuple[Floats, Floats]:
        levels = np.concatenate([[0.0], 1.0 - self.survival])
        return np.concatenate([[0.0], self.times]), levels
