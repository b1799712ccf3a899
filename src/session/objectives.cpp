#include "session/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "session/goodput.h"
#include "session/session_blocks.h"
#include "trial/measure_spec.h"

namespace krigtune::session {
namespace {

constexpr std::size_t kFewest = 2;
constexpr std::size_t kMost = 4;  // the boxes below a front grow with the power of the objectives less one

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string how_to_measure(const trial::RunnerTraits& runner, std::vector<std::string> names,
                           const std::string& field) {
  if (*runner.words.how_to_measure != '\0') return fmt::format(fmt::runtime(runner.words.how_to_measure), field);
  for (std::string& name : names) {
    for (const trial::Metric& metric : trial::known_metrics()) {
      if (name == metric.field) name = std::string(metric.name);
    }
  }
  return "name one that it measures: " + join(names, ", ");
}

void check_measured(const Session& session, const Objective& objective, const std::string& key,
                    const JsonObject& block) {
  const std::optional<std::vector<std::string>> names = runner::measured_names(session.runner);
  if (!names || has_name(*names, objective.field)) return;
  const trial::RunnerTraits runner = runner::traits_of(session.runner);
  block.fail(key, fmt::format("the runner {} does not measure '{}'", runner.name, objective.metric),
             how_to_measure(runner, *names, objective.field));
}

// Nothing says whether ratios or differences of a metric of the user's own matter. The end of a front is often near
// zero, where the logarithm would stretch what hardly adds to the hypervolume, so differences are taken.
std::vector<Objective> read_list(const Session& session, JsonObject& root, const Json& list) {
  if (!list.is_array() || list.size() < kFewest || list.size() > kMost) {
    root.fail("objectives", fmt::format("a list of {} to {} objectives was expected", kFewest, kMost),
              "write one alone as \"objective\"");
  }
  std::vector<Objective> objectives;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string pointer = fmt::format("/objectives/{}", i);
    objectives.push_back(read_objective(&list[i], root.source(), pointer, runner::traits_of(session.runner)));
    Objective& one = objectives.back();
    one.by_ratio = metric_of(one) != nullptr || one.field == trial::kPeakMemory;
    const JsonObject block(list[i], root.source(), pointer);
    if (has_name(names, one.metric)) {
      block.fail("metric", fmt::format("'{}' is named twice", one.metric), "remove one of the two");
    }
    names.push_back(one.metric);
    if (i > 0 && one.gradient_noise) {
      block.fail("metric", "goodput can only be the first of several objectives", "move it to the front of the list");
    }
    if (i > 0) check_measured(session, one, "metric", block);
  }
  return objectives;
}

class ObjectivesRunner final : public trial::Runner {
 public:
  ObjectivesRunner(const Session& session, std::unique_ptr<trial::Runner> runner)
      : session_(session), runner_(std::move(runner)) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    return with_objectives(session_, configuration, runner_->run(configuration, context));
  }

 private:
  const Session& session_;
  std::unique_ptr<trial::Runner> runner_;
};

}  // namespace

void read_objectives(Session& session, JsonObject& root) {
  const Json* one = root.find("objective");
  const Json* several = root.find("objectives");
  const std::string prefer = root.text("prefer", "");
  if (one != nullptr && several != nullptr) {
    root.fail("objectives", "and \"objective\" are both given", "leave one of them out");
  }
  if (several == nullptr) {
    session.objective = read_objective(one, root.source(), "/objective", runner::traits_of(session.runner));
    if (session.objective.limit) {
      JsonObject(*one, root.source(), "/objective")
          .fail("limit", "only applies to one of several objectives", "leave it out, or write \"objectives\"");
    }
    if (root.has("prefer")) root.fail("prefer", "only applies to several objectives", "leave it out");
    return;
  }
  std::vector<Objective> all = read_list(session, root, *several);
  session.objective = all.front();
  session.others.assign(all.begin() + 1, all.end());
  if (root.has("prefer"))
    session.preference = read_preference(session, prefer, root.source() + ": " + root.pointer("prefer"));
}

namespace {

constexpr std::size_t kMostLimits = 8;  // each has a model of its own

std::string without_spaces_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<double> finite_number(const std::string& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

// Returns an objective with a limit: larger values are better if the metric must be at least as large.
Objective read_limit(const Session& session, const JsonObject& root, const std::string& key, const std::string& text) {
  const std::size_t sign = std::min(text.find("<="), text.find(">="));
  const std::string metric = without_spaces_around(text.substr(0, sign));
  const std::optional<double> bound =
      sign == std::string::npos ? std::nullopt : finite_number(without_spaces_around(text.substr(sign + 2)));
  if (!bound || metric.empty() || metric.find(' ') != std::string::npos) {
    root.fail(key, fmt::format("'{}' is not a limit", text),
              "write METRIC <= NUMBER or METRIC >= NUMBER, such as \"power_w <= 300\"");
  }
  for (const Objective& objective : all_objectives(session)) {
    if (objective.metric != metric) continue;
    root.fail(key, fmt::format("'{}' is an objective", metric),
              session.others.empty() ? "leave it out: the search looks for the best value anyway"
                                     : fmt::format("write \"limit\": {} into that objective", *bound));
  }
  const trial::Metric* known = trial::find_metric(metric);
  if (known != nullptr && known->kind == trial::MetricKind::kGoodput) {
    root.fail(key, "goodput can only be an objective", "limit the throughput instead");
  }
  Objective limit{metric, text[sign] == '>', metric};
  if (known != nullptr && runner::traits_of(session.runner).has_our_fields) limit.field = std::string(known->field);
  limit.by_ratio = known != nullptr || limit.field == trial::kPeakMemory;
  limit.limit = bound;
  check_measured(session, limit, key, root);
  return limit;
}

}  // namespace

void read_limits(Session& session, JsonObject& root) {
  const std::vector<std::string> texts = root.texts("limits");
  if (texts.size() > kMostLimits)
    root.fail("limits", fmt::format("{} are too many", texts.size()), fmt::format("give {} at most", kMostLimits));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string key = fmt::format("limits/{}", i);
    Objective limit = read_limit(session, root, key, texts[i]);
    for (const Objective& other : session.limits) {
      if (other.metric != limit.metric || other.maximize != limit.maximize) continue;
      root.fail(key, fmt::format("'{}' is limited twice in this direction", limit.metric), "remove one of the two");
    }
    session.limits.push_back(std::move(limit));
  }
}

std::string limit_text(const Objective& limit) {
  return fmt::format("{} {} {}", limit.metric, limit.maximize ? ">=" : "<=", *limit.limit);
}

Json limits_schema() {
  Json schema = schema::list(schema::not_empty(schema::text()),
                             "what measured metrics must keep to beside the objectives, such as \"power_w <= 300\"");
  schema["maxItems"] = kMostLimits;
  return schema;
}

bool is_within(const Objective& objective, double value) {
  return !objective.limit || !objective.better(*objective.limit, value);
}

Json objectives_json(const Session& session) {
  Json list = Json::array();
  for (const Objective& objective : all_objectives(session)) list.push_back(to_json(objective));
  return list;
}

Json objectives_schema() {
  Json schema = schema::list(objective_schema(),
                             "Several numbers at once, instead of \"objective\": the search looks for the "
                             "configurations that are best in one without being worse in all others");
  schema["minItems"] = kFewest;
  schema["maxItems"] = kMost;
  return schema;
}

Json prefer_schema() {
  return schema::text(
      "With several objectives, which configuration of the front is recommended: \"throughput >= 0.95 best\" is the "
      "best by the first other objective among those with 95 % of the best throughput, and \"peak_memory_bytes <= "
      "3e10\" an absolute bound. Without it the best by the first objective");
}

std::vector<Objective> all_objectives(const Session& session) {
  std::vector<Objective> all = {session.objective};
  all.insert(all.end(), session.others.begin(), session.others.end());
  return all;
}

std::vector<Objective> needed_metrics(const Session& session) {
  std::vector<Objective> needed = session.others;
  needed.insert(needed.end(), session.limits.begin(), session.limits.end());
  return needed;
}

void name_peak_memory(const Session& session, trial::Measured& measured) {
  if (!measured.peak_memory) return;
  for (const Objective& objective : needed_metrics(session)) {
    if (objective.field != trial::kPeakMemory) continue;
    measured.metrics.emplace(objective.field, static_cast<double>(measured.peak_memory->count));
  }
}

std::vector<std::string> missing_metrics(const Session& session, const trial::Outcome& outcome) {
  std::vector<std::string> missing;
  if (!std::holds_alternative<trial::Measured>(outcome)) return missing;
  trial::Measured measured = std::get<trial::Measured>(outcome);
  name_peak_memory(session, measured);
  for (const Objective& objective : needed_metrics(session)) {
    const auto found = measured.metrics.find(objective.field);
    if (found == measured.metrics.end() || !std::isfinite(found->second)) missing.push_back(objective.field);
  }
  return missing;
}

trial::Outcome with_objectives(const Session& session, const space::Configuration& configuration,
                               trial::Outcome outcome) {
  outcome = with_goodput(session, configuration, std::move(outcome));
  if (auto* measured = std::get_if<trial::Measured>(&outcome)) name_peak_memory(session, *measured);
  const std::vector<std::string> missing = missing_metrics(session, outcome);
  if (missing.empty()) return outcome;
  const bool is_limited = std::any_of(session.limits.begin(), session.limits.end(),
                                      [&](const Objective& limit) { return limit.field == missing.front(); });
  return trial::Failed{trial::FailureReason::kBadResult, 0,
                       fmt::format("the result has no number '{}', which is one of the session's {}", missing.front(),
                                   is_limited ? "limits" : "objectives")};
}

std::unique_ptr<trial::Runner> with_objectives(const Session& session, std::unique_ptr<trial::Runner> runner) {
  if (session.others.empty() && session.limits.empty()) return with_goodput(session, std::move(runner));
  return std::make_unique<ObjectivesRunner>(session, std::move(runner));
}

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& text, const Session& session) {
  const Objective& first = session.objective;
  throw UserError(fmt::format("{}: '{}' is not a preference", where, text),
                  fmt::format("write \"{} {} best\"", first.metric, first.maximize ? ">= 0.95" : "<= 1.05"));
}

}  // namespace

Preference read_preference(const Session& session, const std::string& text, const std::string& where) {
  if (session.others.empty()) {
    throw UserError(fmt::format("{}: the session has one objective, so there is no front to choose from", where),
                    "leave it out");
  }
  std::istringstream stream(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  if (words.size() < 3 || words.size() > 4 || (words.size() == 4 && words[3] != "best")) refuse(where, text, session);
  const std::vector<Objective> objectives = all_objectives(session);
  std::vector<std::string> names;
  for (const Objective& objective : objectives) names.push_back(objective.metric);
  const auto named = std::find(names.begin(), names.end(), words[0]);
  if (named == names.end()) {
    throw UserError(fmt::format("{}: '{}' is none of the objectives", where, words[0]), suggestion(words[0], names));
  }
  Preference preference;
  preference.objective = static_cast<std::size_t>(named - names.begin());
  const bool maximize = objectives[preference.objective].maximize;
  if (words[1] != (maximize ? ">=" : "<=")) {
    throw UserError(fmt::format("{}: '{}' is to be {}", where, words[0], maximize ? "maximized" : "minimized"),
                    fmt::format("write {}", maximize ? ">=" : "<="));
  }
  const std::optional<double> number = finite_number(words[2]);
  if (!number) refuse(where, text, session);
  preference.bound = *number;
  preference.is_of_best = words.size() == 4;
  preference.text = text;
  return preference;
}

}  // namespace krigtune::session
