#include "programs/krigtune/diagnose_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan_tables.h"
#include "programs/krigtune/plan_text.h"
#include "report/labels.h"

namespace krigtune::cli {
namespace {

std::string memory_text(const session::Session& session, const diagnose::Prediction& prediction) {
  if (!prediction.memory || !session.usable_per_rank) return "";
  return fmt::format(", {} of {} a rank", to_string(prediction.memory->predicted), to_string(*session.usable_per_rank));
}

std::string speed_text(const diagnose::Prediction& prediction, double step_s) {
  return fmt::format("{} a step, {} samples/s", duration_text(step_s),
                     report::rate_text(prediction.sequences / step_s));
}

std::string change_text(const diagnose::Advice& advice) {
  if (advice.changes.empty()) return advice.machine;
  std::vector<std::string> parts;
  for (const diagnose::Change& change : advice.changes) {
    parts.push_back(fmt::format("{}={} instead of {}", change.parameter, space::to_string(change.after),
                                space::to_string(change.before)));
  }
  return join(parts, ", with ");
}

std::string advice_text(const session::Session& session, const diagnose::Advice& advice) {
  std::string text = fmt::format("   - {}: {:.2f} times as fast, {}{}", change_text(advice), advice.speedup,
                                 duration_text(advice.predicted.cost.step_time_s),
                                 advice.changes.empty() ? "" : memory_text(session, advice.predicted));
  if (!advice.in_space) text += "; not in the session's space";
  if (!advice.price.empty()) text += "; " + join(advice.price, "; ");
  return text;
}

std::string evidence_text(const diagnose::Verdict& verdict) {
  return fmt::format("   {} = {:.3g}, threshold {:.3g}, {}", verdict.quantity, verdict.number, verdict.threshold,
                     verdict.measured ? "measured and modelled" : "predicted");
}

void print_verdict(std::ostream& out, const session::Session& session, const diagnose::Verdict& verdict, int number) {
  const bool has_share = verdict.limit != diagnose::Limit::kMissingMemory;
  const std::string share = has_share ? fmt::format(": {:.0f} % of the step", 100.0 * verdict.share) : "";
  out << wrapped(fmt::format("{}. {}{}", number, diagnose::title_of(verdict.limit), share), 3)
      << wrapped("   " + verdict.sentence, 3) << wrapped(evidence_text(verdict), 3);
  if (verdict.advice.empty()) out << "   - no related setting helps by 2 % or more, according to the models\n";
  for (const diagnose::Advice& advice : verdict.advice) out << wrapped(advice_text(session, advice), 5);
}

void print_measured(std::ostream& out, const session::Session& session, const diagnose::Diagnosis& diagnosis) {
  if (!diagnosis.measured_step_s) {
    out << wrapped(fmt::format("  predicted: {}{}{}", speed_text(diagnosis.stated, diagnosis.stated.cost.step_time_s),
                               memory_text(session, diagnosis.stated), report::emulated_note(session)),
                   2);
    return;
  }
  std::string text = fmt::format("  measured: {}", speed_text(diagnosis.stated, *diagnosis.measured_step_s));
  if (diagnosis.measured_exposed_comm_s) {
    text += fmt::format(", communication exposed for {}", duration_text(*diagnosis.measured_exposed_comm_s));
  }
  if (diagnosis.measured_peak) text += fmt::format(", peak {}", to_string(*diagnosis.measured_peak));
  out << wrapped(text + report::emulated_note(session), 2)
      << wrapped(fmt::format("  predicted: {}{}", speed_text(diagnosis.stated, diagnosis.stated.cost.step_time_s),
                             memory_text(session, diagnosis.stated)),
                 2)
      << wrapped(fmt::format("  the models are corrected by it: kernels take {:.2f} times as long as stated, "
                             "collectives {:.2f} times",
                             diagnosis.factors->kernels, diagnosis.factors->collectives),
                 2);
  if (diagnosis.is_unexplained()) {
    out << wrapped(fmt::format("  together they take {} per step{}; no factor explains the difference",
                               duration_text(diagnosis.learned.cost.step_time_s),
                               diagnosis.straggling_s > 0.0 ? " without the slow rank" : ""),
                   2);
  }
}

}  // namespace

void print_diagnosis(std::ostream& out, const session::Session& session, const diagnose::Diagnosis& diagnosis,
                     const std::string& subject) {
  out << wrapped(fmt::format("{}: {}", subject, diagnosis.configuration.text()), 2);
  print_measured(out, session, diagnosis);
  out << fmt::format("\nWhere the step goes, {}\n",
                     diagnosis.measured_step_s ? "by the corrected models" : "as predicted");
  print_step_shares(out, diagnosis.learned.cost);
  out << "\nWhat limits it\n";
  if (diagnosis.verdicts.empty()) out << "  nothing stands out: every part of the step is below its threshold\n";
  int number = 0;
  for (const diagnose::Verdict& verdict : diagnosis.verdicts) print_verdict(out, session, verdict, ++number);
}

namespace {

Json memory_json(const diagnose::Prediction& prediction) {
  if (!prediction.memory) return nullptr;
  return {{"predicted_bytes", prediction.memory->predicted.count},
          {"verdict", plan::to_string(prediction.memory->verdict)},
          {"probability_fits", prediction.memory->probability_fits}};
}

Json prediction_json(const diagnose::Prediction& prediction) {
  const cost::StepCost& cost = prediction.cost;
  return {{"step_time_s", cost.step_time_s},
          {"samples_per_s", prediction.sequences / cost.step_time_s},
          {"sequences", json_number(prediction.sequences)},
          {"memory", memory_json(prediction)},
          {"breakdown", step_parts_json(cost)}};
}

Json advice_json(const diagnose::Advice& advice) {
  Json changes = Json::array();
  for (const diagnose::Change& change : advice.changes) {
    changes.push_back({{"parameter", change.parameter},
                       {"before", space::to_json(change.before)},
                       {"after", space::to_json(change.after)}});
  }
  return {{"changes", changes},
          {"machine", advice.machine.empty() ? Json(nullptr) : Json(advice.machine)},
          {"configuration", space::to_json(advice.configuration)},
          {"speedup", advice.speedup},
          {"predicted_step_time_s", advice.predicted.cost.step_time_s},
          {"predicted_samples_per_s", advice.predicted.sequences / advice.predicted.cost.step_time_s},
          {"memory", memory_json(advice.predicted)},
          {"in_space", advice.in_space},
          {"price", advice.price}};
}

Json verdict_json(const diagnose::Verdict& verdict) {
  Json json = {
      {"limit", diagnose::to_string(verdict.limit)},
      {"reason", verdict.reason == diagnose::Reason::kNone ? Json(nullptr) : Json(diagnose::to_string(verdict.reason))},
      {"share", verdict.share},
      {"quantity", verdict.quantity},
      {"number", verdict.number},
      {"threshold", verdict.threshold},
      {"measured", verdict.measured},
      {"sentence", verdict.sentence},
      {"advice", Json::array()}};
  for (const diagnose::Advice& advice : verdict.advice) json["advice"].push_back(advice_json(advice));
  return json;
}

}  // namespace

Json to_json(const session::Session& session, const diagnose::Diagnosis& diagnosis) {
  const std::optional<Bytes>& peak = diagnosis.measured_peak;
  Json json = {
      {"configuration", space::to_json(diagnosis.configuration)},
      {"emulated_network", emulated_json(session)},
      {"usable_bytes_per_rank", session.usable_per_rank ? Json(session.usable_per_rank->count) : Json(nullptr)},
      {"measured",
       {{"step_time_s", json_or_null(diagnosis.measured_step_s)},
        {"exposed_comm_s", json_or_null(diagnosis.measured_exposed_comm_s)},
        {"peak_memory_bytes", peak ? Json(peak->count) : Json(nullptr)}}},
      {"predicted", prediction_json(diagnosis.stated)},
      {"corrected", diagnosis.factors ? prediction_json(diagnosis.learned) : Json(nullptr)},
      {"factors", nullptr},
      {"verdicts", Json::array()}};
  json["unexplained"] = diagnosis.is_unexplained();
  if (diagnosis.factors) {
    json["factors"] = {{"kernels", diagnosis.factors->kernels},
                       {"products", diagnosis.factors->products},
                       {"memory", diagnosis.factors->memory},
                       {"collectives", diagnosis.factors->collectives}};
  }
  for (const diagnose::Verdict& verdict : diagnosis.verdicts) json["verdicts"].push_back(verdict_json(verdict));
  return json;
}

// Measurements of which no model is known.
namespace {

// Returns the largest possible gain from removing a loss. Empty for useful work, which must be done, and if unknown.
std::optional<double> most_gain(const diagnose::Verdict& verdict) {
  const bool is_work = verdict.limit == diagnose::Limit::kCompute || verdict.limit == diagnose::Limit::kMemoryBandwidth;
  if (is_work || !(verdict.share < 1.0)) return std::nullopt;
  return 1.0 / (1.0 - verdict.share);
}

}  // namespace

void print_parts(std::ostream& out, const diagnose::MeasuredParts& measured, const std::string& subject) {
  const std::string steps = measured.steps > 1.0 ? fmt::format(" in {:.0f} steps", measured.steps) : "";
  out << fmt::format("{}: {}{}\n", subject, duration_text(measured.span_s), steps);
  for (const std::string& remark : measured.remarks) out << wrapped("  " + remark, 2);
  out << fmt::format("\nWhere the {} goes\n", measured.subject);
  std::size_t width = 0;
  for (const diagnose::Part& part : measured.parts) width = std::max(width, part.name.size());
  for (const diagnose::Part& part : measured.parts) {
    out << fmt::format("  {:<{}}  {:>8}  {:>3.0f} %{}\n", part.name, width, duration_text(part.seconds),
                       100.0 * part.seconds / measured.span_s,
                       part.all_s ? fmt::format("  of {} in all", duration_text(*part.all_s)) : "");
  }
  out << "\nWhat limits it\n";
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(measured);
  if (verdicts.empty()) out << "  nothing stands out: every part is below its threshold\n";
  int number = 0;
  for (const diagnose::Verdict& verdict : verdicts) {
    out << wrapped(fmt::format("{}. {}: {:.0f} % of the time", ++number, diagnose::title_of(verdict.limit),
                               100.0 * verdict.share),
                   3)
        << wrapped("   " + verdict.sentence, 3);
    std::string evidence =
        fmt::format("   {} = {:.3g}, threshold {:.3g}, measured", verdict.quantity, verdict.number, verdict.threshold);
    if (const auto gain = most_gain(verdict)) {
      evidence += fmt::format("; without it all would be {:.2f} times as fast at most", *gain);
    }
    out << wrapped(evidence, 3);
  }
}

Json to_json(const diagnose::MeasuredParts& measured) {
  Json json = {{"subject", measured.subject}, {"span_s", measured.span_s}, {"steps", json_number(measured.steps)},
               {"remarks", measured.remarks}, {"parts", Json::array()},    {"verdicts", Json::array()}};
  for (const diagnose::Part& part : measured.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"seconds", part.seconds},
                             {"all_seconds", json_or_null(part.all_s)},
                             {"share", part.seconds / measured.span_s},
                             {"limit", part.limit ? Json(diagnose::to_string(*part.limit)) : Json(nullptr)}});
  }
  for (const diagnose::Verdict& verdict : diagnose::verdicts_of(measured)) {
    json["verdicts"].push_back(verdict_json(verdict));
    json["verdicts"].back()["speedup_at_most"] = json_or_null(most_gain(verdict));
  }
  return json;
}

}  // namespace krigtune::cli
