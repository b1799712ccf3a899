#pragma once
#include <vector>

#include "krigtune/surrogate/points.h"
#include "krigtune/tuner/run_effects.h"
#include "model/objective_scale.h"
#include "model/trial_noise.h"

namespace krigtune {

/// The ok trials of a history, one entry a configuration in the order of their first measurements, on the scale of
/// the latest run. Private to this layer.
struct MeasuredConfigurations {
  std::vector<std::vector<std::size_t>> trials;  ///< indices into the history, at least one each
  Observations latent;                           ///< means of the latent values; variance: of these means, as stated
  Eigen::VectorXd one_more;                      ///< latent variance of one more measurement, as stated
  Eigen::MatrixXd runs;                          ///< what the effects of runs leave unknown: RunEffects::uncertainty
  bool stated = true;                            ///< every trial states a spread

  Eigen::Index size() const { return latent.values.size(); }
};

MeasuredConfigurations measured_configurations(const Objective& objective, const Candidates& candidates,
                                               const History& history, const RunEffects& effects);

/// Whether a trial measured again gives the same value again: a table that is looked up, but for one that has several
/// rows in turn.
bool values_are_exact(const Session& session);

}  // namespace krigtune
