#include "trial_record.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace krigtune {
namespace {

constexpr const char* kMetricPrefix = "metric_";

bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

std::optional<Bytes> bytes_attribute(const Json& attributes, const char* name) {
  if (!attributes.contains(name)) return std::nullopt;
  return Bytes{attributes[name].get<std::int64_t>()};
}

class Recorder {
 public:
  explicit Recorder(const std::string& metric) : metric_(metric) {}

  OutcomeRecord operator()(const Measured& outcome) const {
    const auto value = outcome.metrics.find(metric_);
    if (value == outcome.metrics.end() || !std::isfinite(value->second)) {
      throw std::logic_error("a measured trial without a finite '" + metric_ + "'");
    }
    OutcomeRecord record{TrialState::kComplete, Json::array({value->second}), Json::object(), Json::object()};
    if (std::isfinite(outcome.value_sem)) record.user_attributes["value_sem"] = outcome.value_sem;
    if (outcome.peak_memory) record.user_attributes["peak_memory_bytes"] = outcome.peak_memory->count;
    for (const auto& [name, number] : outcome.metrics) {
      if (std::isfinite(number)) record.user_attributes[kMetricPrefix + name] = number;
    }
    return record;
  }

  OutcomeRecord operator()(const OutOfMemory& outcome) const {
    OutcomeRecord record{TrialState::kFail, nullptr, Json::object(), Json::object()};
    record.user_attributes["predicted"] = outcome.predicted;
    if (outcome.requested) record.user_attributes["requested_bytes"] = outcome.requested->count;
    record.system_attributes["constraints"] = Json::array({1.0});
    return record;
  }

  OutcomeRecord operator()(const Failed& outcome) const {
    OutcomeRecord record{TrialState::kFail, nullptr, Json::object(), Json::object()};
    record.user_attributes["exit_code"] = outcome.exit_code;
    record.user_attributes["last_lines"] = outcome.last_lines;
    return record;
  }

  OutcomeRecord operator()(const Bounded& outcome) const {
    if (!std::isfinite(outcome.at_best)) throw std::logic_error("a trial ended early without a finite bound");
    return {TrialState::kPruned, Json::array({outcome.at_best}), Json::object(), Json::object()};
  }

 private:
  const std::string& metric_;
};

Measured measured_from(const Json& values, const Json& attributes, const std::string& metric) {
  Measured outcome;
  const std::string prefix = kMetricPrefix;
  for (const auto& [name, value] : attributes.items()) {
    if (name.rfind(prefix, 0) == 0) outcome.metrics[name.substr(prefix.size())] = value.get<double>();
  }
  outcome.metrics[metric] = values.at(0).get<double>();
  outcome.value_sem = attributes.value("value_sem", 0.0);
  outcome.peak_memory = bytes_attribute(attributes, "peak_memory_bytes");
  return outcome;
}

}  // namespace

Json proposal_attributes(const Proposal& proposal) {
  Json attributes = Json::object();
  attributes["configuration"] = to_json(proposal.configuration).dump(-1, ' ', false, Json::error_handler_t::replace);
  attributes["strategy"] = proposal.strategy;
  attributes["suggest_s"] = std::isfinite(proposal.suggest_s) ? proposal.suggest_s : 0.0;
  if (proposal.predicted_value && std::isfinite(*proposal.predicted_value)) {
    attributes["predicted_value"] = *proposal.predicted_value;
  }
  if (proposal.predicted_memory) attributes["predicted_memory_bytes"] = proposal.predicted_memory->count;
  if (!proposal.hyperparameters.empty() && all_finite(proposal.hyperparameters)) {
    attributes["hyperparameters"] = proposal.hyperparameters;
  }
  return attributes;
}

Proposal proposal_from(const Json& attributes) {
  Proposal proposal;
  const auto text = attributes.at("configuration").get<std::string>();
  proposal.configuration = configuration_from_json(Json::parse(text), "the journal", "/configuration");
  proposal.strategy = attributes.value("strategy", "");
  proposal.suggest_s = attributes.value("suggest_s", 0.0);
  if (attributes.contains("predicted_value")) proposal.predicted_value = attributes["predicted_value"].get<double>();
  proposal.predicted_memory = bytes_attribute(attributes, "predicted_memory_bytes");
  if (attributes.contains("hyperparameters")) {
    proposal.hyperparameters = attributes["hyperparameters"].get<std::vector<double>>();
  }
  return proposal;
}

OutcomeRecord outcome_record(const Outcome& outcome, const std::string& metric) {
  OutcomeRecord record = std::visit(Recorder(metric), outcome);
  record.user_attributes["status"] = status_text(outcome);
  const std::string reason = reason_text(outcome);
  if (!reason.empty()) record.user_attributes["reason"] = reason;
  return record;
}

Outcome outcome_from(TrialState state, const Json& values, const Json& attributes, const std::string& metric) {
  if (state == TrialState::kComplete) return measured_from(values, attributes, metric);
  if (state == TrialState::kPruned && values.is_array()) return Bounded{values.at(0).get<double>()};
  if (attributes.value("status", "") == "oom") {
    return OutOfMemory{bytes_attribute(attributes, "requested_bytes"), attributes.value("predicted", false)};
  }
  return Failed{failure_reason_from(attributes.value("reason", "")), attributes.value("exit_code", 0),
                attributes.value("last_lines", "")};
}

}  // namespace krigtune
