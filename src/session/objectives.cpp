#include "session/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/block.h"
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

void check_measured(const Session& session, const Objective& objective, const JsonObject& block) {
  const std::optional<std::vector<std::string>> names = runner::measured_names(session.runner);
  if (!names || has_name(*names, objective.field)) return;
  const trial::RunnerTraits runner = runner::traits_of(session.runner);
  block.fail("metric", fmt::format("the runner {} does not measure '{}'", runner.name, objective.metric),
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
    if (i > 0) check_measured(session, one, block);
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
  if (one != nullptr && several != nullptr) {
    root.fail("objectives", "and \"objective\" are both given", "leave one of them out");
  }
  if (several == nullptr) {
    session.objective = read_objective(one, root.source(), "/objective", runner::traits_of(session.runner));
    if (session.objective.limit) {
      JsonObject(*one, root.source(), "/objective")
          .fail("limit", "only applies to one of several objectives", "leave it out, or write \"objectives\"");
    }
    return;
  }
  std::vector<Objective> all = read_list(session, root, *several);
  session.objective = all.front();
  session.others.assign(all.begin() + 1, all.end());
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

std::vector<Objective> all_objectives(const Session& session) {
  std::vector<Objective> all = {session.objective};
  all.insert(all.end(), session.others.begin(), session.others.end());
  return all;
}

trial::Outcome with_objectives(const Session& session, const space::Configuration& configuration,
                               trial::Outcome outcome) {
  outcome = with_goodput(session, configuration, std::move(outcome));
  auto* measured = std::get_if<trial::Measured>(&outcome);
  if (measured == nullptr) return outcome;
  for (const Objective& objective : session.others) {
    if (objective.field == trial::kPeakMemory && measured->peak_memory) {
      measured->metrics.emplace(objective.field, static_cast<double>(measured->peak_memory->count));
    }
    const auto found = measured->metrics.find(objective.field);
    if (found != measured->metrics.end() && std::isfinite(found->second)) continue;
    return trial::Failed{
        trial::FailureReason::kBadResult, 0,
        fmt::format("the result has no number '{}', which is one of the session's objectives", objective.field)};
  }
  return outcome;
}

std::unique_ptr<trial::Runner> with_objectives(const Session& session, std::unique_ptr<trial::Runner> runner) {
  if (session.others.empty()) return with_goodput(session, std::move(runner));
  return std::make_unique<ObjectivesRunner>(session, std::move(runner));
}

}  // namespace krigtune::session
