#include "journal/replayed_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "journal/distributions.h"
#include "journal/trial_record.h"

namespace krigtune::journal {
namespace {

constexpr std::size_t kMostComplaints = 100;
constexpr const char* kMend = "restore the file from a copy, or start over with --fresh";

// Returns whether the text of an unreadable line has that key with that number. JSON may have a blank between them.
bool says(std::string_view line, std::string_view key, std::string_view number) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return false;
  const std::size_t begin = line.find_first_not_of(": ", at + key.size());
  if (begin == std::string_view::npos || line.substr(begin, number.size()) != number) return false;
  const std::size_t end = begin + number.size();
  return end == line.size() || line[end] < '0' || line[end] > '9';
}

bool is_finished(TrialState state) {
  return state == TrialState::kComplete || state == TrialState::kPruned || state == TrialState::kFail;
}

}  // namespace

std::size_t ReplayedStudy::apply(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    ++line_;
    const std::string_view line = text.substr(begin, end - begin);
    if (!is_known_parameter(line) && !adds_plain_attribute(line)) apply_or_pass_over(line);
    begin = end + 1;
  }
  judge_completeness();
  return begin;
}

void ReplayedStudy::apply_or_pass_over(std::string_view line) {
  const bool is_journal = next_study_ > 0;
  const std::size_t trials = trials_.size();
  const Json log = python_json_or_discarded(line, OddNumbers::kNull);
  std::string what = "not a JSON object";
  if (log.is_object()) {
    try {
      return apply_line(log);
    } catch (const Json::exception& error) {
      what = fmt::format("not a line of an Optuna journal ({})", error.what());
    }
  }
  if (!is_journal) fail(what, kMend);
  const bool begins_a_trial = says(line, R"("op_code")", "4");
  if (begins_a_trial && trials_.size() == trials) count_unreadable_trial();
  std::optional<std::size_t> trial = begins_a_trial ? trials_.size() - 1 : trial_named_in(line);
  if (trial && trials_[*trial].outcome) trial.reset();  // lines after the end are dropped anyway
  complain(trial ? fmt::format("{}; trial {} is skipped", what, *trial) : what + "; the line is skipped");
  if (trial) damaged_[*trial] = fmt::format("{}: line {}: {}", source_, line_, what);
}

std::optional<std::size_t> ReplayedStudy::trial_named_in(std::string_view line) const {
  constexpr std::string_view kKey = R"("trial_id":)";
  std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  at = line.find_first_not_of(' ', at + kKey.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t id = 0;
  const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), id);
  if (error != std::errc() || id >= trials_of_.size() || trials_of_[id] < 0) return std::nullopt;
  return static_cast<std::size_t>(trials_of_[id]);
}

void ReplayedStudy::count_unreadable_trial() {
  trials_of_.push_back(static_cast<int>(trials_.size()));
  ids_.push_back(static_cast<int>(trials_of_.size()) - 1);
  trials_.emplace_back();
  trials_.back().number = static_cast<int>(trials_.size()) - 1;
  trials_.back().proposal.asker = Asker::kHand;
  attributes_.push_back(Json::object());
}

void ReplayedStudy::require(const std::vector<std::string>& parameters) {
  required_ = parameters;
  is_required_learned_ = false;
}

void ReplayedStudy::learn_required(const space::Configuration& own) {
  if (!is_required_learned_ || own.empty()) return;
  if (!required_) {
    required_.emplace();
    for (const auto& [name, value] : own) required_->push_back(name);
    return;
  }
  std::erase_if(*required_, [&](const std::string& name) { return own.find(name) == nullptr; });
}

void ReplayedStudy::judge_completeness() {
  for (const auto& [trial, what] : damaged_) trials_[trial].passed_over = what;
  if (!required_) return;
  std::erase_if(foreign_, [&](std::size_t index) {
    Trial& trial = trials_[index];
    const auto missing = std::find_if(required_->begin(), required_->end(), [&](const std::string& name) {
      return distributions_.count(name) > 0 && trial.proposal.configuration.find(name) == nullptr;
    });
    if (missing == required_->end()) {
      trial.passed_over.clear();
      return true;
    }
    if (trial.waiting) return false;
    trial.passed_over =
        fmt::format("{}: trial {} of another program lacks '{}'; it is skipped", source_, trial.number, *missing);
    if (!trial.outcome) return false;  // its worker may still write it
    if (complaints_.size() < kMostComplaints) complaints_.push_back(trial.passed_over);
    return true;
  });
}

// Most lines of a journal were written by krigtune, spelled as Json::dump does, and are recognised by that spelling.
// Parsing them took most of the time when reading ten thousand trials. Lines in any other spelling are parsed.
namespace {

/// Reads a line from left to right.
class SpelledLine {
 public:
  explicit SpelledLine(std::string_view line) : rest_(line) {}

  bool skip(std::string_view words) {
    if (rest_.substr(0, words.size()) != words) return false;
    rest_.remove_prefix(words.size());
    return true;
  }
  std::optional<std::size_t> whole_number() {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return number;
  }
  /// Returns the text before `words`, and skips both.
  std::optional<std::string_view> up_to(std::string_view words) {
    const std::size_t at = rest_.find(words);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at + words.size());
    return before;
  }
  /// Skips the beginning that all lines of a trial share, and returns the trial's id. Empty if krigtune did not write
  /// the line.
  std::optional<std::size_t> trial_id(JournalOperation operation) {
    if (!skip("{\"op_code\":") || whole_number() != static_cast<std::size_t>(operation)) return std::nullopt;
    if (!skip(R"(,"worker_id":"krigtune-)") || !whole_number() || !skip(R"(","trial_id":)")) return std::nullopt;
    return whole_number();
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Returns whether the text is ASCII without quotes and escapes, so that it is its own value.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c != '"' && c != '\\'; });
}

/// Returns a number or a plain text. Empty for anything else.
std::optional<Json> plain_value(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    const std::string_view inside = text.substr(1, text.size() - 2);
    return is_plain(inside) ? std::optional(Json(std::string(inside))) : std::nullopt;
  }
  // Signs, exponents, and leading zeros other than that of 0.1 are rare: such numbers are parsed.
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  if (text.front() == '.' || text.back() == '.' || (text.size() > 1 && text[0] == '0' && text[1] != '.'))
    return std::nullopt;
  const char* const end = text.data() + text.size();
  if (text.find('.') == std::string_view::npos) {
    std::uint64_t whole = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, whole);
    return error == std::errc() && stop == end ? std::optional(Json(whole)) : std::nullopt;
  }
  double number = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(Json(number)) : std::nullopt;
}

}  // namespace

/// Returns the study's trial with that id if it is open and its configuration is known.
std::optional<std::size_t> ReplayedStudy::open_trial(std::optional<std::size_t> id) const {
  if (!id || *id >= trials_of_.size() || trials_of_[*id] < 0) return std::nullopt;
  const auto trial = static_cast<std::size_t>(trials_of_[*id]);
  if (trials_[trial].outcome || !attributes_[trial].contains(kConfiguration)) return std::nullopt;
  return trial;
}

// Parameter lines are for Optuna: the trial's first line has all values, and distributions seldom change. A line
// matters only if its distribution differs from the last one.
bool ReplayedStudy::is_known_parameter(std::string_view text) {
  SpelledLine line(text);
  if (!open_trial(line.trial_id(JournalOperation::kSetTrialParam)) || !line.skip(R"(,"param_name":")")) return false;
  const std::optional<std::string_view> name = line.up_to(R"(","param_value_internal":)");
  if (!name || !is_plain(*name) || !line.up_to(R"(,"distribution":")") || text.back() != '}') return false;
  const auto last = last_spelled_.find(*name);
  if (last != last_spelled_.end() && last->second == line.rest()) return true;
  // This line is parsed. Later ones are recognised as long as the distribution stays the same.
  last_spelled_.insert_or_assign(std::string(*name), std::string(line.rest()));
  return false;
}

bool ReplayedStudy::adds_plain_attribute(std::string_view text) {
  SpelledLine line(text);
  const std::optional<std::size_t> trial = open_trial(line.trial_id(JournalOperation::kSetTrialUserAttr));
  if (!trial || !line.skip(R"(,"user_attr":{")")) return false;
  const std::optional<std::string_view> name = line.up_to("\":");
  if (!name || !is_plain(*name) || *name == kConfiguration) return false;
  const std::string_view rest = line.rest();
  if (rest.size() < 2 || rest.substr(rest.size() - 2) != "}}") return false;
  std::optional<Json> value = plain_value(rest.substr(0, rest.size() - 2));
  if (!value) return false;
  attributes_[*trial][std::string(*name)] = *std::move(value);
  if (*name == kWhere) trials_[*trial].where = where_from(attributes_[*trial]);
  if (*name == kTimesLost) trials_[*trial].times_lost = times_lost_from(attributes_[*trial]);
  return true;
}

const Json* ReplayedStudy::distribution(const std::string& parameter) const {
  const auto found = distributions_.find(parameter);
  return found == distributions_.end() ? nullptr : &found->second.json;
}

void ReplayedStudy::apply_line(const Json& log) {
  const auto operation = static_cast<JournalOperation>(log.at("op_code").get<int>());
  if (operation != JournalOperation::kCreateStudy && next_study_ == 0) fail("comes before the study is created", kMend);
  switch (operation) {
    case JournalOperation::kCreateStudy:
    case JournalOperation::kDeleteStudy:
    case JournalOperation::kSetStudyUserAttr:
    case JournalOperation::kSetStudySystemAttr:
    case JournalOperation::kCreateTrial:
      return apply_to_study(operation, log);
    case JournalOperation::kSetTrialParam:
    case JournalOperation::kSetTrialStateValues:
    case JournalOperation::kSetTrialIntermediateValue:
    case JournalOperation::kSetTrialUserAttr:
    case JournalOperation::kSetTrialSystemAttr:
      if (const auto trial = trial_of(log)) apply_to_trial(operation, *trial, log);
      return;
  }
  complain(fmt::format("op_code {} is not known; the line is skipped", static_cast<int>(operation)));
}

void ReplayedStudy::apply_to_study(JournalOperation operation, const Json& log) {
  if (operation == JournalOperation::kCreateStudy) return create_study(log);
  const int study = log.at("study_id").get<int>();
  if (operation == JournalOperation::kDeleteStudy) return delete_study(study);
  if (operation == JournalOperation::kCreateTrial) return create_trial(study, log);
  if (operation != JournalOperation::kSetStudySystemAttr || study != study_) return;
  const Json& attributes = log.at("system_attr");
  if (attributes.contains(kMetricNames)) metric_ = attributes[kMetricNames].at(0).get<std::string>();
}

void ReplayedStudy::apply_to_trial(JournalOperation operation, std::size_t trial, const Json& log) {
  if (trials_[trial].outcome) return;  // as in Optuna: lines after the end are dropped
  if (operation == JournalOperation::kSetTrialParam) {
    add_parameter(trial, log.at("param_name"), log.at("distribution"), log.at("param_value_internal"));
  } else if (operation == JournalOperation::kSetTrialStateValues) {
    set_state(trial, log);
  } else if (operation == JournalOperation::kSetTrialUserAttr) {
    add_user_attributes(trial, log.at("user_attr"));
  } else if (operation == JournalOperation::kSetTrialSystemAttr) {
    add_system_attributes(trial, log.at("system_attr"));
  }
}

void ReplayedStudy::create_study(const Json& log) {
  const auto name = log.at("study_name").get<std::string>();
  if (next_study_ == 0 && !has_any_name_ && name != kStudyName) {
    fail(fmt::format("has the study '{}', not '{}'", name, kStudyName), "choose another directory with --out");
  }
  for (const auto& [id, other] : studies_) {
    if (other == name) return;  // as in Optuna: creating it again means using it
  }
  const int id = next_study_++;
  studies_[id] = name;
  if (id != study_) return;
  directions_ = log.at("directions").get<std::vector<int>>();
  if (directions_.size() != 1) {
    fail("a study of one direction was expected",
         has_any_name_ ? "name another" : "choose another directory with --out");
  }
}

void ReplayedStudy::delete_study(int study) {
  if (study == study_) fail("the study was deleted", "start over with --fresh");
  studies_.erase(study);
}

void ReplayedStudy::create_trial(int study, const Json& log) {
  if (studies_.count(study) == 0) return;  // it was deleted: Optuna drops this line and counts no trial
  const std::size_t index = trials_.size();
  trials_of_.push_back(study == study_ ? static_cast<int>(index) : -1);
  if (study != study_) return;
  ids_.push_back(static_cast<int>(trials_of_.size()) - 1);
  trials_.emplace_back();
  trials_.back().number = static_cast<int>(index);
  trials_.back().proposal.asker = Asker::kHand;  // until a later line says otherwise, it is not ours to end
  attributes_.push_back(Json::object());
  foreign_.push_back(index);
  if (log.at("datetime_start").is_string()) trials_.back().started_at = log["datetime_start"];
  if (log.contains("user_attrs")) add_user_attributes(index, log["user_attrs"]);
  fill_from_template(index, log);
}

// For trials that another program imported complete, or queued.
void ReplayedStudy::fill_from_template(std::size_t trial, const Json& log) {
  if (log.contains("system_attrs")) add_system_attributes(trial, log["system_attrs"]);
  if (log.contains("params")) {
    for (const auto& [name, internal] : log["params"].items()) {
      add_parameter(trial, name, log.at("distributions").at(name), internal);
    }
  }
  const auto state = static_cast<TrialState>(log.value("state", static_cast<int>(TrialState::kRunning)));
  trials_[trial].waiting = state == TrialState::kWaiting;
  if (!is_finished(state)) return;
  const bool has_value = log.contains("value") && log["value"].is_number();
  close(trial, state, has_value ? Json::array({log["value"]}) : log.value("values", Json()));
}

void ReplayedStudy::add_parameter(std::size_t trial, const std::string& name, const std::string& distribution,
                                  const Json& internal) {
  const Json* accepted = accepted_distribution(name, distribution);
  if (accepted == nullptr || attributes_[trial].contains(kConfiguration) || !internal.is_number()) return;
  if (const auto value = external_value(*accepted, internal)) trials_[trial].proposal.configuration.set(name, *value);
}

// Returns nullptr if there is no distribution, or if Optuna would drop it.
const Json* ReplayedStudy::accepted_distribution(const std::string& name, const std::string& text) {
  const auto last = distributions_.find(name);
  if (last != distributions_.end() && last->second.text == text) return &last->second.json;
  std::optional<Json> json = read_distribution(text);
  if (!json || (last != distributions_.end() && !are_compatible(last->second.json, *json))) return nullptr;
  Distribution& accepted = distributions_[name];
  accepted = {text, *std::move(json)};
  last_spelled_.clear();
  return &accepted.json;
}

void ReplayedStudy::add_user_attributes(std::size_t trial, const Json& attributes) {
  for (const auto& [name, value] : attributes.items()) attributes_[trial][name] = value;
  if (attributes.contains(kWhere)) trials_[trial].where = where_from(attributes);
  if (attributes.contains(kTimesLost)) trials_[trial].times_lost = times_lost_from(attributes);
  if (!attributes.contains(kConfiguration)) return;
  if (std::optional<Proposal> proposal = proposal_from(attributes_[trial])) {
    trials_[trial].proposal = *std::move(proposal);
    std::erase(foreign_, trial);
    learn_required(trials_[trial].proposal.configuration);
  } else {
    attributes_[trial].erase(kConfiguration);
  }
}

// In "fixed_params" Optuna keeps the values that somebody wants a queued trial to use.
void ReplayedStudy::add_system_attributes(std::size_t trial, const Json& attributes) {
  const auto fixed = attributes.find("fixed_params");
  if (fixed == attributes.end() || attributes_[trial].contains(kConfiguration)) return;
  if (auto configuration = configuration_of(*fixed)) trials_[trial].proposal.configuration = *std::move(configuration);
}

void ReplayedStudy::set_state(std::size_t trial, const Json& log) {
  const auto state = static_cast<TrialState>(log.at("state").get<int>());
  if (is_finished(state)) {
    const auto ended = log.find("datetime_complete");
    if (ended != log.end() && ended->is_string()) trials_[trial].ended_at = *ended;
    return close(trial, state, log.at("values"));
  }
  const bool begins = state == TrialState::kRunning && trials_[trial].waiting;
  trials_[trial].waiting = state == TrialState::kWaiting;
  if (begins) trials_[trial].started_at = log.at("datetime_start");
}

void ReplayedStudy::close(std::size_t trial, TrialState state, const Json& values) {
  trials_[trial].outcome = outcome_from(state, values, attributes_[trial], metric_);
  trials_[trial].waiting = false;
  trials_[trial].wall_s = wall_s_from(attributes_[trial]);
  trials_[trial].where = where_from(attributes_[trial]);
  attributes_[trial] = nullptr;  // lines after the end are dropped
}

std::optional<std::size_t> ReplayedStudy::trial_of(const Json& log) const {
  const auto id = log.at("trial_id").get<std::int64_t>();
  if (id < 0 || id >= static_cast<std::int64_t>(trials_of_.size())) return std::nullopt;  // its first line is lost
  const int trial = trials_of_[static_cast<std::size_t>(id)];
  if (trial < 0) return std::nullopt;
  return static_cast<std::size_t>(trial);
}

void ReplayedStudy::complain(const std::string& what) {
  if (complaints_.size() < kMostComplaints) complaints_.push_back(fmt::format("{}: line {}: {}", source_, line_, what));
}

void ReplayedStudy::fail(const std::string& what, const std::string& hint) const {
  throw UserError(fmt::format("{}: line {}: {}", source_, line_, what), hint);
}

}  // namespace krigtune::journal
