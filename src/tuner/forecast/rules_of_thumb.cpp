// Rules of thumb, for sessions whose times nobody predicts but whose parameters have their usual names:
//
//   log speed = -0.2 log2(tensor_parallel * pipeline_parallel) + 0.05 log2(micro_batch) - 0.1 log2(traffic / 2)
//               + 0.03 log2(reduce_bucket_size) - what is computed twice or moved to the host + constant,  times 1 +-
//               0.5
//
// "Split a model over no more ranks than its memory needs, and fill the GPU" (Narayanan et al. 2021, "Efficient
// large-scale language model training on GPU clusters", takeaways 1 to 3): each doubling costs collectives or a bubble,
// some 20 %; each doubling of the micro-batch fills kernels better.
// Logarithms of values are those of their parts of the largest one: a bucket that does not exist is as good as any.
// A larger bucket needs fewer collectives (0.12 for each doubling were measured where buckets are far smaller than the
// model, nothing where they hold it: experiments/deepspeed_cpu).
// traffic: parameters sent by a rank in a step, as DeepSpeed does it (runtime/zero/stage_1_and_2.py, stage3.py; ZeRO:
// Rajbhandari et al. 2020, section 7): with n micro-steps 2 at stage 0, 3 at 1, 2 n + 1 at 2, 3 n at 3.
// Computed twice: all forwards, a third of the work (Chen et al. 2016, "Training deep nets with sublinear memory
// cost"), or attention's inner part, 3 % (Korthikanti et al. 2022, section 5). Moved: states through the host's memory.
// The coefficient's spread of a half says how little is known of the sizes, and the surrogate learns what is otherwise
// here.
//
// Success: a micro-batch needs memory (a probit less from one end of its values to the other), tensor parallelism and
// ZeRO save it; pipelines save it as well and fail on their own where stages outnumber layers: no rule.
//
// The numbers are round ones; trials to the best on ultrascale_dev.csv and vtrain_single_node.csv change by less than
// one where any of them is halved or doubled (docs/search.md).
#include "forecast/rules_of_thumb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "krigtune/runner/metrics.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"
#include "krigtune/tuner/prior.h"

namespace krigtune {
namespace {

constexpr Prior::Coefficient kRulesCoefficient{1.0, 0.5};

struct Named {
  std::string_view name;
  RuleOfThumb rule;
};
constexpr std::array kRules = {
    Named{"tensor_parallel", {-0.2, 1.0, true}},     Named{"pipeline_parallel", {-0.2, 0.0, true}},
    Named{"micro_batch", {0.05, -1.0, false}},       Named{"zero_stage", {0.0, 0.3, false}},
    Named{"reduce_bucket_size", {0.03, 0.0, false}},
};

constexpr double kLogSpeedOfTraffic = -0.1;  // for each doubling

struct Costly {
  std::string_view name;
  std::string_view value;
  double log_speed;
};
constexpr std::array kCostly = {
    Costly{"activation_checkpointing", "full", -0.288},
    Costly{"activation_checkpointing", "selective", -0.03},
    Costly{"offload_optimizer", "cpu", -0.3},
    Costly{"offload_optimizer", "nvme", -1.0},
    Costly{"offload_param", "cpu", -0.5},
    Costly{"offload_param", "nvme", -1.5},
};

double number_or(const Configuration& configuration, std::string_view name, double fallback) {
  const Value* value = configuration.find(std::string(name));
  return value != nullptr && is_number(*value) ? as_number(*value) : fallback;
}

// Parameters that a rank sends in a step.
double traffic(const Configuration& configuration) {
  const double stage = number_or(configuration, kZeroStage, 0.0);
  const double micro_steps = std::max(1.0, number_or(configuration, kAccumulation, 1.0));
  if (stage >= 3.0) return 3.0 * micro_steps;
  if (stage >= 2.0) return 2.0 * micro_steps + 1.0;
  return stage >= 1.0 ? 3.0 : 2.0;
}

double log_speed_of_choice(std::string_view name, const Value& value) {
  const std::string text = to_string(value);
  for (const Costly& costly : kCostly) {
    if (costly.name == name && costly.value == text) return costly.log_speed;
  }
  return 0.0;
}

bool says_something(const Parameter& parameter) {
  const bool varies = parameter.continuous() || parameter.values.size() > 1;
  return varies && (rule_of_thumb(parameter.name) ||
                    std::any_of(kCostly.begin(), kCostly.end(),
                                [&](const Costly& costly) { return costly.name == parameter.name; }));
}

bool rules_speak_of(const Objective& objective) {
  const Metric* known = find_metric(objective.metric);
  return known != nullptr && known->is_speed;
}

double largest_of(const Parameter& parameter) {
  if (parameter.continuous()) return parameter.range->max;
  double largest = 0.0;
  for (const Value& value : parameter.values)
    largest = is_number(value) ? std::max(largest, as_number(value)) : largest;
  return largest;
}

class RulesOfThumb final : public Prior {
 public:
  explicit RulesOfThumb(const Space& space) {
    for (const Parameter& parameter : space.parameters()) largest_[parameter.name] = largest_of(parameter);
  }

  Eigen::VectorXd log_values(const std::vector<Configuration>& configurations) const override {
    Eigen::VectorXd values = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      const Configuration& configuration = configurations[static_cast<std::size_t>(i)];
      values(i) = kLogSpeedOfTraffic * std::log2(traffic(configuration) / 2.0);
      for (const auto& [name, value] : configuration) values(i) += log_speed_of(name, value);
    }
    return values;
  }

  Coefficient coefficient() const override { return kRulesCoefficient; }

 private:
  double log_speed_of(const std::string& name, const Value& value) const {
    const std::optional<RuleOfThumb> rule = rule_of_thumb(name);
    if (!rule || !is_number(value)) return log_speed_of_choice(name, value);
    const auto largest = largest_.find(name);
    if (largest == largest_.end() || !(as_number(value) > 0.0) || !(largest->second > 0.0)) return 0.0;
    return rule->log_speed * std::log2(as_number(value) / largest->second);
  }

  std::map<std::string, double> largest_;
};

}  // namespace

std::optional<RuleOfThumb> rule_of_thumb(const std::string& name) {
  const std::string_view known_as = well_known_name(name);
  for (const Named& known : kRules) {
    if (known.name == known_as) return known.rule;
  }
  return std::nullopt;
}

std::vector<std::string> model_splits(const Space& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters()) {
    const std::optional<RuleOfThumb> rule = rule_of_thumb(parameter.name);
    const bool varies = parameter.continuous() || parameter.values.size() > 1;
    if (rule && rule->splits_model && varies && !parameter.categorical) names.push_back(parameter.name);
  }
  return names;
}

std::shared_ptr<const Prior> make_rules_of_thumb(const Session& session) {
  const auto& parameters = session.space.parameters();
  if (!rules_speak_of(session.objective) || std::none_of(parameters.begin(), parameters.end(), says_something)) {
    return nullptr;
  }
  return std::make_shared<const RulesOfThumb>(session.space);
}

}  // namespace krigtune
