"""Running the rounds of a plan, and their learning curve."""

from dataclasses import dataclass, field
from typing import NamedTuple

from okforest._progress import Watchers
from okforest.models.boosting.plan import BoostPlan
from okforest.models.boosting.rounds import RoundLearner, Rounds


@dataclass
class LearningCurve:
    """What is measured after each round; NaN where there is nothing to measure.

    Parameters
    ----------
    train_loss : list of float
        The mean loss of the training rows.
    validation_loss : list of float
        The mean loss of the rows held out.
    oob_improvement : list of float
        The reduction of the mean loss of the rows that were not drawn for the round.
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    oob_improvement: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.train_loss)


class Boosted(NamedTuple):
    """The rounds of a fit and their learning curve."""

    rounds: Rounds
    curve: LearningCurve


def run_rounds(
    plan: BoostPlan,
    learner: RoundLearner,
    previous: Boosted | None = None,
    progress: Watchers | None = None,
) -> Boosted:
    """Add rounds to those of a previous fit until there are enough, or they no longer help.

    Parameters
    ----------
    plan : BoostPlan
        The data, the number of rounds and when to stop.
    learner : RoundLearner
        What learns the rounds.
    previous : Boosted, optional
        The previous fit, on the same data.
    progress : Watchers, optional
        Called after each round with the number of new rounds.
    """
    curve, squares, initial = LearningCurve(), learner.squares(), plan.initial
    validation_losses = [plan.validation_loss(squares)]
    if previous is not None:
        learner.replay(previous.rounds)
        curve, squares = previous.curve, learner.squares()
        validation_losses += curve.validation_loss
    first = len(curve)
    for m in range(first, plan.n_rounds):
        if plan.stopping is not None and plan.stopping.reached(validation_losses):
            break
        weight, before = plan.draw(m), squares
        learner.add(m, weight)
        squares = learner.squares()
        validation_losses.append(plan.validation_loss(squares))
        curve.train_loss.append(float(initial @ squares))
        curve.validation_loss.append(validation_losses[-1])
        curve.oob_improvement.append(plan.oob_improvement(before - squares, weight))
        if progress is not None:
            progress(m + 1 - first)
    return Boosted(learner.rounds(), curve)
