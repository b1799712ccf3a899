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

/// What is predicted of one of the further objectives (Session::others), in its unit.
struct OtherPrediction {
  std::optional<double> median;  ///< empty, like the interval, while no trial has succeeded
  std::optional<double> lower_95;
  std::optional<double> upper_95;  ///< of a measurement, with what the smooth function does not explain
  std::optional<double> observed;  ///< mean of its successful trials
};

/// The surrogate's prediction for one configuration: a row of predictions.csv, in the objective's units.
struct PredictionRow {
  space::Configuration configuration;
  std::optional<double> median;  ///< posterior median; all posterior fields are empty while no trial has succeeded
  std::optional<double> stddev;  ///< half the 68 % interval
  std::optional<double> lower_95;
  std::optional<double> upper_95;
  std::optional<double> expected_improvement;  ///< relative to the incumbent
  std::optional<double> log_expected_improvement;
  double probability_feasible = 1.0;
  std::optional<Bytes> predicted_memory;
  std::optional<bool> memory_feasible;
  std::optional<double> observed;            ///< mean of its successful trials
  std::string status;                        ///< of its last closed trial; empty if there is none
  std::vector<OtherPrediction> others = {};  ///< one for each of Session::others
};

/// Predictions of a fitted model, in the objective's units.
class Predictor {
 public:
  /// `fitted`: the model of that history (search::fitted_model). The arguments must outlive it.
  Predictor(const session::Session& session, const session::MemoryFilter& filter, const search::Candidates& candidates,
            const search::History& history, const search::TrialModel& fitted);
  ~Predictor();
  /// Returns one row per configuration, in the given order; the configurations need not belong to the space.
  std::vector<PredictionRow> operator()(const std::vector<space::Configuration>& configurations) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PredictOptions {
  space::Space::Predicate where;       ///< empty: all
  std::optional<std::int64_t> sample;  ///< a random sample of this many configurations, in lattice order
  std::uint64_t seed = 1;
};

/// Visits every configuration of the space in lattice order, including those that are too large. Throws UserError if
/// there are more than 10^6 or infinitely many and no sample was requested.
void for_each_prediction(const session::Session& session, const session::MemoryFilter& filter,
                         const search::Candidates& candidates, const search::History& history,
                         const PredictOptions& options, const std::function<void(const PredictionRow&)>& visit);

}  // namespace krigtune::insight
