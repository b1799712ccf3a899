#include "krigtune/tuner/session.h"

#include <fmt/format.h>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "session_blocks.h"

namespace krigtune {
namespace {

JobFacts job_facts(const Session& session) {
  JobFacts facts;
  facts.ranks = session.cluster.ranks();
  facts.well_known = session.workload.has_value();
  if (session.workload) {
    facts.train_batch_size = session.workload->train_batch_size;
    facts.parameter_count = parameter_count(session.workload->model);
  }
  return facts;
}

// Keys of the format that this version does not act on: better refused than ignored.
void refuse_unbuilt(JsonObject& root) {
  const Json* constraints = root.find("constraints");
  if (constraints != nullptr && !constraints->empty()) {
    root.fail("constraints", "constraints are not supported yet", "leave it out");
  }
}

void read_workload_side(Session& session, JsonObject& root) {
  const std::string& source = root.source();
  if (const Json* json = root.find("workload")) session.workload = read_workload(*json, source, "/workload");
  const Json* cluster = root.find("cluster");
  session.cluster = read_cluster(cluster != nullptr ? *cluster : Json("local"), source, "/cluster");
  if (const Json* json = root.find("memory")) session.memory = read_memory(*json, source, "/memory");
  std::vector<Parameter> parameters = read_parameters(root.require("space"), source, "/space");
  try {
    session.space = Space(std::move(parameters), job_facts(session));
  } catch (const UserError& error) {
    root.fail("space", error.what(), "");
  }
}

std::string exclusions_text(const Space& space) {
  std::vector<std::string> reasons;
  for (const ExclusionCount& excluded : space.exclusions()) {
    if (excluded.reason != Exclusion::kNone && excluded.count > 0)
      reasons.push_back(fmt::format("{} ({})", to_string(excluded.reason), excluded.count));
  }
  return join(reasons, ", ");
}

void set_table(Session& session) {
  std::vector<std::string> names;
  for (const Parameter& parameter : session.space.parameters()) names.push_back(parameter.name);
  session.table =
      std::make_shared<const ReplayTable>(session.runner, names, session.objective.field, session.objective.maximize);
  session.space.restrict_to(
      [table = session.table](const Configuration& configuration) { return table->contains(configuration); });
}

void prepare_replay(Session& session, const JsonObject& root) {
  set_table(session);
  if (session.space.count() == 0) {
    root.fail(
        "runner/table",
        fmt::format("no row of {} is a configuration of the space", session.runner.replay.table.filename().string()),
        "compare \"space\" and \"columns\" with the table's columns and values");
  }
  const std::vector<std::string> unknown = unplanned_parameters(session.space);
  if (session.workload && !unknown.empty()) {
    session.warnings.push_back(
        fmt::format("the plan does not know {}: the table is replayed without physics; "
                    "leave \"workload\" out to silence this",
                    join(unknown, ", ")));
  }
}

void prepare_bench(Session& session, const JsonObject& root) {
  if (!session.workload) root.fail("workload", "is missing: the runner bench trains it", "add it");
  check_planned_parameters(session, root);
  if (session.space.count() == 0) {
    root.fail("space", "no configuration is left: " + exclusions_text(session.space),
              "choose micro-batches whose product with the ranks divides train_batch_size");
  }
  // The plan is exact to the byte, so nothing is held in reserve.
  session.usable_per_rank = memory_limit_per_rank(session.memory, session.cluster);
}

}  // namespace

Session read_session(const Json& json, const std::string& source, const std::filesystem::path& base_dir) {
  JsonObject root(json, source, "");
  refuse_unbuilt(root);
  Session session;
  read_workload_side(session, root);
  if (const Json* block = root.find("runner")) session.runner = read_runner(*block, source, "/runner", base_dir);
  session.objective = read_objective(root.find("objective"), source, "/objective", session.runner.kind);
  session.budget = read_budget(root.find("budget"), source, "/budget");
  session.grid_order = read_grid(root.find("grid"), source, "/grid");
  root.find("baseline");
  root.finish();
  if (session.runner.kind == RunnerKind::kReplay) {
    prepare_replay(session, root);
  } else {
    prepare_bench(session, root);
  }
  read_baseline(session, root);
  return session;
}

Session load_session(const std::filesystem::path& file) {
  const Json json = load_json(file);
  Session session = read_session(json, file.string(), std::filesystem::absolute(file).parent_path());
  session.file = file;
  return session;
}

Json resolved(const Session& session) {
  Json json = Json::object();
  if (session.workload) json["workload"] = to_json(*session.workload);
  json["cluster"] = to_json(session.cluster);
  json["space"] = Json::object();
  for (const Parameter& parameter : session.space.parameters()) json["space"][parameter.name] = to_json(parameter);
  json["baseline"] = session.baseline ? to_json(*session.baseline) : Json(nullptr);
  json["objective"] = {{"metric", session.objective.metric},
                       {"direction", session.objective.maximize ? "maximize" : "minimize"}};
  json["runner"] = to_json(session.runner);
  const Budget& budget = session.budget;
  json["budget"] = {{"trials", budget.trials},
                    {"hours", budget.hours ? json_number(*budget.hours) : Json(nullptr)},
                    {"patience", budget.patience ? Json(*budget.patience) : Json(nullptr)}};
  json["grid"] = {{"order", to_string(session.grid_order)}};
  json["memory"] = to_json(session.memory);
  return json;
}

Session with_recorded_trials(const Session& session, const std::filesystem::path& trials_csv) {
  Session recorded = session;
  recorded.runner = RunnerSpec{};
  recorded.runner.kind = RunnerKind::kReplay;
  recorded.runner.replay.table = std::filesystem::absolute(trials_csv);
  recorded.runner.replay.value.name = "value";
  recorded.runner.replay.status_column = "status";
  recorded.objective.field = session.objective.metric;
  recorded.baseline.reset();
  recorded.usable_per_rank.reset();
  set_table(recorded);
  if (recorded.space.count() == 0) {
    throw UserError(fmt::format("{}: no row is a configuration of the session's space", trials_csv.string()),
                    "give the directory of a run of this session");
  }
  return recorded;
}

}  // namespace krigtune
