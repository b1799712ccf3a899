#include "forecast/prior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "forecast/hypotheses.h"
#include "space/well_known.h"
#include "trial/outcome.h"

namespace krigtune::forecast {
namespace {

// A clock whose scale is wrong (everything by the same power) is rarer than one with individual errors.
constexpr Prior::Coefficient kPhysicsCoefficient{1.0, 0.2};

class JobPrior final : public Prior {
 public:
  JobPrior(std::shared_ptr<const Hypotheses> hypotheses, std::shared_ptr<const Prior> rules)
      : hypotheses_(std::move(hypotheses)), rules_(std::move(rules)) {}

  Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
    if (!hypotheses_->is_told(0) && hypotheses_->guess_roles()) {
      return Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
    }
    if (!hypotheses_->is_told(0) && rules_) return rules_->log_values(configurations);
    return hypotheses_->log_values({0}, configurations);
  }
  Coefficient coefficient() const override { return kPhysicsCoefficient; }
  const Hypotheses* hypotheses() const override { return hypotheses_.get(); }

 private:
  std::shared_ptr<const Hypotheses> hypotheses_;
  std::shared_ptr<const Prior> rules_;
};

}  // namespace

std::shared_ptr<const Prior> make_physics_prior(const session::Session& session, const session::MemoryFilter& filter) {
  if (session::metric_of(session.objective) == nullptr) return nullptr;
  std::shared_ptr<const Prior> rules = make_rules_of_thumb(session);
  std::shared_ptr<const Hypotheses> hypotheses = Hypotheses::of(session, filter);
  if (hypotheses == nullptr) return rules;
  return std::make_shared<const JobPrior>(std::move(hypotheses), std::move(rules));
}

// Rules of thumb, for sessions without predicted times but with the usual parameter names:
//
//   log speed = -0.2 log2(tensor_parallel * pipeline_parallel) + 0.05 log2(micro_batch) - 0.1 log2(traffic / 2)
//               + 0.03 log2(reduce_bucket_size) - what is computed twice or moved to the host + constant,  times 1 +-
//               0.5
//
// "Split a model over no more ranks than its memory needs, and fill the GPU" (Narayanan et al. 2021, "Efficient
// large-scale language model training on GPU clusters", takeaways 1 to 3): each doubling of the split costs about 20 %,
// for collectives or a bubble; each doubling of the micro-batch uses kernels better.
// - Values enter as the logarithm of their fraction of the largest one. A bucket that does not exist is as good as any.
// - A larger bucket needs fewer collectives. 0.12 for each doubling was measured where buckets are far smaller than the
//   model, and nothing where they hold the whole model (experiments/deepspeed_cpu).
// - traffic is the number of parameters that a rank sends in a step in DeepSpeed (runtime/zero/stage_1_and_2.py,
//   stage3.py; ZeRO: Rajbhandari et al. 2020, section 7): with n micro-steps 2 at stage 0, 3 at 1, 2 n + 1 at 2
//   and 3 n at 3.
// - Computed twice are all forwards, a third of the work (Chen et al. 2016, "Training deep nets with sublinear memory
//   cost"), or attention's inner part, 3 % (Korthikanti et al. 2022, section 5). Offloaded states move through the
//   host's memory.
// - The coefficient's stddev of a half says how little is known about the sizes. The surrogate learns the differences.
//
// Success: a micro-batch needs memory (one probit less from one end of its values to the other); tensor parallelism and
// ZeRO save memory. Pipelines save it too, but fail for other reasons if there are more stages than layers, so they
// have no rule.
//
// The numbers are in the parameters' rows (space/well_known.cpp). They are round: if any of them is halved or doubled,
// the number of trials to the best on ultrascale_dev.csv and vtrain_single_node.csv changes by less than one
// (docs/search.md).
namespace {

constexpr Prior::Coefficient kRulesCoefficient{1.0, 0.5};

constexpr double kLogSpeedOfTraffic = -0.1;  // for each doubling

double number_or(const space::Configuration& configuration, std::string_view name, double fallback) {
  const space::Value* value = configuration.find(std::string(name));
  return value != nullptr && space::is_number(*value) ? space::as_number(*value) : fallback;
}

// Returns how many times its parameters a rank sends in a step.
double traffic(const space::Configuration& configuration) {
  const double stage = number_or(configuration, space::kZeroStage, 0.0);
  const double micro_steps = std::max(1.0, number_or(configuration, space::kAccumulation, 1.0));
  if (stage >= 3.0) return 3.0 * micro_steps;
  if (stage >= 2.0) return 2.0 * micro_steps + 1.0;
  return stage >= 1.0 ? 3.0 : 2.0;
}

// Only for the parameter's own name, because its other names have other words ("true" for full).
const std::vector<space::WordCost>& words_of(std::string_view name) {
  static const std::vector<space::WordCost> kNone;
  const space::WellKnownParameter* known = space::find_well_known(name);
  return known == nullptr ? kNone : known->rule.words;
}

double log_speed_of_word(std::string_view name, const space::Value& value) {
  const std::string text = space::to_string(value);
  for (const space::WordCost& cost : words_of(name)) {
    if (cost.word == text) return cost.log_speed;
  }
  return 0.0;
}

bool says_something(const space::Parameter& parameter) {
  const bool varies = parameter.continuous() || parameter.values.size() > 1;
  return varies && (rule_of_thumb(parameter.name) != nullptr || !words_of(parameter.name).empty());
}

bool rules_speak_of(const session::Objective& objective) {
  const trial::Metric* known = session::metric_of(objective);
  return known != nullptr && known->is_speed;
}

double largest_of(const space::Parameter& parameter) {
  if (parameter.continuous()) return parameter.range->max;
  double largest = 0.0;
  for (const space::Value& value : parameter.values)
    largest = space::is_number(value) ? std::max(largest, space::as_number(value)) : largest;
  return largest;
}

class RulesOfThumb final : public Prior {
 public:
  explicit RulesOfThumb(const space::Space& space) {
    for (const space::Parameter& parameter : space.parameters()) largest_[parameter.name] = largest_of(parameter);
  }

  Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
    Eigen::VectorXd values = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      const space::Configuration& configuration = configurations[static_cast<std::size_t>(i)];
      values(i) = kLogSpeedOfTraffic * std::log2(traffic(configuration) / 2.0);
      for (const auto& [name, value] : configuration) values(i) += log_speed_of(name, value);
    }
    return values;
  }

  Coefficient coefficient() const override { return kRulesCoefficient; }

 private:
  double log_speed_of(const std::string& name, const space::Value& value) const {
    const space::RuleOfThumb* rule = rule_of_thumb(name);
    if (rule == nullptr || !space::is_number(value)) return log_speed_of_word(name, value);
    const auto largest = largest_.find(name);
    if (largest == largest_.end() || !(space::as_number(value) > 0.0) || !(largest->second > 0.0)) return 0.0;
    return rule->log_speed * std::log2(space::as_number(value) / largest->second);
  }

  std::map<std::string, double> largest_;
};

}  // namespace

const space::RuleOfThumb* rule_of_thumb(const std::string& name) {
  const space::WellKnownParameter* known = space::find_well_known(space::well_known_name(name));
  return known != nullptr && known->rule.speaks_of_numbers() ? &known->rule : nullptr;
}

std::vector<std::string> model_splits(const space::Space& space) {
  std::vector<std::string> names;
  for (const space::Parameter& parameter : space.parameters()) {
    const space::WellKnownParameter* known = space::find_well_known(space::well_known_name(parameter.name));
    const bool splits = known != nullptr && known->splits_ranks == space::RankSplit::kModel;
    const bool varies = parameter.continuous() || parameter.values.size() > 1;
    if (splits && varies && !parameter.categorical) names.push_back(parameter.name);
  }
  return names;
}

std::shared_ptr<const Prior> make_rules_of_thumb(const session::Session& session) {
  const auto& parameters = session.space.parameters();
  if (!rules_speak_of(session.objective) || std::none_of(parameters.begin(), parameters.end(), says_something)) {
    return nullptr;
  }
  return std::make_shared<const RulesOfThumb>(session.space);
}

}  // namespace krigtune::forecast
