// Plans of other programs than ours err together and each by itself. With sigma the stddev of their logarithms
//
//   planned(x) = log(usable / planned peak) / sigma
//   margin(x) = planned(x) + e + g(x),   e ~ Normal(0, (0.25 / 0.15)^2),   g ~ GP(0, 1^2 Matern52, l = 0.5)
//
// A measured peak is a value of it: planned(x) + log(planned, as an allocator counts / measured) / sigma. A trial that
// ran without telling its peak says that the margin is above 0, one that ran out of memory that it is below; all with
// noise of half a stddev (fragmentation, spread from run to run). Values and bounds make a process by expectation
// propagation (surrogate/censored.h).
//
// What is too large even with everything on the light side has a widest margin below 0. It stays out while nothing
// contradicts the plans. Once something ran that should not have fitted, or measured less than was planned, what the
// trials say of x, margin(x) - planned(x), moves that limit for x as well.
#include "model/memory_margins.h"

#include <algorithm>
#include <cmath>

#include "krigtune/surrogate/censored.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "krigtune/surrogate/success_model.h"

namespace krigtune {
namespace {

constexpr double kSharedStddev = 0.25 / 0.15;
constexpr double kOwnStddev = 1.0;
constexpr double kLengthscale = 0.5;
constexpr double kNoise = 0.5;
// A peak that is so far from the planned one, either way, is of something else: another unit, one rank of many.
constexpr double kMostPeakError = 1.4;  // nats: a factor of 4
constexpr double kLeastProbability = 1e-9;

// Models that state no spread say yes or no.
double planned_margin(const std::optional<MemoryVerdict>& memory) {
  if (!memory) return 0.0;
  if (memory->spread) return memory->spread->margin;
  return probit(std::clamp(memory->probability_fits, kLeastProbability, 1.0 - kLeastProbability));
}

// log(planned / measured) in stddevs.
std::optional<double> shown_by_peak(const Outcome& outcome, const std::optional<MemoryVerdict>& memory) {
  const auto* measured = std::get_if<Measured>(&outcome);
  if (measured == nullptr || !measured->peak_memory || measured->peak_memory->count <= 0) return std::nullopt;
  if (!memory || !memory->spread) return std::nullopt;
  const double error = std::log(static_cast<double>(memory->spread->allocated.count) /
                                static_cast<double>(measured->peak_memory->count));
  if (!(std::abs(error) <= kMostPeakError)) return std::nullopt;
  return error / memory->spread->log_stddev;
}

struct Evidence {
  std::vector<Configuration> measured, bounded;
  std::vector<double> measured_margin, measured_planned, bounded_planned, sign;
  bool has_run_out = false;
  bool against_plans = false;  ///< something needs less than was planned

  bool matters() const { return !measured.empty() || has_run_out || against_plans; }

  void add(const Trial& trial, const std::optional<MemoryVerdict>& memory) {
    const bool has_run = ran(*trial.outcome);
    const bool ran_out = ran_out_of_memory(*trial.outcome);
    if (!memory || (!has_run && !ran_out)) return;
    const double planned = planned_margin(memory);
    if (const std::optional<double> shown = shown_by_peak(*trial.outcome, memory)) {
      measured.push_back(trial.proposal.configuration);
      measured_planned.push_back(planned);
      measured_margin.push_back(planned + *shown);
      against_plans = against_plans || *shown > 0.0;
      return;
    }
    bounded.push_back(trial.proposal.configuration);
    bounded_planned.push_back(planned);
    sign.push_back(has_run ? 1.0 : -1.0);
    has_run_out = has_run_out || ran_out;
    against_plans = against_plans || (has_run && planned < 0.0);
  }
};

Eigen::VectorXd vector_of(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

Points with_feature(const Points& points, const Eigen::VectorXd& feature) {
  return {points.ordered, points.categories, feature};
}

GaussianProcess fit(const Candidates& candidates, const Evidence& evidence) {
  const Points measured = candidates.encode(evidence.measured);
  const Points bounded = candidates.encode(evidence.bounded);
  const std::shared_ptr<const Kernel> kernel = make_kernel(KernelKind::kMatern52);
  const Eigen::VectorXd theta = uniform_theta(*kernel, measured, kLengthscale, kOwnStddev, kNoise);
  const Observations values{with_feature(measured, vector_of(evidence.measured_planned)),
                            vector_of(evidence.measured_margin), Eigen::VectorXd::Zero(measured.size())};
  const Bounds bounds{with_feature(bounded, vector_of(evidence.bounded_planned)), Eigen::VectorXd::Zero(bounded.size()),
                      vector_of(evidence.sign)};
  const Mean mean = Mean::weighted(kSharedStddev, Eigen::VectorXd::Ones(1), Eigen::VectorXd::Zero(1));
  return condition_on_bounds(kernel, mean, values, bounds, theta).process;
}

}  // namespace

MemoryMargins::MemoryMargins(const Candidates& candidates, const History& history) {
  if (candidates.filter().is_exact()) return;
  Evidence evidence;
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    evidence.add(trial, candidates.memory_of(trial.proposal.configuration));
  }
  if (!evidence.matters()) return;
  process_ = fit(candidates, evidence);
  doubts_plans_ = evidence.against_plans;
}

Eigen::VectorXd MemoryMargins::at(const Points& points, const std::vector<std::optional<MemoryVerdict>>& memory) const {
  Eigen::VectorXd planned(points.size());
  for (Eigen::Index i = 0; i < planned.size(); ++i) planned(i) = planned_margin(memory[static_cast<std::size_t>(i)]);
  return process_ ? process_->predict(with_feature(points, planned)).mean : planned;
}

std::vector<std::size_t> MemoryMargins::admitted(const CandidateList& too_large) const {
  std::vector<std::size_t> rows;
  const Eigen::VectorXd margins = at(too_large.points, too_large.memory);
  for (std::size_t i = 0; i < too_large.size(); ++i) {
    const MemoryVerdict::Spread& spread = *too_large.memory[i]->spread;
    const double shown = margins(static_cast<Eigen::Index>(i)) - spread.margin;
    if (spread.widest_margin + shown >= 0.0) rows.push_back(i);
  }
  return rows;
}

}  // namespace krigtune
