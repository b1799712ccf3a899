#include "journal/trial_record.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
namespace krigtune::journal {
namespace {

constexpr const char* kMetricPrefix = "metric_";
constexpr const char* kByTune = "tune";
constexpr const char* kByHand = "hand";

bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

std::optional<double> number_attribute(const Json& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

bool is_finite(const Outlook& outlook) {
  return all_finite({outlook.expected_gain, outlook.regret_bound, outlook.confidence,
                     outlook.bound_of_new.value_or(outlook.regret_bound)});
}

// The first three or none: half an outlook is useless.
std::optional<Outlook> outlook_from(const Json& attributes) {
  const std::optional<double> gain = number_attribute(attributes, "expected_gain");
  const std::optional<double> bound = number_attribute(attributes, "regret_bound");
  const std::optional<double> confidence = number_attribute(attributes, "confidence");
  if (!gain || !bound || !confidence) return std::nullopt;
  return Outlook{*gain, *bound, *confidence, number_attribute(attributes, "bound_of_new")};
}

std::optional<std::int64_t> integer_attribute(const Json& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<Bytes> bytes_attribute(const Json& attributes, const std::string& name) {
  const std::optional<std::int64_t> count = integer_attribute(attributes, name);
  if (!count) return std::nullopt;
  return Bytes{*count};
}

std::string text_attribute(const Json& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  return found != attributes.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> first_number(const Json& values) {
  if (!values.is_array() || values.empty() || !values[0].is_number()) return std::nullopt;
  return values[0].get<double>();
}

class Recorder {
 public:
  explicit Recorder(const std::string& metric) : metric_(metric) {}

  OutcomeRecord operator()(const trial::Measured& outcome) const {
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

  OutcomeRecord operator()(const trial::OutOfMemory& outcome) const {
    OutcomeRecord record{TrialState::kFail, nullptr, Json::object(), Json::object()};
    record.user_attributes["predicted"] = outcome.predicted;
    if (outcome.requested) record.user_attributes["requested_bytes"] = outcome.requested->count;
    record.system_attributes["constraints"] = Json::array({1.0});
    return record;
  }

  OutcomeRecord operator()(const trial::Failed& outcome) const {
    OutcomeRecord record{TrialState::kFail, nullptr, Json::object(), Json::object()};
    record.user_attributes["exit_code"] = outcome.exit_code;
    record.user_attributes["last_lines"] = outcome.last_lines;
    return record;
  }

  OutcomeRecord operator()(const trial::Bounded& outcome) const {
    if (!std::isfinite(outcome.at_best)) throw std::logic_error("a trial ended early without a finite bound");
    return {TrialState::kPruned, Json::array({outcome.at_best}), Json::object(), Json::object()};
  }

 private:
  const std::string& metric_;
};

trial::Measured measured_from(double value, const Json& attributes, const std::string& metric) {
  trial::Measured outcome;
  const std::string prefix = kMetricPrefix;
  for (const auto& [name, number] : attributes.items()) {
    if (name.rfind(prefix, 0) == 0 && number.is_number()) outcome.metrics[name.substr(prefix.size())] = number;
  }
  outcome.metrics[metric] = value;
  outcome.value_sem = number_attribute(attributes, "value_sem").value_or(0.0);
  outcome.peak_memory = bytes_attribute(attributes, "peak_memory_bytes");
  return outcome;
}

}  // namespace

Json proposal_attributes(const Proposal& proposal) {
  Json attributes = Json::object();
  attributes[kConfiguration] =
      space::to_json(proposal.configuration).dump(-1, ' ', false, Json::error_handler_t::replace);
  attributes["strategy"] = proposal.strategy;
  attributes["asker"] = proposal.asker == Asker::kHand ? kByHand : kByTune;
  attributes["suggest_s"] = std::isfinite(proposal.suggest_s) ? proposal.suggest_s : 0.0;
  if (proposal.predicted_value && std::isfinite(*proposal.predicted_value)) {
    attributes["predicted_value"] = *proposal.predicted_value;
  }
  if (proposal.predicted_stddev && std::isfinite(*proposal.predicted_stddev) && std::isfinite(proposal.widening)) {
    attributes["predicted_stddev"] = *proposal.predicted_stddev;
    attributes["widening"] = proposal.widening;
  }
  if (proposal.predicted_memory) attributes["predicted_memory_bytes"] = proposal.predicted_memory->count;
  if (proposal.success_probability && std::isfinite(*proposal.success_probability)) {
    attributes["success_probability"] = *proposal.success_probability;
  }
  if (!proposal.hyperparameters.empty() && all_finite(proposal.hyperparameters)) {
    attributes["hyperparameters"] = proposal.hyperparameters;
    if (proposal.fitted_to > 0) attributes["fitted_to"] = proposal.fitted_to;
  }
  if (proposal.trials_without_gain) attributes["trials_without_gain"] = *proposal.trials_without_gain;
  if (proposal.outlook && is_finite(*proposal.outlook)) {
    attributes["expected_gain"] = proposal.outlook->expected_gain;
    attributes["regret_bound"] = proposal.outlook->regret_bound;
    attributes["confidence"] = proposal.outlook->confidence;
    if (proposal.outlook->bound_of_new) attributes["bound_of_new"] = *proposal.outlook->bound_of_new;
  }
  if (proposal.repeat_of) attributes["repeat_of"] = *proposal.repeat_of;
  if (proposal.run > 0) attributes["run"] = proposal.run;
  if (!proposal.machine.empty()) attributes["machine"] = proposal.machine;
  return attributes;
}

std::optional<space::Configuration> configuration_of(const Json& json) {
  const auto is_scalar = [](const Json& value) { return value.is_primitive() && !value.is_null(); };
  if (!json.is_object() || !std::all_of(json.begin(), json.end(), is_scalar)) return std::nullopt;
  return space::configuration_from_json(json, "the journal", "/configuration");
}

std::optional<Proposal> proposal_from(const Json& attributes) {
  std::optional<space::Configuration> configuration =
      configuration_of(json_or_discarded(text_attribute(attributes, kConfiguration)));
  if (!configuration) return std::nullopt;
  Proposal proposal;
  proposal.configuration = *std::move(configuration);
  proposal.strategy = text_attribute(attributes, "strategy");
  proposal.asker = text_attribute(attributes, "asker") == kByHand ? Asker::kHand : Asker::kTune;
  proposal.suggest_s = number_attribute(attributes, "suggest_s").value_or(0.0);
  proposal.predicted_value = number_attribute(attributes, "predicted_value");
  proposal.predicted_stddev = number_attribute(attributes, "predicted_stddev");
  proposal.widening = number_attribute(attributes, "widening").value_or(1.0);
  proposal.predicted_memory = bytes_attribute(attributes, "predicted_memory_bytes");
  proposal.success_probability = number_attribute(attributes, "success_probability");
  if (const auto count = integer_attribute(attributes, "trials_without_gain")) {
    proposal.trials_without_gain = static_cast<int>(*count);
  }
  proposal.outlook = outlook_from(attributes);
  if (const auto repeated = integer_attribute(attributes, "repeat_of")) {
    proposal.repeat_of = static_cast<int>(*repeated);
  }
  proposal.run = static_cast<int>(std::max<std::int64_t>(integer_attribute(attributes, "run").value_or(0), 0));
  proposal.machine = text_attribute(attributes, "machine");
  proposal.fitted_to =
      static_cast<int>(std::max<std::int64_t>(integer_attribute(attributes, "fitted_to").value_or(0), 0));
  if (!attributes.contains("hyperparameters") || !attributes["hyperparameters"].is_array()) return proposal;
  for (const Json& number : attributes["hyperparameters"]) {
    if (number.is_number()) proposal.hyperparameters.push_back(number.get<double>());
  }
  return proposal;
}

OutcomeRecord outcome_record(const trial::Outcome& outcome, const std::string& metric) {
  OutcomeRecord record = std::visit(Recorder(metric), outcome);
  record.user_attributes["status"] = trial::status_text(outcome);
  const std::string reason = trial::reason_text(outcome);
  if (!reason.empty()) record.user_attributes["reason"] = reason;
  return record;
}

trial::Outcome outcome_from(TrialState state, const Json& values, const Json& attributes, const std::string& metric) {
  const std::optional<double> value = first_number(values);
  if (state == TrialState::kComplete && value) return trial::usable(measured_from(*value, attributes, metric), metric);
  if (state == TrialState::kComplete)
    return trial::Failed{trial::FailureReason::kBadResult, 0, "it has no finite value"};
  if (state == TrialState::kPruned && value) return trial::Bounded{*value};
  if (text_attribute(attributes, "status") == "oom") {
    const auto predicted = attributes.find("predicted");
    return trial::OutOfMemory{bytes_attribute(attributes, "requested_bytes"),
                              predicted != attributes.end() && predicted->is_boolean() && predicted->get<bool>()};
  }
  return trial::Failed{trial::failure_reason_from(text_attribute(attributes, "reason")),
                       static_cast<int>(integer_attribute(attributes, "exit_code").value_or(0)),
                       text_attribute(attributes, "last_lines")};
}

double wall_s_from(const Json& attributes) { return number_attribute(attributes, "wall_s").value_or(0.0); }

std::string where_from(const Json& attributes) { return text_attribute(attributes, kWhere); }

int times_lost_from(const Json& attributes) {
  constexpr std::int64_t kMost = 1000;
  return static_cast<int>(std::clamp<std::int64_t>(integer_attribute(attributes, kTimesLost).value_or(0), 0, kMost));
}

}  // namespace krigtune::journal
