#include "deepspeed/result/ds_result.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/text.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_trial.h"
#include "forecast/learning_rate.h"

namespace krigtune::deepspeed {

std::optional<DsUserJob> ds_user_job(const session::Session& session) {
  const DeepSpeedSpec* spec = runner::ds_job_of(session.runner);
  if (spec == nullptr) return std::nullopt;
  return DsUserJob{begun_ds_config(*spec), spec->ds_config.filename().string(), spec->argv, spec->arg_mappings,
                   session.cluster.ranks()};
}

namespace {

struct Flags {
  DsCommand command;
  std::vector<FlagMapping> mappings;
};

Flags flags_of(const DsUserJob& job) {
  const DsCommand command = read_ds_command(job.command);
  return {command, flag_mappings(command, job.arg_mappings)};
}

DsRanks ranks_of(const DsUserJob& job, const Flags& flags) { return {job.ranks, flags.command.sequence_ranks}; }

// Returns the configuration that the trial had if the file leaves the batch to the flags.
space::Configuration as_tried(const DsUserJob& job, const Flags& flags, const space::Configuration& configuration) {
  return at_the_flags_batch(configuration, flags.command, flags.mappings, job.config, ranks_of(job, flags), job.source);
}

}  // namespace

Json ds_config_of(const DsUserJob& job, const space::Configuration& configuration) {
  const Flags flags = flags_of(job);
  const space::Configuration tried = as_tried(job, flags, configuration);
  return with_values(job.config, tried, DsUse::kResult, ranks_of(job, flags), job.source);
}

std::vector<std::string> ds_command_of(const DsUserJob& job, const space::Configuration& configuration,
                                       const std::string& config) {
  const Flags flags = flags_of(job);
  const space::Configuration tried = as_tried(job, flags, configuration);
  const DsRanks ranks = ranks_of(job, flags);
  return rewritten(flags.command, config, with_batch(job.config, tried, ranks, job.source), flags.mappings);
}

std::optional<std::int64_t> ds_batch_of(const DsUserJob& job, const space::Configuration& configuration) {
  const Flags flags = flags_of(job);
  return batch_of(configuration, flags.command, flags.mappings, job.config, ranks_of(job, flags), job.source);
}

namespace {

struct Advice {
  forecast::LearningRateAdvice rules;
  std::string optimizer;             ///< for people
  std::string word;                  ///< for programs; "": not known
  std::optional<double> rate_today;  ///< set if the user's file states it
};

// Uses what the user's ds_config.json says under /optimizer. It does not describe an optimizer that the script creates,
// but most of these are variants of Adam.
Advice advice_of_file(const Json& config, std::int64_t base_batch, std::int64_t batch) {
  const Json optimizer = config.value("optimizer", Json::object());
  const Json type = optimizer.is_object() ? optimizer.value("type", Json()) : Json();
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  const bool is_sgd = lower_case(name) == "sgd";
  const auto rules = forecast::learning_rate_advice(
      base_batch, batch, is_sgd ? workload::OptimizerKind::kSgd : workload::OptimizerKind::kAdamW);
  Advice advice{*rules, name.empty() ? "optimizers like Adam" : name, lower_case(name), std::nullopt};
  const Json::json_pointer rate("/optimizer/params/lr");
  if (config.contains(rate) && config.at(rate).is_number()) advice.rate_today = config.at(rate).get<double>();
  return advice;
}

std::optional<Advice> advice_of_job(const session::Session& session, const space::Configuration& configuration) {
  const DsUserJob job = ds_user_job(session).value();
  const auto today = ds_batch_of(job, session.baseline.value_or(space::Configuration()));
  const auto batch = ds_batch_of(job, configuration);
  if (!today || !batch || *today == *batch) return std::nullopt;
  return advice_of_file(job.config, *today, *batch);
}

std::optional<Advice> advice_of(const report::RunView& run) {
  if (!run.answer.best) return std::nullopt;
  const bool by_noise = run.session.objective.gradient_noise.has_value();
  if (runner::ds_job_of(run.session.runner) != nullptr && !by_noise) {
    return advice_of_job(run.session, run.answer.best->configuration);
  }
  const auto rules = forecast::learning_rate_advice(run.session, run.answer.best->configuration);
  if (!rules) return std::nullopt;
  const bool is_sgd = rules->optimizer == workload::OptimizerKind::kSgd;
  return Advice{*rules, is_sgd ? "SGD" : "AdamW", is_sgd ? "sgd" : "adamw", std::nullopt};
}

std::string change_of_rate(const Advice& advice) {
  if (!advice.rate_today) return "";
  return fmt::format(": {:.3g}, not {:.3g}", *advice.rate_today * advice.rules.learning_rate(), *advice.rate_today);
}

std::string other_rules(const forecast::LearningRateAdvice& advice) {
  const bool is_linear = !advice.by_noise && advice.optimizer == workload::OptimizerKind::kSgd;
  const bool is_root = !advice.by_noise && !is_linear;
  std::string text;
  if (!is_linear) text += fmt::format("linear x {:.3g}", advice.linear);
  if (!is_root) text += fmt::format("{}square root x {:.3g}", text.empty() ? "" : ", ", advice.square_root);
  return text;
}

}  // namespace

std::vector<std::string> batch_advice_lines(const report::RunView& run) {
  const std::optional<Advice> found = advice_of(run);
  if (!found) return {};
  const forecast::LearningRateAdvice& advice = found->rules;
  std::vector<std::string> lines = {
      fmt::format("{} sequences a step, not {}: advice for training, nothing exported is changed by it", advice.batch,
                  advice.base_batch),
      fmt::format("learning rate x {:.3g}{} ({} rule for {}; {})", advice.learning_rate(), change_of_rate(*found),
                  advice.rule(), found->optimizer, other_rules(advice))};
  std::string steps = fmt::format("steps of the warm-up x {:.3g} (as many samples)", advice.warmup_steps);
  if (advice.total_steps) steps += fmt::format(", steps in all x {:.3g} (to the same loss)", *advice.total_steps);
  lines.push_back(std::move(steps));
  return lines;
}

Json batch_advice_json(const report::RunView& run) {
  const std::optional<Advice> found = advice_of(run);
  if (!found) return nullptr;
  const forecast::LearningRateAdvice& advice = found->rules;
  Json json = {{"base_batch", advice.base_batch},
               {"batch", advice.batch},
               {"optimizer", found->word.empty() ? Json(nullptr) : Json(found->word)},
               {"rule", advice.rule()},
               {"learning_rate_times", json_number(advice.learning_rate())},
               {"linear", json_number(advice.linear)},
               {"square_root", json_number(advice.square_root)}};
  if (advice.by_noise) json["by_noise_scale"] = json_number(*advice.by_noise);
  json["warmup_steps_times"] = json_number(advice.warmup_steps);
  if (advice.total_steps) json["total_steps_times"] = json_number(*advice.total_steps);
  return json;
}

}  // namespace krigtune::deepspeed
