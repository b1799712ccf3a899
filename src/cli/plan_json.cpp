#include "plan_json.h"

#include <fmt/format.h>

#include "document.h"

namespace krigtune {
namespace {

Json terms_json(const MemoryTerms& memory) {
  Json terms = Json::object();
  for (int term = 0; term < kTermCount; ++term) {
    terms[to_string(static_cast<Term>(term))] = memory.term_bytes[static_cast<std::size_t>(term)];
  }
  terms["other"] = memory.other_bytes;
  return terms;
}

Json counts_json(const VerdictCounts& counts) {
  return {{"fit", counts.fit},
          {"uncertain", counts.uncertain},
          {"uncertain_expected_to_fit", json_number(counts.expected_to_run)},
          {"too_large", counts.too_large},
          {"not_modelled", counts.unknown}};
}

Json stage_json(const StageMemory& stage, const MemoryTerms* terms, Bytes usable) {
  Json json = {{"configurations", stage.counts.all()}};
  json.update(counts_json(stage.counts));
  json["smallest_peak_bytes"] = stage.smallest.count;
  json["largest_peak_bytes"] = stage.largest.count;
  json["example"] = {{"configuration", to_json(stage.example)}};
  if (terms == nullptr) return json;
  json["example"].update({{"peak_bytes", terms->peak.count},
                          {"peak_at", terms->peak_at},
                          {"headroom_bytes", (usable - terms->peak).count},
                          {"terms", terms_json(*terms)}});
  return json;
}

Json cost_json(const StepCost& cost) {
  return {{"products_s", cost.products_s},
          {"memory_bound_s", cost.memory_bound_s},
          {"optimizer_s", cost.optimizer_s},
          {"exposed_comm_s", cost.exposed_comm_s},
          {"offload_s", cost.offload_s},
          {"bubble_s", cost.bubble_s},
          {"idle_s", cost.idle_s},
          {"recompute_s", cost.recompute_s},
          {"tensor_comm_s", cost.tensor_comm_s},
          {"data_comm_s", cost.data_comm_s},
          {"pipeline_comm_s", cost.pipeline_comm_s},
          {"tensor_wire_bytes", json_number(cost.tensor_wire_bytes)},
          {"data_wire_bytes", json_number(cost.data_wire_bytes)}};
}

Json forecast_json(const Forecast& forecast) {
  Json json = Json::object();
  json["predicted_value"] = json_or_null(forecast.value);
  json["predicted_step_time_s"] = forecast.cost ? Json(forecast.cost->step_time_s) : Json(nullptr);
  json["predicted_samples_per_s"] = forecast.cost ? Json(forecast.samples_per_s) : Json(nullptr);
  json["predicted_memory_bytes"] = forecast.memory ? Json(forecast.memory->predicted.count) : Json(nullptr);
  json["memory_verdict"] = forecast.memory ? Json(to_string(forecast.memory->verdict)) : Json(nullptr);
  json["probability_fits"] = forecast.memory ? Json(forecast.memory->probability_fits) : Json(nullptr);
  json["bottleneck"] = forecast.cost ? Json(to_string(forecast.cost->bottleneck())) : Json(nullptr);
  if (forecast.cost) json["breakdown"] = cost_json(*forecast.cost);
  return json;
}

Json candidate_json(const Candidate& candidate) {
  Json json = {{"configuration", to_json(candidate.configuration)}};
  json.update(forecast_json(candidate.forecast));
  return json;
}

Json variants_json(const std::vector<Variant>& variants) {
  Json json = Json::array();
  for (const Variant& variant : variants) json.push_back(candidate_json(variant.candidate));
  return json;
}

Json rows_json(const std::vector<BatchRow>& rows) {
  Json json = Json::array();
  for (const BatchRow& row : rows) {
    Json one = {{"micro_batch", row.micro_batch},
                {"gradient_accumulation_steps", row.accumulation},
                {"sequences", row.sequences},
                {"plateau", row.plateau}};
    one.update(forecast_json(row.forecast));
    json.push_back(std::move(one));
  }
  return json;
}

Json space_json(const Session& session, const PlanStudy& study) {
  Json json;
  json["parameters"] = Json::object();
  for (const Parameter& parameter : session.space.parameters()) json["parameters"][parameter.name] = to_json(parameter);
  const Configuration& fixed = session.space.facts().fixed;
  if (!fixed.empty()) json["fixed"] = to_json(fixed);
  json["assumed"] = Json::object();
  for (const Assumption& one : session.assumptions) json["assumed"][one.name] = to_json(one.value);
  json["lattice_points"] = study.lattice;
  json["excluded"] = Json::object();
  for (const auto& [reason, count] : study.excluded) json["excluded"][reason] = count;
  json["same_meaning"] = study.same_meaning;
  json["configurations"] = study.configurations ? Json(*study.configurations) : Json(nullptr);
  json["looked_at"] = study.looked_at();
  json.update(counts_json(study.counts));
  const bool is_known = !study.is_sample();
  json["to_be_tried"] = is_known ? Json(study.looked_at() - study.counts.too_large) : Json(nullptr);
  return json;
}

Json expected_json(const Session& session, const PlanStudy& study, const ExpectedTime& time) {
  constexpr double kHour = 3600.0;
  const auto hours = [&](const std::optional<double>& seconds) {
    return seconds ? json_number(*seconds / kHour * static_cast<double>(session.cluster.ranks())) : Json(nullptr);
  };
  const std::vector<double>& steps = study.step_times_s;
  return {{"trials", session.budget.trials},
          {"expected_trials", time.trials},
          {"expected_s", json_or_null(time.trials_s)},
          {"expected_gpu_hours", hours(time.trials_s)},
          {"at_most_s", json_or_null(time.most_trials_s)},
          {"at_most_gpu_hours", hours(time.most_trials_s)},
          {"median_step_time_s", steps.empty() ? Json(nullptr) : Json(steps[steps.size() / 2])}};
}

}  // namespace

Json to_json(const Session& session, const Forecaster& forecaster, const PlanStudy& study, const PlanAnswers& answers) {
  Json json = space_json(session, study);
  const std::optional<Bytes>& usable = session.usable_per_rank;
  json["usable_bytes_per_rank"] = usable ? Json(usable->count) : Json(nullptr);
  json["memory_by_zero_stage"] = Json::object();
  for (const auto& [number, stage] : study.stages) {
    const auto terms = answers.terms.find(number);
    json["memory_by_zero_stage"][fmt::format("{}", number)] =
        stage_json(stage, terms == answers.terms.end() ? nullptr : &terms->second, *usable);
  }
  json["baseline"] = session.baseline ? to_json(*session.baseline) : Json(nullptr);
  json["no_time_because"] = forecaster.knows_time() ? Json(nullptr) : Json(forecaster.why_no_time());
  json["best"] = Json::array();
  for (const Candidate& candidate : study.best) {
    json["best"].push_back(candidate_json(candidate));
    json["best"].back()["similar"] = candidate.similar;
  }
  json["baseline_forecast"] = answers.baseline ? candidate_json(*answers.baseline) : Json(nullptr);
  json["best_without_memory_limit"] =
      study.best_without_limit ? candidate_json(*study.best_without_limit) : Json(nullptr);
  json["what_if"] = Json::array();
  for (const WhatIf& answer : answers.what_ifs) {
    json["what_if"].push_back({{"change", answer.change}, {"gain", answer.gain}});
  }
  json["by_zero_stage"] = variants_json(answers.by_zero_stage);
  json["by_tensor_parallel"] = variants_json(answers.by_tensor_parallel);
  json["by_micro_batch"] = rows_json(answers.batch.by_micro_batch);
  json["by_accumulation"] = rows_json(answers.batch.by_accumulation);
  json.update(expected_json(session, study, answers.time));
  return json;
}

}  // namespace krigtune
