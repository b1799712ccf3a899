#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/model/trial_model.h"
#include "search/trials/history.h"

namespace krigtune::insight {

/// What the surrogate believes of one configuration: a row of predictions.csv, in the objective's units.
struct PredictionRow {
  space::Configuration configuration;
  std::optional<double> median;  ///< of the posterior, whose fields are all empty while no trial is ok
  std::optional<double> stddev;  ///< half the 68 % interval
  std::optional<double> lower_95;
  std::optional<double> upper_95;
  std::optional<double> expected_improvement;  ///< over the incumbent
  std::optional<double> log_expected_improvement;
  double probability_feasible = 1.0;
  std::optional<Bytes> predicted_memory;
  std::optional<bool> memory_feasible;
  std::optional<double> observed;  ///< mean of its ok trials
  std::string status;              ///< of its last closed trial, or empty
};

/// What a fitted model says, in the objective's units.
class Predictor {
 public:
  /// `fitted`: of that history (search::fitted_model). The arguments must outlive it.
  Predictor(const session::Session& session, const session::MemoryFilter& filter, const search::Candidates& candidates,
            const search::History& history, const search::TrialModel& fitted);
  ~Predictor();
  /// Configurations in the order given; they need not be of the space.
  std::vector<PredictionRow> operator()(const std::vector<space::Configuration>& configurations) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PredictOptions {
  space::Space::Predicate where;       ///< empty: all
  std::optional<std::int64_t> sample;  ///< so many configurations at random, in lattice order
  std::uint64_t seed = 1;
};

/// Visits every configuration of the space, those that are too large as well, in lattice order. Throws UserError when
/// there are more than 10^6, or no end of them, and no sample was asked for.
void for_each_prediction(const session::Session& session, const session::MemoryFilter& filter,
                         const search::Candidates& candidates, const search::History& history,
                         const PredictOptions& options, const std::function<void(const PredictionRow&)>& visit);

}  // namespace krigtune::insight
