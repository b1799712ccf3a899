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

/// Draws `count` joint deviations of the posterior from its mean at m points: m x count. O(m r^2) for covariances of
/// rank r.
Eigen::MatrixXd posterior_deviations(const surrogate::GaussianProcess& process, const surrogate::Points& points,
                                     int count, Rng& rng);

/// An index of the surrogate's posterior mean, with its 95 % interval over the posterior.
struct IndexEstimate {
  double value = 0.0, lower_95 = 0.0, upper_95 = 0.0;
};

/// Shares of the variance of the objective's logarithm (or of the objective, if a value is not positive).
struct ParameterImportance {
  std::string name;               ///< "a", or "a and b" if constraints tie them so that neither can change alone
  std::vector<std::string> tied;  ///< the tied parameters; otherwise empty
  IndexEstimate total;            ///< share that remains open when all other parameters are known
  IndexEstimate first_order;      ///< the part that does not depend on the other parameters; never larger than `total`
};

/// How much the effects of two parameters depend on each other: the share of the variance that neither explains without
/// knowing the other.
struct PairImportance {
  std::string a, b;
  IndexEstimate interaction;
};

/// The effect of changing one parameter of the best configuration. The values of tied parameters are texts: "4 and 4".
struct Effect {
  std::string parameter;  ///< see ParameterImportance::name
  space::Value best;      ///< the best configuration's value
  space::Value other;     ///< the value with the largest clear effect or, if none is clear, with the largest effect
  double factor = 1.0;    ///< median of how many times better `best` is than `other`; below 1: worse
  double lower_95 = 1.0, upper_95 = 1.0;
  std::vector<space::Value> compared;  ///< all other values examined: those that require no second change
  bool clear() const { return lower_95 > 1.0 || upper_95 < 1.0; }
};

struct Importance {
  /// The largest total first, without parameters that have a single value.
  std::vector<ParameterImportance> parameters;
  std::vector<PairImportance> pairs;  ///< for the six parameters with the largest totals, the largest first
  std::vector<Effect> effects;  ///< one for each parameter with another value, the largest first; empty if a measured
                                ///< value is not positive
  space::Configuration best;    ///< the configuration that the effects start from: the recommended one, or in a slice
                                ///< without it the best predicted
  std::int64_t configurations = 0;  ///< number of equally weighted configurations behind the indices
  bool sampled = false;             ///< they are a random sample
  double sampling_error = 0.0;      ///< the largest standard error of an index due to sampling; 0 if not sampled
  double stddev = 0.0;              ///< over the configurations: the quantity of which the indices are shares
};

struct ImportanceOptions {
  space::Space::Predicate where;  ///< only these configurations; empty: all
  std::uint64_t seed = 1;
};

/// Computes importance over the configurations that may fit in memory. Empty while fewer than two configurations have
/// succeeded, and if the surrogate sees no differences. importance.cpp explains the indices for parameters that depend
/// on each other, and how they are computed.
std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options);
/// Does the same for a model that was fitted to that history with the options' seed (search::fitted_model).
std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options,
                                     const search::TrialModel& fitted);

}  // namespace krigtune::insight
