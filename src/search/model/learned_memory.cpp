// Where nothing plans memory, only trials show what needs how much. A trial that runs out of memory says more than that
// it failed: whatever needs at least as much will fail too, and the names of parameters say what needs more. So this is
// a model of the need of memory and not of failures:
//
//   log need(x) = a + sum_i w_i z_i(x) + sum_j v_j u_j(x) + r(x)               excess(x) = log need(x) - log wall
//   w_i ~ Normal(rule_i, (rule_i / 2)^2)     z_i: log2 micro_batch, ...: parameters that have a rule (well_known.cpp)
//   v_j ~ Normal(0, 0.05^2) or Normal(0, 1)  u_j: all other parameters, from one end of their values to the other
//   r ~ GP(0, 0.25^2 Matern52, l = 0.5)      over the parameters that have a rule: logarithms of sums are not linear
//   a ~ Normal(0, 1.5^2) in the middle of the space,  log wall ~ Normal(1, 0.5^2)
//
// A trial that ran out of memory shows that excess(x) >= 0, one that ran that excess(x) <= 0, both with noise of 0.05.
// The measured peak of one that ran is an observation of log need, relative to the largest peak. Expectation
// propagation makes a Gaussian process of all of them (condition_on_bounds), and
//
//   P(x does not run out of memory) = P(excess(x) + noise <= 0)
//
// The sign of a rule is nearly certain (two stddevs). So the model is monotone where memory is: if x needs at least as
// much as a trial that ran out of memory in every z_i, its excess is at least as large, whatever the u_j are. Yet it is
// linear, so trials also show which parameters have a large effect, and they can overrule a rule.
//
// Whether parameters without a rule matter is left to the evidence: that none of them does (1/2), that one of them does
// (1/4) and that all of them do (1/4) are hypotheses that are averaged by their marginal likelihoods. As long as
// nothing speaks against "none", a configuration that differs from a failed one only in such a parameter has failed as
// well.
//
// The rules are round numbers for transformers: activations are most of what is needed where memory is tight; they grow
// with the micro-batch, and recomputation leaves a small part of them (Korthikanti et al. 2022, section 4); a split
// over ranks divides nearly everything, and ZeRO the states, stage by stage (Rajbhandari et al. 2020, section 3). On
// 36 simulated clusters (experiments/search) 4.7 of the first 20 trials fail, instead of 10.9 without this model. It
// stays between 4.5 and 5.1 (with two hypotheses) if the stddev of a rule is 0.3 or 1 times the rule, that of r is 0.1
// or 0.5, or the noise 0.15.
#include "search/model/learned_memory.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "search/model/relevant_trials.h"
#include "space/well_known.h"

namespace krigtune::search {
namespace {

constexpr double kLeastNumber = 0.25;  // positions beyond an end may stand for less, which has no logarithm

const space::WellKnownParameter* memory_rule(const std::string& name) {
  const space::WellKnownParameter* known = space::find_well_known(space::well_known_name(name));
  return known != nullptr && known->rule.speaks_of_memory() ? known : nullptr;
}

double log_memory_of_word(const space::RuleOfThumb& rule, const std::string& word) {
  for (const space::WordCost& cost : rule.words) {
    if (cost.word == word) return cost.log_memory;
  }
  return 0.0;
}

}  // namespace

MemoryFeatures::MemoryFeatures(const space::Space& space) : encoder_(space) {
  for (int column = 0; column < encoder_.ordered_dims(); ++column) add_ordered(column);
  for (int column = 0; column < encoder_.category_dims(); ++column) add_category(column);
}

void MemoryFeatures::add_ordered(int column) {
  const space::WellKnownParameter* known = memory_rule(encoder_.ordered_parameter(column).name);
  if (known == nullptr) {
    features_.push_back({++others_, column});
    return;
  }
  const space::RuleOfThumb& rule = known->rule;
  features_.push_back({0, column, false, rule.words.empty() ? rule.log_memory : rule.words.front().log_memory});
}

void MemoryFeatures::add_category(int column) {
  const space::Parameter& parameter = encoder_.category_parameter(column);
  std::vector<double> by_rule;
  if (const space::WellKnownParameter* known = memory_rule(parameter.name)) {
    for (const space::Value& value : parameter.values) {
      by_rule.push_back(log_memory_of_word(known->rule, space::to_string(value)));
    }
  }
  if (std::any_of(by_rule.begin(), by_rule.end(), [](double of_word) { return of_word != 0.0; })) {
    features_.push_back({0, column, true, 1.0, std::move(by_rule)});
    return;
  }
  ++others_;  // one feature for each value, which is 1 there
  for (std::size_t i = 0; i < parameter.values.size(); ++i) {
    features_.push_back({others_, column, true, 0.0, std::vector<double>(i + 1, 0.0)});
    features_.back().of_values.back() = 1.0;
  }
}

Eigen::VectorXd MemoryFeatures::categories(const Feature& feature, const surrogate::Points& points) const {
  Eigen::VectorXd values = Eigen::VectorXd::Zero(points.size());
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    const auto index = static_cast<std::size_t>(points.categories(i, feature.column));
    if (index < feature.of_values.size()) values(i) = feature.of_values[index];
  }
  return values;
}

Eigen::VectorXd MemoryFeatures::numbers(const Feature& feature, const surrogate::Points& points) const {
  const auto positions = points.ordered.col(feature.column);
  if (feature.owner != 0) return positions.array() - 0.5;
  const bool by_doublings = memory_rule(encoder_.ordered_parameter(feature.column).name)->smallest > 0;
  const auto number = [&](double position) {
    const double value = encoder_.number_on_axis(feature.column, position);
    return by_doublings ? std::log2(std::max(value, kLeastNumber)) : value;
  };
  const double middle = 0.5 * (number(0.0) + number(1.0));
  return positions.unaryExpr([&](double position) { return number(position) - middle; });
}

Eigen::MatrixXd MemoryFeatures::at(const surrogate::Points& points) const {
  Eigen::MatrixXd values(points.size(), static_cast<Eigen::Index>(features_.size()));
  Eigen::Index column = 0;
  for (const Feature& feature : features_) {
    values.col(column++) = feature.is_category ? categories(feature, points) : numbers(feature, points);
  }
  return values;
}

surrogate::Points MemoryFeatures::with_rules_only(const surrogate::Points& points) const {
  std::vector<Eigen::Index> ordered;
  std::vector<Eigen::Index> categories;
  for (const Feature& feature : features_) {
    if (feature.owner == 0) (feature.is_category ? categories : ordered).push_back(feature.column);
  }
  return {points.ordered(Eigen::all, ordered), points.categories(Eigen::all, categories), {}};
}

namespace {

constexpr double kOffsetStddev = 1.5;
constexpr double kLogWall = 1.0;
constexpr double kLogWallStddev = 0.5;
constexpr double kRelativeStddev = 0.5;  // of a rule
constexpr double kResidualStddev = 0.25;
constexpr double kResidualLengthscale = 0.5;
constexpr double kSideNoise = 0.05;
constexpr double kDoesNotMatter = 0.05;
constexpr double kMatters = 1.0;
constexpr double kNoneMatters = 0.5;  // probability of the hypothesis
constexpr double kOneMatters = 0.25;
constexpr double kLeastWeight = 0.01;  // a hypothesis that is less probable than this, relative to the best, is dropped
constexpr Eigen::Index kMostOfAKind =
    64;  // of those that ran, and that ran out of memory: each hypothesis takes O(n^3)

// The trials of one kind, and their peaks in bytes; 0: unknown.
struct TrialsOfAKind {
  std::vector<space::Configuration> configurations;
  std::vector<double> peaks;

  void add(const journal::Trial& trial) {
    const auto* measured = std::get_if<trial::Measured>(&*trial.outcome);
    const bool has_peak = measured != nullptr && measured->peak_memory.has_value();
    configurations.push_back(trial.proposal.configuration);
    peaks.push_back(has_peak ? static_cast<double>(measured->peak_memory->count) : 0.0);
  }
};

struct MemoryOutcomes {
  surrogate::Points points;
  Eigen::VectorXd sign;   ///< 1: it ran out of memory, -1: it ran
  Eigen::VectorXd peaks;  ///< as in TrialsOfAKind

  void append(const Candidates& candidates, const TrialsOfAKind& trials, double its_sign) {
    const surrogate::Points encoded = candidates.encode(trials.configurations);
    const std::vector<Eigen::Index> rows = spread_rows(encoded, kMostOfAKind);
    const auto count = static_cast<Eigen::Index>(rows.size());
    const Eigen::Index before = sign.size();
    points.append(encoded.rows(rows));
    sign.conservativeResize(before + count);
    peaks.conservativeResize(before + count);
    sign.tail(count).setConstant(its_sign);
    for (Eigen::Index i = 0; i < count; ++i) {
      peaks(before + i) = trials.peaks[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])];
    }
  }
};

MemoryOutcomes memory_outcomes(const Candidates& candidates, const History& history) {
  TrialsOfAKind ran_out;
  TrialsOfAKind ran;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    if (trial::ran_out_of_memory(*trial.outcome)) ran_out.add(trial);
    if (trial::ran(*trial.outcome)) ran.add(trial);
  }
  MemoryOutcomes outcomes;
  if (ran_out.peaks.empty()) return outcomes;
  outcomes.append(candidates, ran_out, 1.0);
  if (!ran.peaks.empty()) outcomes.append(candidates, ran, -1.0);
  return outcomes;
}

}  // namespace

LearnedMemory::LearnedMemory(const Candidates& candidates, const History& history) : features_(candidates.space()) {
  if (candidates.filter().knows_memory()) return;
  const MemoryOutcomes outcomes = memory_outcomes(candidates, history);
  if (outcomes.sign.size() == 0) return;
  std::vector<Eigen::Index> rows;
  for (Eigen::Index i = 0; i < outcomes.peaks.size(); ++i) {
    if (outcomes.peaks(i) > 0.0) rows.push_back(i);
  }
  surrogate::Observations peaks;
  peaks.points = featured(outcomes.points.rows(rows), 0.0);
  peaks.values = (outcomes.peaks(rows).array() / outcomes.peaks.maxCoeff()).log();
  learn(peaks, {featured(outcomes.points, -1.0), Eigen::VectorXd::Zero(outcomes.sign.size()), outcomes.sign});
}

/// Returns the points with the features of the mean. `wall` is the coefficient of log wall: -1 where the function is
/// the excess, 0 where it is log need.
surrogate::Points LearnedMemory::featured(const surrogate::Points& points, double wall) const {
  surrogate::Points result = features_.with_rules_only(points);
  const Eigen::MatrixXd features = features_.at(points);
  result.features.resize(points.size(), features.cols() + 1);
  result.features << features, Eigen::VectorXd::Constant(points.size(), wall);
  return result;
}

std::vector<LearnedMemory::Hypothesis> LearnedMemory::hypotheses() const {
  const int others = features_.others();
  std::vector<Hypothesis> all{{false, 0, kNoneMatters}};
  for (int owner = 1; owner <= others; ++owner) all.push_back({false, owner, kOneMatters / others});
  if (others > 1) all.push_back({true, 0, 1.0 - kNoneMatters - kOneMatters});
  return all;
}

surrogate::Mean LearnedMemory::mean_if(const Hypothesis& hypothesis) const {
  const auto count = static_cast<Eigen::Index>(features_.all().size());
  Eigen::VectorXd centre(count + 1);
  Eigen::VectorXd stddev(count + 1);
  for (Eigen::Index i = 0; i < count; ++i) {
    const MemoryFeatures::Feature& feature = features_.all()[static_cast<std::size_t>(i)];
    const double without_rule = hypothesis.matters(feature.owner) ? kMatters : kDoesNotMatter;
    centre(i) = feature.weight;
    stddev(i) = feature.owner == 0 ? kRelativeStddev * std::abs(feature.weight) : without_rule;
  }
  centre(count) = kLogWall;
  stddev(count) = kLogWallStddev;
  return surrogate::Mean::weighted(kOffsetStddev, centre, stddev);
}

void LearnedMemory::learn(const surrogate::Observations& peaks, const surrogate::Bounds& sides) {
  const auto kernel = surrogate::make_kernel(surrogate::KernelKind::kMatern52);
  const Eigen::VectorXd theta =
      surrogate::uniform_theta(*kernel, sides.points, kResidualLengthscale, kResidualStddev, kSideNoise);
  std::vector<double> log_weights;
  for (const Hypothesis& hypothesis : hypotheses()) {
    surrogate::CensoredFit fit = surrogate::condition_on_bounds(kernel, mean_if(hypothesis), peaks, sides, theta);
    beliefs_.push_back({std::move(fit.process)});
    log_weights.push_back(std::log(hypothesis.probability) + fit.log_evidence);
  }
  const double most = *std::max_element(log_weights.begin(), log_weights.end());
  for (std::size_t i = 0; i < beliefs_.size(); ++i) beliefs_[i].weight = std::exp(log_weights[i] - most);
  std::erase_if(beliefs_, [](const Belief& belief) { return belief.weight < kLeastWeight; });
  double sum = 0.0;
  for (const Belief& belief : beliefs_) sum += belief.weight;
  for (Belief& belief : beliefs_) belief.weight /= sum;
}

Eigen::VectorXd LearnedMemory::probability(const surrogate::Points& points) const {
  const surrogate::Points known = featured(points, -1.0);
  const auto log_probability_above_zero = surrogate::make_log_probability_above(0.0);
  Eigen::VectorXd probability = Eigen::VectorXd::Zero(points.size());
  for (const Belief& belief : beliefs_) {
    const surrogate::Prediction excess = belief.excess.predict(known);
    const surrogate::Prediction room{-excess.mean, excess.variance.array() + kSideNoise * kSideNoise};
    probability += belief.weight * log_probability_above_zero->values(room).array().exp().matrix();
  }
  return probability;
}

}  // namespace krigtune::search
