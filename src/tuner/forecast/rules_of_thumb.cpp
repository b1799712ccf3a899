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
// The numbers stand in the parameters' rows (space/well_known.cpp). They are round ones; trials to the best on
// ultrascale_dev.csv and vtrain_single_node.csv change by less than one where any of them is halved or doubled
// (docs/search.md).
#include "forecast/rules_of_thumb.h"

#include <algorithm>
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

constexpr double kLogSpeedOfTraffic = -0.1;  // for each doubling

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

// Under the parameter's own name alone: other names of it have words of their own ("true" for full).
const std::vector<WordCost>& words_of(std::string_view name) {
  static const std::vector<WordCost> kNone;
  const WellKnownParameter* known = find_well_known(name);
  return known == nullptr ? kNone : known->rule.words;
}

double log_speed_of_word(std::string_view name, const Value& value) {
  const std::string text = to_string(value);
  for (const WordCost& cost : words_of(name)) {
    if (cost.word == text) return cost.log_speed;
  }
  return 0.0;
}

bool says_something(const Parameter& parameter) {
  const bool varies = parameter.continuous() || parameter.values.size() > 1;
  return varies && (rule_of_thumb(parameter.name) != nullptr || !words_of(parameter.name).empty());
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
    const RuleOfThumb* rule = rule_of_thumb(name);
    if (rule == nullptr || !is_number(value)) return log_speed_of_word(name, value);
    const auto largest = largest_.find(name);
    if (largest == largest_.end() || !(as_number(value) > 0.0) || !(largest->second > 0.0)) return 0.0;
    return rule->log_speed * std::log2(as_number(value) / largest->second);
  }

  std::map<std::string, double> largest_;
};

}  // namespace

const RuleOfThumb* rule_of_thumb(const std::string& name) {
  const WellKnownParameter* known = find_well_known(well_known_name(name));
  return known != nullptr && known->rule.speaks_of_numbers() ? &known->rule : nullptr;
}

std::vector<std::string> model_splits(const Space& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters()) {
    const RuleOfThumb* rule = rule_of_thumb(parameter.name);
    const bool varies = parameter.continuous() || parameter.values.size() > 1;
    if (rule != nullptr && rule->splits_model && varies && !parameter.categorical) names.push_back(parameter.name);
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
