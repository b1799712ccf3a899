// Rules of thumb, for sessions whose times nobody predicts but whose parameters have their usual names:
//
//   log speed = -0.2 log2(tensor_parallel * pipeline_parallel) + 0.05 log2(micro_batch) + constant,   times 1 +- 0.5
//
// "Split a model over no more ranks than its memory needs, and fill the GPU" (Narayanan et al. 2021, "Efficient
// large-scale language model training on GPU clusters", takeaways 1 to 3): each doubling costs collectives or a bubble,
// some 20 %; each doubling of the micro-batch fills kernels better. The coefficient's spread of a half says how little
// is known of the size, and the surrogate learns what is otherwise here.
//
// Where the model is not split but ZeRO stages are chosen between, as in a DeepSpeed job of unknown sizes:
//
//   log speed = -0.2 log2(v) + 0.05 log2(micro_batch) + constant,   times 1 +- 0.5
//   v = 2, 2, a + 1, 3 a at stages 0 to 3,   a = gradient_accumulation_steps
//
// v is what a rank sends in a step, in parameters (Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training
// trillion parameter models", section 7): gradients once a step, or from stage 2 on once a micro-batch; parameters once
// a step, or at stage 3 twice a micro-batch. Without it the first trials go where most configurations are: to stage 3,
// which alone has three more knobs.
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
#include <string_view>

#include "krigtune/tuner/prior.h"

namespace krigtune {
namespace {

constexpr Prior::Coefficient kCoefficient{1.0, 0.5};

struct Named {
  std::array<std::string_view, 4> names;
  RuleOfThumb rule;
};
constexpr std::array kRules = {
    Named{{"tensor_parallel", "tp", "tensor_parallel_size", "tensor_model_parallel_size"}, {-0.2, 1.0, true}},
    Named{{"pipeline_parallel", "pp", "pipeline_parallel_size", "pipeline_model_parallel_size"}, {-0.2, 0.0, true}},
    Named{{"micro_batch", "mbs", "micro_batch_size", "train_micro_batch_size_per_gpu"}, {0.05, -1.0, false}},
    Named{{"zero_stage", "zero", "zero_stages", "zero_optimization_stage"}, {0.0, 0.3, false}},
};

bool follows_from_time(const Objective& objective) {
  constexpr std::array<std::string_view, 4> kOfTime{"throughput", "tokens_per_second", "latency", "flops"};
  return std::find(kOfTime.begin(), kOfTime.end(), objective.metric) != kOfTime.end();
}

class RulesOfThumb final : public Prior {
 public:
  Eigen::VectorXd log_values(const std::vector<Configuration>& configurations) const override {
    Eigen::VectorXd values = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      for (const auto& [name, value] : configurations[static_cast<std::size_t>(i)]) {
        const std::optional<RuleOfThumb> rule = rule_of_thumb(name);
        if (!rule || !is_number(value) || !(as_number(value) > 0.0)) continue;
        values(i) += rule->log_speed * std::log2(as_number(value));
      }
    }
    return values;
  }

  Coefficient coefficient() const override { return kCoefficient; }
};

constexpr const char* kStage = "zero_stage";

double number_of(const Configuration& configuration, const char* name, double fallback) {
  const Value* value = configuration.find(name);
  return value != nullptr && is_number(*value) && as_number(*value) > 0.0 ? as_number(*value) : fallback;
}

class ZeroRules final : public Prior {
 public:
  Eigen::VectorXd log_values(const std::vector<Configuration>& configurations) const override {
    constexpr double kLogSpeed = -0.2;
    Eigen::VectorXd values(static_cast<Eigen::Index>(configurations.size()));
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      const Configuration& configuration = configurations[static_cast<std::size_t>(i)];
      values(i) = kLogSpeed * std::log2(sent(configuration)) +
                  rule_of_thumb("micro_batch")->log_speed * std::log2(number_of(configuration, "micro_batch", 1.0));
    }
    return values;
  }

  Coefficient coefficient() const override { return kCoefficient; }

 private:
  /// In parameters.
  static double sent(const Configuration& configuration) {
    const double accumulation = number_of(configuration, "gradient_accumulation_steps", 1.0);
    const double stage = number_of(configuration, kStage, 0.0);
    if (stage < 2.0) return 2.0;
    return stage < 3.0 ? accumulation + 1.0 : 3.0 * accumulation;
  }
};

bool chooses_stages(const Space& space) {
  return std::any_of(space.parameters().begin(), space.parameters().end(), [](const Parameter& parameter) {
    return parameter.name == kStage && !parameter.continuous() && parameter.values.size() > 1;
  });
}

}  // namespace

std::optional<RuleOfThumb> rule_of_thumb(const std::string& name) {
  for (const Named& known : kRules) {
    if (std::find(known.names.begin(), known.names.end(), name) != known.names.end()) return known.rule;
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
  if (!follows_from_time(session.objective)) return nullptr;
  if (!model_splits(session.space).empty()) return std::make_shared<const RulesOfThumb>();
  if (chooses_stages(session.space)) return std::make_shared<const ZeroRules>();
  return nullptr;
}

}  // namespace krigtune
