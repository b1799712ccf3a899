#include "replayed_study.h"

#include <fmt/format.h>

#include "distributions.h"
#include "krigtune/core/error.h"
#include "trial_record.h"

namespace krigtune {
namespace {

constexpr const char* kMend = "restore the file from a copy, or start anew with --fresh";

bool is_finished(TrialState state) {
  return state == TrialState::kComplete || state == TrialState::kPruned || state == TrialState::kFail;
}

}  // namespace

std::size_t ReplayedStudy::apply(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    ++line_;
    const Json log = Json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!log.is_object()) fail("not a JSON object", kMend);
    try {
      apply_line(log);
    } catch (const Json::exception& error) {
      fail(fmt::format("not a line of an Optuna journal ({})", error.what()), kMend);
    }
    begin = end + 1;
  }
  return begin;
}

const Json* ReplayedStudy::distribution(const std::string& parameter) const {
  const auto found = distributions_.find(parameter);
  return found == distributions_.end() ? nullptr : &found->second;
}

void ReplayedStudy::apply_line(const Json& log) {
  const auto operation = static_cast<Operation>(log.at("op_code").get<int>());
  if (operation != Operation::kCreateStudy && !exists()) fail("comes before the study is created", kMend);
  switch (operation) {
    case Operation::kCreateStudy:
      return create_study(log);
    case Operation::kDeleteStudy:
      fail("the study was deleted", "start anew with --fresh");
    case Operation::kSetStudyUserAttr:
      return;
    case Operation::kSetStudySystemAttr:
      return set_study_system_attribute(log);
    case Operation::kCreateTrial:
      return create_trial(log);
    case Operation::kSetTrialParam:
      return set_parameter(log);
    case Operation::kSetTrialStateValues:
      return set_state(log);
    case Operation::kSetTrialIntermediateValue:
      return;
    case Operation::kSetTrialUserAttr:
      return add_user_attributes(trial_of(log), log.at("user_attr"));
    case Operation::kSetTrialSystemAttr:
      return;
  }
  fail(fmt::format("op_code {} is not known", static_cast<int>(operation)), kMend);
}

void ReplayedStudy::create_study(const Json& log) {
  const auto name = log.at("study_name").get<std::string>();
  if (name != kStudyName) {
    fail(fmt::format("holds the study '{}', not '{}'", name, kStudyName), "choose another directory with --out");
  }
  if (exists()) return;  // as in Optuna: who creates it again uses it
  directions_ = log.at("directions").get<std::vector<int>>();
  if (directions_.size() != 1) fail("a study of one direction was expected", "choose another directory with --out");
}

void ReplayedStudy::set_study_system_attribute(const Json& log) {
  const Json& attributes = log.at("system_attr");
  if (attributes.contains(kMetricNames)) metric_ = attributes[kMetricNames].at(0).get<std::string>();
}

void ReplayedStudy::create_trial(const Json& log) {
  const std::size_t index = trials_.size();
  trials_.emplace_back();
  trials_.back().number = static_cast<int>(index);
  attributes_.push_back(Json::object());
  if (log.at("datetime_start").is_string()) trials_.back().started_at = log["datetime_start"];
  if (log.contains("user_attrs")) add_user_attributes(index, log["user_attrs"]);
  // The rest of a template: trials that another program imported whole.
  if (log.contains("params")) {
    for (const auto& [name, internal] : log["params"].items()) {
      add_parameter(index, name, Json::parse(log.at("distributions").at(name).get<std::string>()), internal);
    }
  }
  const auto state = static_cast<TrialState>(log.value("state", static_cast<int>(TrialState::kRunning)));
  if (!is_finished(state)) return;
  const bool has_value = log.contains("value") && log["value"].is_number();
  close(index, state, has_value ? Json::array({log["value"]}) : log.value("values", Json()));
}

void ReplayedStudy::set_parameter(const Json& log) {
  add_parameter(trial_of(log), log.at("param_name"), Json::parse(log.at("distribution").get<std::string>()),
                log.at("param_value_internal"));
}

void ReplayedStudy::add_parameter(std::size_t trial, const std::string& name, const Json& distribution,
                                  double internal) {
  if (trials_[trial].outcome) return;
  distributions_[name] = distribution;
  if (attributes_[trial].contains("configuration")) return;
  trials_[trial].proposal.configuration.set(name, external_value(distribution, internal));
}

void ReplayedStudy::add_user_attributes(std::size_t trial, const Json& attributes) {
  if (trials_[trial].outcome) return;
  for (const auto& [name, value] : attributes.items()) attributes_[trial][name] = value;
  if (attributes.contains("configuration")) trials_[trial].proposal = proposal_from(attributes_[trial]);
}

void ReplayedStudy::set_state(const Json& log) {
  const std::size_t trial = trial_of(log);
  const auto state = static_cast<TrialState>(log.at("state").get<int>());
  if (is_finished(state)) return close(trial, state, log.at("values"));
  if (log.contains("datetime_start") && log["datetime_start"].is_string()) {
    trials_[trial].started_at = log["datetime_start"];
  }
}

void ReplayedStudy::close(std::size_t trial, TrialState state, const Json& values) {
  if (trials_[trial].outcome) return;
  trials_[trial].outcome = outcome_from(state, values, attributes_[trial], metric_);
  trials_[trial].wall_s = attributes_[trial].value("wall_s", 0.0);
}

std::size_t ReplayedStudy::trial_of(const Json& log) const {
  const auto id = log.at("trial_id").get<std::int64_t>();
  if (id < 0 || id >= static_cast<std::int64_t>(trials_.size())) {
    fail(fmt::format("there is no trial {} before it", id), kMend);
  }
  return static_cast<std::size_t>(id);
}

void ReplayedStudy::fail(const std::string& what, const std::string& hint) const {
  throw UserError(fmt::format("{}: line {}: {}", source_, line_, what), hint);
}

}  // namespace krigtune
