#pragma once
#include <optional>
#include <string>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/gaussian_process.h"
#include "search/candidates/candidates.h"
#include "search/model/trial_model.h"
#include "search/trials/history.h"

namespace krigtune::insight {

/// Joint draws of the posterior's deviation from its mean at m points: m x count. O(m r^2) for covariances of rank r.
Eigen::MatrixXd posterior_deviations(const surrogate::GaussianProcess& process, const surrogate::Points& points,
                                     int count, Rng& rng);

/// Of the surrogate's posterior mean, and its 95 % interval over what the surrogate holds possible.
struct IndexEstimate {
  double value = 0.0, lower_95 = 0.0, upper_95 = 0.0;
};

/// Shares of the variance of the objective's logarithm (of the objective, where a value is not positive).
struct ParameterImportance {
  std::string name;               ///< "a", or "a and b" where constraints tie them: none can change alone
  std::vector<std::string> tied;  ///< those that are tied, else empty
  IndexEstimate total;            ///< what is left open when all others are known
  IndexEstimate first_order;      ///< the part of it that is the same whatever the others are; never larger
};

/// How much two parameters depend on each other's values: the share of the variance that neither explains without
/// knowing the other.
struct PairImportance {
  std::string a, b;
  IndexEstimate interaction;
};

/// What another value of one parameter does, the rest as in the best configuration. Of parameters that are tied, values
/// are texts: "4 and 4".
struct Effect {
  std::string parameter;  ///< as ParameterImportance::name
  space::Value best;      ///< the best configuration's value
  space::Value other;     ///< with the largest clear effect; where none is clear, with the largest
  double factor = 1.0;    ///< how many times better `best` is than `other`, in the median; below 1: worse
  double lower_95 = 1.0, upper_95 = 1.0;
  std::vector<space::Value> compared;  ///< all other values that were looked at: those that need no second change
  bool clear() const { return lower_95 > 1.0 || upper_95 < 1.0; }
};

struct Importance {
  std::vector<ParameterImportance> parameters;  ///< the largest total first; those with a single value are left out
  std::vector<PairImportance> pairs;            ///< of the six parameters with the largest totals, the largest first
  std::vector<Effect> effects;  ///< one a parameter where there is another value, the largest first; empty where a
                                ///< measured value is not positive
  space::Configuration
      best;  ///< what effects are around: the recommended one; of a slice without it the best predicted
  std::int64_t configurations = 0;  ///< that the indices are taken over, each with equal weight
  bool sampled = false;             ///< those are drawn from more
  double sampling_error = 0.0;      ///< the largest standard error of an index from drawing; 0 when not sampled
  double stddev = 0.0;              ///< over the configurations, of what the indices are shares of
};

struct ImportanceOptions {
  space::Space::Predicate where;  ///< only these configurations; empty: all
  std::uint64_t seed = 1;
};

/// Over the configurations that may fit in memory. Empty while fewer than two configurations are measured ok, and where
/// the surrogate sees no difference between any. What the indices mean where parameters depend on each other, and how
/// they are computed: importance.cpp.
std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options);
/// The same of the model that was fitted to that history with the options' seed (search::fitted_model).
std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options,
                                     const search::TrialModel& fitted);

}  // namespace krigtune::insight
