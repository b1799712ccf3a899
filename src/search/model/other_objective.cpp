#include "search/model/other_objective.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "search/model/relevant_trials.h"
#include "trial/measure_spec.h"

namespace krigtune::search {
namespace {

// The planned peak of memory, as the mean of its measured peak. The points have its logarithm as their feature, so that
// the plan is made only once. Plans are within a few per cent to a factor of two (docs/accuracy.md), and mostly wrong
// by a common factor, which is the surrogate's offset.
class PlannedMemory final : public forecast::Prior {
 public:
  Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
    return Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
  }
  Coefficient coefficient() const override { return {1.0, 0.2}; }
};

forecast::Priors priors_for(bool is_planned) {
  return is_planned ? forecast::Priors{std::make_shared<PlannedMemory>()} : forecast::Priors();
}

bool all_are_planned(const Candidates& candidates, const session::Objective& objective, const ObjectiveScale& scale) {
  return objective.field == trial::kPeakMemory && scale.logarithmic() && candidates.filter().knows_memory();
}

std::optional<Bytes> planned_of(const std::optional<plan::MemoryVerdict>& verdict) {
  return verdict ? std::optional(verdict->predicted) : std::nullopt;
}

}  // namespace

OtherObjective::OtherObjective(const session::Objective& objective, const Candidates& candidates,
                               const History& history)
    : candidates_(candidates),
      scale_(objective, history),
      is_planned_(all_are_planned(candidates, objective, scale_)),
      model_(priors_for(is_planned_), scale_.logarithmic(), 0, !candidates.space().listable()) {
  std::vector<space::Configuration> configurations;
  std::vector<double> sums;
  std::vector<double> counts_of_each;
  std::unordered_map<std::string, std::size_t> entry;
  for (const journal::Trial& trial : history) {
    const std::optional<double> value = counts(trial) ? value_of(trial, objective) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    const auto [its, is_new] = entry.emplace(candidates.key(trial.proposal.configuration), configurations.size());
    if (is_new) {
      configurations.push_back(trial.proposal.configuration);
      sums.push_back(0.0);
      counts_of_each.push_back(0.0);
    }
    sums[its->second] += scale_.to_latent(*value);
    counts_of_each[its->second] += 1.0;
  }
  const auto count = static_cast<Eigen::Index>(configurations.size());
  latent_ = {encode(configurations), Eigen::VectorXd(count), Eigen::VectorXd::Zero(count)};
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    latent_.values(static_cast<Eigen::Index>(i)) = sums[i] / counts_of_each[i];
  }
  const std::vector<Eigen::Index> rows = relevant_rows(latent_.points, latent_.values, kMostExact);
  latent_ = {latent_.points.rows(rows), latent_.values(rows), latent_.variance(rows)};
}

surrogate::Points OtherObjective::with_plan(surrogate::Points points,
                                            const std::vector<std::optional<Bytes>>& planned) const {
  points.features.resize(points.size(), is_planned_ ? 1 : 0);
  if (!is_planned_) return points;
  double sum = 0.0;
  double known = 0.0;
  for (const std::optional<Bytes>& bytes : planned) {
    if (!bytes || bytes->count <= 0) continue;
    sum += std::log(static_cast<double>(bytes->count));
    known += 1.0;
  }
  // A configuration without a plan (offload to NVMe) is taken for a typical one.
  const double typical = known > 0.0 ? sum / known : 0.0;
  const double sign = scale_.maximize() ? 1.0 : -1.0;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const bool is_known = planned[i] && planned[i]->count > 0;
    points.features(static_cast<Eigen::Index>(i), 0) =
        sign * (is_known ? std::log(static_cast<double>(planned[i]->count)) : typical);
  }
  return points;
}

surrogate::Points OtherObjective::encode(const std::vector<space::Configuration>& configurations) const {
  std::vector<std::optional<Bytes>> planned;
  if (is_planned_) {
    for (const space::Configuration& one : configurations) planned.push_back(planned_of(candidates_.memory_of(one)));
  }
  return with_plan(candidates_.encode(configurations), planned);
}

void OtherObjective::fit(Rng& rng) { model_.fit(latent_, rng, std::nullopt); }

double OtherObjective::noise_variance() const {
  return model_.surrogate().noise_stddev() * model_.surrogate().noise_stddev();
}

void OtherObjective::believe(const std::vector<space::Configuration>& pending) {
  if (!pending.empty()) model_.believe(encode(pending), {});
}

surrogate::Prediction OtherObjective::predict(const CandidateList& list) const {
  std::vector<std::optional<Bytes>> planned;
  for (const std::optional<plan::MemoryVerdict>& verdict : list.memory) planned.push_back(planned_of(verdict));
  return model_.predict(with_plan(list.points, planned));
}

surrogate::Prediction OtherObjective::predict(const std::vector<space::Configuration>& configurations) const {
  return model_.predict(encode(configurations));
}

std::vector<double> mean_values(const session::Objective& objective, const History& history,
                                const std::vector<space::Configuration>& configurations) {
  std::unordered_map<std::string, std::pair<double, int>> sums;
  for (const journal::Trial& trial : history) {
    const std::optional<double> value = counts(trial) ? value_of(trial, objective) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    auto& [sum, count] = sums[trial.proposal.configuration.text()];
    sum += *value;
    ++count;
  }
  std::vector<double> means;
  for (const space::Configuration& one : configurations) {
    const auto& [sum, count] = sums.at(one.text());
    means.push_back(sum / count);
  }
  return means;
}

}  // namespace krigtune::search
