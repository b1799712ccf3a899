#include "krigtune/report/batch_advice.h"

#include <fmt/format.h>

#include "krigtune/core/json.h"
#include "krigtune/tuner/learning_rate.h"

namespace krigtune {
namespace {

std::optional<LearningRateAdvice> advice_of(const RunView& run) {
  return run.best ? learning_rate_advice(run.session, run.best->configuration) : std::nullopt;
}

const char* name_of(OptimizerKind optimizer) { return optimizer == OptimizerKind::kSgd ? "SGD" : "AdamW"; }

std::string other_rules(const LearningRateAdvice& advice) {
  const bool is_linear = !advice.by_noise && advice.optimizer == OptimizerKind::kSgd;
  const bool is_root = !advice.by_noise && !is_linear;
  std::string text;
  if (!is_linear) text += fmt::format("linear x {:.3g}", advice.linear);
  if (!is_root) text += fmt::format("{}square root x {:.3g}", text.empty() ? "" : ", ", advice.square_root);
  return text;
}

}  // namespace

std::vector<std::string> batch_advice_lines(const RunView& run) {
  const std::optional<LearningRateAdvice> advice = advice_of(run);
  if (!advice) return {};
  std::vector<std::string> lines = {
      fmt::format("{} sequences a step, not {}: advice for training, nothing exported is changed by it", advice->batch,
                  advice->base_batch),
      fmt::format("learning rate x {:.3g} ({} rule for {}; {})", advice->learning_rate(), advice->rule(),
                  name_of(advice->optimizer), other_rules(*advice))};
  std::string steps = fmt::format("steps of the warm-up x {:.3g} (as many samples)", advice->warmup_steps);
  if (advice->total_steps) steps += fmt::format(", steps in all x {:.3g} (to the same loss)", *advice->total_steps);
  lines.push_back(std::move(steps));
  return lines;
}

Json batch_advice_json(const RunView& run) {
  const std::optional<LearningRateAdvice> advice = advice_of(run);
  if (!advice) return nullptr;
  Json json = {{"base_batch", advice->base_batch},
               {"batch", advice->batch},
               {"optimizer", advice->optimizer == OptimizerKind::kSgd ? "sgd" : "adamw"},
               {"rule", advice->rule()},
               {"learning_rate_times", json_number(advice->learning_rate())},
               {"linear", json_number(advice->linear)},
               {"square_root", json_number(advice->square_root)}};
  if (advice->by_noise) json["by_noise_scale"] = json_number(*advice->by_noise);
  json["warmup_steps_times"] = json_number(advice->warmup_steps);
  if (advice->total_steps) json["total_steps_times"] = json_number(*advice->total_steps);
  return json;
}

}  // namespace krigtune
