#pragma once
#include <Eigen/Core>
#include <optional>

#include "hyperparameter_posterior.h"

namespace krigtune {

struct FittedHyperparameters {
  Eigen::VectorXd theta;
  FitReport report;
};

/// The highest point of the posterior found from the prior's mode, `start` (an earlier fit) and `random_starts` draws
/// from the prior. Always gives usable hyperparameters: where no search comes to anything, the prior's mode.
FittedHyperparameters fit_hyperparameters(const HyperparameterPosterior& posterior, int random_starts, Rng& rng,
                                          const std::optional<Eigen::VectorXd>& start);

}  // namespace krigtune
