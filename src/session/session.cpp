#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "cost/framework.h"
#include "schedule/knobs.h"
#include "session/objectives.h"
#include "session/refused_values.h"
#include "session/session_blocks.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::session {
namespace {

void read_workload_side(Session& session, JsonObject& root, const std::filesystem::path& base_dir) {
  const std::string& source = root.source();
  if (const Json* json = root.find("workload")) {
    session.workload = workload::read_workload(*json, source, "/workload", base_dir);
  }
  if (root.find("framework") != nullptr) {
    session.framework = one_of(workload::kFrameworkWords).read(root, "framework");
    if (session.workload) root.fail("framework", "is a key of \"workload\" where there is one", "write it there");
  }
  const Json* cluster = root.find("cluster");
  session.cluster = workload::read_cluster(cluster != nullptr ? *cluster : Json("local"), source, "/cluster", base_dir);
  if (const Json* json = root.find("memory")) session.memory = workload::read_memory(*json, source, "/memory");
  // Predictions need a number, so with a workload the assumed one counts.
  if (session.workload) session.cluster.assumes_ranks = false;
}

runner::RunnerSpec read_runner_or_default(const Session& session, JsonObject& root,
                                          const std::filesystem::path& base_dir) {
  if (const Json* block = root.find("runner")) return runner::read_runner(*block, root.source(), "/runner", base_dir);
  return runner::default_runner(session.workload.has_value());
}

void read_executor_block(Session& session, JsonObject& root, const std::filesystem::path& base_dir) {
  const Json* json = root.find("executor");
  if (json == nullptr) return;
  session.executor = executor::read_executor(*json, root.source(), "/executor", base_dir);
  executor::check_executor(session.executor, session.space, JsonObject(*json, root.source(), "/executor"));
}

// If the file does not name the framework, it follows from the runner, and the schedule follows from the framework.
void set_framework(Session& session, const JsonObject& root) {
  if (!session.workload) return;
  const JsonObject block(root.value().at("workload"), root.source(), "/workload");
  workload::Workload& workload = *session.workload;
  const bool trains_our_step = runner::traits_of(session.runner).trains_our_step;
  if (!block.has("framework"))
    workload.framework = trains_our_step ? workload::Framework::kKrigtune : workload::Framework::kDeepSpeed;
  if (trains_our_step && workload.framework != workload::Framework::kKrigtune) {
    block.fail("framework", "the runner bench trains with krigtune-bench",
               "leave it out, or use another runner; \"dialect\" chooses the schedule");
  }
  if (!block.has("dialect")) workload.dialect = cost::traits_of(workload.framework).dialect;
  if (trains_our_step && !workload.caveats.not_modelled.empty()) {
    block.fail("model", fmt::format("krigtune-bench cannot train it: {}", workload.caveats.not_modelled.front()),
               "describe a model without that by its sizes, or use the runner command");
  }
  if (const std::string part = workload::training_predicted_only(workload); trains_our_step && !part.empty()) {
    block.fail("training", fmt::format("krigtune-bench does not do that: {} can only be predicted", part),
               "leave it out, or train with the runner command");
  }
  if (const std::string part = workload.model.predicted_only(); trains_our_step && !part.empty()) {
    block.fail("model", fmt::format("krigtune-bench does not train {}: they are predicted only", part),
               "leave them out, or use another runner");
  }
  add_caveats(session);
}

void set_table(Session& session) {
  std::vector<std::string> names;
  for (const space::Parameter& parameter : session.space.parameters()) names.push_back(parameter.name);
  session.table =
      runner::read_table(session.runner, names, session.objective.reported_field(), session.objective.maximize);
  session.space.restrict_to(
      [table = session.table](const space::Configuration& configuration) { return table->contains(configuration); });
}

// The models know only some frameworks' ZeRO stages up to 1 (the distributed optimizer).
void warn_of_stages_without_model(Session& session) {
  const cost::FrameworkTraits& traits = cost::traits_of(session.workload->framework);
  const auto most = traits.most_zero_stage;
  if (!reaches(session.space.parameters(), space::kZeroStage, static_cast<double>(most + 1))) return;
  session.warnings.push_back(
      fmt::format("the memory of {}'s zero_stage {} and more is predicted as that of stage {}, which is too much: "
                  "configurations that fit may be left out; give \"zero_stage\" values up to {} only, or leave "
                  "\"workload\" out",
                  traits.name, most + 1, most, most));
}

// Returns false, with a warning, if the models do not cover the transformer.
bool is_modelled(Session& session) {
  try {
    schedule::check_model(*session.workload);
    return true;
  } catch (const UserError& error) {
    session.warnings.push_back(fmt::format("nothing is predicted: {}", error.what()));
    return false;
  }
}

// Sets the memory that predictions are compared with. Empty if it is unknown how much a rank has.
void set_usable_memory(Session& session) {
  if (!session.memory.limit_gib && !session.cluster.device) return;
  const auto limit = static_cast<double>(workload::memory_limit_per_rank(session.memory, session.cluster).count);
  const bool exact = cost::traits_of(session.workload->framework).exact_memory;
  session.usable_per_rank =
      Bytes{static_cast<std::int64_t>(limit * (exact ? 1.0 : 1.0 - session.memory.reserve_fraction))};
}

// Returns the space with the table's values instead of continuous ranges.
space::Space listed_space(const space::Space& space, const std::filesystem::path& trials_csv) {
  if (space.listable()) return space;
  const CsvTable table = parse_csv(read_text(trials_csv, kMostTableBytes), trials_csv.string());
  std::vector<space::Parameter> parameters = space.parameters();
  for (space::Parameter& parameter : parameters) {
    if (!parameter.continuous()) continue;
    const int column = table.column(parameter.name);
    std::set<double> numbers;
    for (const std::vector<std::string>& row : table.rows) {
      const space::Value value = space::value_from_text(column < 0 ? "" : row[static_cast<std::size_t>(column)]);
      if (space::is_number(value)) numbers.insert(space::as_number(value));
    }
    if (numbers.empty()) {
      throw UserError(fmt::format("{}: no row has a value of '{}'", trials_csv.string(), parameter.name),
                      "give the directory of a run of this session");
    }
    parameter.range.reset();
    parameter.values.assign(numbers.begin(), numbers.end());
  }
  return {parameters, space.facts(), space.constraints()};
}

void say_what_is_left_out(Session& session) {
  const std::map<std::string, std::string> others = other_names(session.space);
  std::vector<std::string> unknown = unplanned_parameters(session.space);
  std::erase_if(unknown, [&](const std::string& name) { return others.contains(name); });
  if (!others.empty()) {
    std::vector<std::string> texts;
    for (const auto& [name, known] : others) texts.push_back(name + " as " + known);
    session.warnings.push_back("read as the usual parameters: " + join(texts, ", "));
  }
  if (unknown.empty() || !session.usable_per_rank) return;
  session.warnings.push_back(fmt::format("predictions of memory and time leave out {}", join(unknown, ", ")));
}

void prepare_table(Session& session, const JsonObject& root) {
  for (const space::Parameter& parameter : session.space.parameters()) {
    if (!parameter.continuous()) continue;
    root.fail("space/" + parameter.name, "a table has no row for every real number", "list the table's values");
  }
  refuse_empty_space(session.space, root);
  at_key(root, "runner/table", [&] { set_table(session); });
  if (session.space.is_empty()) {
    root.fail("runner/table",
              fmt::format("no row of {} is a configuration of the space",
                          runner::table_file(session.runner)->filename().string()),
              "compare \"space\" and \"columns\" with the table's columns and values");
  }
  if (!session.workload || !is_modelled(session)) return;
  set_usable_memory(session);
  say_what_is_left_out(session);
}

// Of a step of krigtune's own, on the machine or on the virtual clock.
void prepare_modelled(Session& session, const JsonObject& root) {
  const trial::RunnerTraits traits = runner::traits_of(session.runner);
  if (!session.workload) {
    const char* does = traits.trains_our_step ? "trains" : "predicts";
    root.fail("workload", fmt::format("is missing: the runner {} {} it", traits.name, does), "add it");
  }
  const bool knows_speed = session.cluster.device && session.cluster.network;
  if (!traits.runs_programs && !knows_speed) {  // trials on this machine itself are real
    root.fail("cluster/gpu", fmt::format("the runner {} must know how fast the machine is", traits.name),
              "name a GPU, as h100-80gb");
  }
  keep_planned_values(session, root);
  refuse_empty_space(session.space, root);
  if (!traits.trains_our_step) return set_usable_memory(session);
  // The plan is exact to the byte, so nothing is reserved.
  session.usable_per_rank = workload::memory_limit_per_rank(session.memory, session.cluster);
}

// A user's program may support more parameters than the models.
void prepare_program(Session& session, const JsonObject& root) {
  refuse_empty_space(session.space, root);
  if (!session.workload || !is_modelled(session)) return;
  set_usable_memory(session);
  warn_of_stages_without_model(session);
  say_what_is_left_out(session);
}

void prepare(Session& session, const JsonObject& root) {
  if (runner::table_file(session.runner) != nullptr) return prepare_table(session, root);
  if (runner::traits_of(session.runner).only_what_is_modelled) return prepare_modelled(session, root);
  prepare_program(session, root);
}

void check_peak_factor(const Session& session, const JsonObject& root) {
  if (session.memory.peak_factor == 1.0 || !session.workload) return;
  if (!cost::traits_of(session.workload->framework).exact_memory) return;
  root.fail("memory/peak_factor", "krigtune-bench needs what is planned, to the byte",
            "leave it out, or name the \"framework\" of the workload");
}

// Checks the limit against a named GPU. Drivers differ by about a per cent in the memory that they report.
void check_memory_limit(const Session& session, const JsonObject& root) {
  constexpr double kDriversDiffer = 1.02;
  const workload::ClusterSpec& cluster = session.cluster;
  if (!session.memory.limit_gib || cluster.is_local() || !cluster.device) return;
  const double has_gib = to_gib(cluster.device->memory);
  if (*session.memory.limit_gib <= has_gib * kDriversDiffer) return;
  root.fail(
      "memory/limit_gib",
      fmt::format("{:g} GiB is more than the {} has, {:.1f} GiB", *session.memory.limit_gib, cluster.gpu, has_gib),
      "leave it out, or name the GPU that has them (\"hardware\" in the cluster for one of your own)");
}

void check_runner_block(const Session& session, const JsonObject& root) {
  if (!root.has("runner")) return;
  const JsonObject block(root.value().at("runner"), root.source(), root.pointer("runner"));
  runner::check_runner(session.runner, session.space, session.baseline, block);
}

void check_grid(const Session& session, const JsonObject& root) {
  if (session.grid.order != GridOrder::kSession || session.space.listable()) return;
  root.fail("grid/order", "the full factorial of a real range has no end",
            "give the range \"steps\", or write \"seed\"");
}

}  // namespace

Session read_session(const Json& json, const std::string& source, const std::filesystem::path& base_dir) {
  JsonObject root(json, source, "");
  root.text("$schema", "");  // for editors
  Session session;
  read_workload_side(session, root, base_dir);
  read_space(session, root);
  session.runner = read_runner_or_default(session, root, base_dir);
  set_framework(session, root);
  check_fixed(session, root);
  session.assumptions = assumptions_of(session, root);
  read_objectives(session, root);
  read_limits(session, root);
  read_executor_block(session, root, base_dir);
  session.budget = read_budget(root.find("budget"), source, "/budget");
  session.grid = read_grid(root.find("grid"), source, "/grid");
  session.stagewise = read_stagewise(root.find("stagewise"), source, "/stagewise");
  root.find("baseline");
  if (const Json* run = root.find("run")) session.run = read_run(*run, source, "/run");
  session.clusters = read_clusters_of_session(root, base_dir);
  root.finish();
  prepare(session, root);
  check_memory_limit(session, root);
  check_peak_factor(session, root);
  check_grid(session, root);
  read_baseline(session, root);
  check_runner_block(session, root);
  complete_goodput(session, root);
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
  if (session.workload) json["workload"] = workload::to_json(*session.workload);
  if (session.framework) json["framework"] = word_of(*session.framework, workload::kFrameworkWords);
  json["cluster"] = workload::to_json(session.cluster);
  json["space"] = Json::object();
  for (const space::Parameter& parameter : session.space.parameters())
    json["space"][parameter.name] = space::to_json(parameter);
  const space::Configuration& fixed = session.space.facts().fixed;
  if (!fixed.empty()) json["fixed"] = space::to_json(fixed);
  json["constraints"] = Json::array();
  for (const space::Expression& constraint : session.space.constraints())
    json["constraints"].push_back(constraint.text());
  json["baseline"] = session.baseline ? space::to_json(*session.baseline) : Json(nullptr);
  if (session.others.empty()) {
    json["objective"] = to_json(session.objective);
  } else {
    json["objectives"] = objectives_json(session);
    if (session.preference) json["prefer"] = session.preference->text;
  }
  for (const Objective& limit : session.limits) json["limits"].push_back(limit_text(limit));
  json["runner"] = runner::to_json(session.runner);
  json["executor"] = executor::to_json(session.executor);
  json["budget"] = to_json(session.budget);
  json["grid"] = to_json(session.grid);
  json["stagewise"] = to_json(session.stagewise);
  json["memory"] = workload::to_json(session.memory);
  if (session.run != RunSpec()) json["run"] = to_json(session.run);
  json.update(to_json(session.clusters));
  return json;
}

Session with_recorded_trials(const Session& session, const std::filesystem::path& trials_csv) {
  Session recorded = session;
  recorded.space = listed_space(session.space, trials_csv);
  runner::ReplaySpec replay;
  replay.table = std::filesystem::absolute(trials_csv);
  replay.value.name = "value";
  replay.status_column = "status";
  replay.repeats = runner::ReplaySpec::Repeats::kCycle;  // a configuration that was measured twice has two answers
  recorded.runner = replay;
  recorded.others.clear();  // the table has only the value
  recorded.limits.clear();
  recorded.objective.field = session.objective.metric;
  recorded.objective.throughput_field.clear();
  recorded.baseline.reset();
  recorded.usable_per_rank.reset();
  set_table(recorded);
  if (recorded.space.is_empty()) {
    throw UserError(fmt::format("{}: no row is a configuration of the session's space", trials_csv.string()),
                    "give the directory of a run of this session");
  }
  return recorded;
}

// Finds what a session fixes, what it leaves to its framework, and which names have another spelling.
namespace {

bool is_named(const space::Space& space, const std::string& name) {
  return space.facts().fixed.has(name) || space.find(name) != nullptr;
}

// Returns whether the space has the parameter, also under another name.
bool is_meant(const space::Space& space, const std::string& name) {
  if (is_named(space, name)) return true;
  const std::map<std::string, std::string> others = other_names(space);
  return std::any_of(others.begin(), others.end(), [&](const auto& other) { return other.second == name; });
}

// Returns whether any configuration has more than one tensor-parallel rank.
bool splits_layers(const space::Space& space) {
  if (space::in_usual_names(space.facts().fixed).integer(space::kTensorParallel, 1) > 1) return true;
  const space::Parameter* parameter = space::find_usual(space.parameters(), space::kTensorParallel);
  return parameter != nullptr && (parameter->values.size() > 1 || space::as_number(parameter->values[0]) > 1.0);
}

bool is_of_kind(const space::Value& value, const space::Value& other) {
  return space::is_number(value) ? space::is_number(other) : value.index() == other.index();
}

bool states_attention(const JsonObject& root) {
  const Json& workload = root.value().at("workload");
  return workload.at("model").is_object() && workload.at("model").contains("attention");
}

// Whether the model is given by its sizes alone, so that the rest of it is GPT-2's.
bool states_sizes_only(const JsonObject& root) {
  const Json& model = root.value().at("workload").at("model");
  constexpr std::array kOthers = {"preset", "hf_config", "gated_mlp", "positions", "norm"};
  return model.is_object() &&
         std::none_of(kOthers.begin(), kOthers.end(), [&](const char* key) { return model.contains(key); });
}

}  // namespace

space::Configuration read_fixed(JsonObject& root) {
  const Json* json = root.find("fixed");
  return json == nullptr ? space::Configuration()
                         : space::configuration_from_json(*json, root.source(), root.pointer("fixed"));
}

void check_fixed(const Session& session, const JsonObject& root) {
  const space::Configuration& fixed = session.space.facts().fixed;
  if (!session.workload || fixed.empty()) return;
  const JsonObject block(root.value().at("fixed"), root.source(), root.pointer("fixed"));
  workload::Workload workload = *session.workload;
  workload.train_batch_size.reset();  // whether the batch can be kept depends on the whole configuration
  for (const auto& [name, value] : fixed) {
    const space::WellKnownParameter* known = space::find_well_known(name);
    if (known == nullptr && !runner::traits_of(session.runner).only_what_is_modelled) continue;
    if (known != nullptr && !is_of_kind(value, known->default_value)) {
      block.fail(name, fmt::format("{} is not one of its values", space::to_json(value).dump()),
                 fmt::format("write one as {}", space::to_json(known->default_value).dump()));
    }
    at_key(block, name, [&, &name = name, &value = value] {
      return schedule::read_knobs(workload, session.cluster, {{name, value}});
    });
  }
}

std::vector<Assumption> assumptions_of(const Session& session, const JsonObject& root) {
  std::vector<Assumption> assumptions;
  if (!session.workload || session.workload->framework == workload::Framework::kKrigtune) return assumptions;
  for (const auto& [name, value] : cost::traits_of(session.workload->framework).usual) {
    const bool splits_tokens = name == "sequence_parallel";
    if (is_meant(session.space, name) || (splits_tokens && !splits_layers(session.space))) continue;
    assumptions.push_back({name, value, splits_tokens ? "where tensor_parallel > 1" : ""});
  }
  if (!states_attention(root) && session.workload->model.attention == workload::Attention::kFlash) {
    assumptions.push_back(
        {"attention", std::string("flash"), "write \"attention\": \"eager\" in the model where it is not"});
  }
  if (states_sizes_only(root)) {
    assumptions.push_back({"model", std::string("like GPT-2"),
                           "name a \"preset\", or write \"norm\", \"positions\" and \"gated_mlp\" where it is not"});
  }
  return assumptions;
}

std::vector<std::string> unknown_parameters(const space::Space& space) {
  const std::map<std::string, std::string> others = other_names(space);
  std::vector<std::string> names;
  for (const std::string& name : unplanned_parameters(space)) {
    if (space::find_well_known(name) == nullptr && !others.contains(name)) names.push_back(name);
  }
  return names;
}

namespace {

// Returns whether a name of the space has values, all of which the well-known parameter may have.
bool has_usual_values(const space::Space& space, const std::string& name, const std::string& known) {
  if (const space::Value* fixed = space.facts().fixed.find(name)) return space::usual_value(known, *fixed).has_value();
  const space::Parameter* parameter = space.find(name);
  return parameter != nullptr && !parameter->continuous() &&
         std::all_of(parameter->values.begin(), parameter->values.end(),
                     [&](const space::Value& value) { return space::usual_value(known, value).has_value(); });
}

}  // namespace

std::map<std::string, std::string> other_names(const space::Space& space) {
  std::map<std::string, std::string> read;
  for (const std::string& name : schedule::planned_parameters()) {
    if (is_named(space, name)) continue;
    const std::vector<space::OtherName>& others = space::find_well_known(name)->other_names;
    const auto first = std::find_if(others.begin(), others.end(),
                                    [&](const space::OtherName& other) { return is_named(space, other.name); });
    if (first != others.end() && has_usual_values(space, first->name, name)) read.emplace(first->name, name);
  }
  return read;
}

// Reads the session's space: its parameters, its constraints, and the facts of the job that both may use.
namespace {

std::vector<std::pair<std::string, double>> numbers_of(const Session& session) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  std::vector<std::pair<std::string, double>> numbers = {{"nodes", number(session.cluster.nodes)},
                                                         {"gpus_per_node", number(session.cluster.gpus_per_node)}};
  if (!session.workload) return numbers;
  const workload::ModelSpec& model = session.workload->model;
  numbers.insert(numbers.end(), {{"layers", number(model.layers)},
                                 {"hidden", number(model.hidden)},
                                 {"heads", number(model.heads)},
                                 {"kv_heads", number(model.kv_heads)},
                                 {"vocab", number(model.vocab)},
                                 {"seq_len", number(model.seq_len)}});
  return numbers;
}

space::JobFacts job_facts(const Session& session, const space::Configuration& fixed) {
  space::JobFacts facts;
  facts.fixed = fixed;
  facts.ranks = session.cluster.ranks();
  facts.numbers = numbers_of(session);
  facts.well_known = session.workload.has_value();
  if (session.workload) {
    facts.train_batch_size = session.workload->train_batch_size;
    facts.parameter_count = workload::parameter_count(session.workload->model);
  }
  return facts;
}

std::string constraint_key(std::size_t index) { return fmt::format("constraints/{}", index); }

std::vector<space::Expression> read_constraints(JsonObject& root) {
  std::vector<space::Expression> constraints;
  for (const std::string& text : root.texts("constraints")) {
    constraints.push_back(
        at_key(root, constraint_key(constraints.size()), [&] { return space::Expression::parse(text); }));
  }
  return constraints;
}

// Returns the reasons with their counts, the largest first.
std::vector<space::ExclusionCount> reasons_of(const space::Space& space) {
  std::vector<space::ExclusionCount> reasons;
  for (const space::ExclusionCount& excluded : space.exclusions()) {
    if (excluded.reason != space::Exclusion::kNone && excluded.count > 0) reasons.push_back(excluded);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const space::ExclusionCount& a, const space::ExclusionCount& b) { return a.count > b.count; });
  return reasons;
}

std::string excluded_text(const space::ExclusionCount& excluded) {
  if (excluded.reason != space::Exclusion::kConstraint)
    return fmt::format("{} ({})", space::to_string(excluded.reason), excluded.count);
  return fmt::format("constraint '{}' ({})", excluded.constraint, excluded.count);
}

// Returns the key of the constraint that excludes the most points; "space" if other reasons exclude more.
std::string key_to_blame(const space::Space& space, const std::vector<space::ExclusionCount>& reasons) {
  const std::vector<space::Expression>& constraints = space.constraints();
  if (!reasons.empty() && reasons.front().reason != space::Exclusion::kConstraint) return "space";
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    if (reasons.empty() || constraints[i].text() == reasons.front().constraint) return constraint_key(i);
  }
  return "space";
}

}  // namespace

void read_space(Session& session, JsonObject& root) {
  const std::vector<space::Parameter> parameters =
      space::read_parameters(root.require("space"), root.source(), "/space");
  const space::JobFacts facts = job_facts(session, read_fixed(root));
  std::vector<space::Expression> constraints = read_constraints(root);
  if (!facts.fixed.empty()) at_key(root, "fixed", [&] { return space::Space({}, facts); });
  at_key(root, "space", [&] { return space::Space(parameters, facts); });
  // Constraints are checked one by one, so that an error names the right one.
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    at_key(root, constraint_key(i), [&] { return space::Space(parameters, facts, {constraints[i]}); });
  }
  if (session.workload) add_refused(session.workload->framework, parameters, facts, constraints);
  session.space = space::Space(parameters, facts, constraints);
}

void refuse_empty_space(const space::Space& space, const JsonObject& root) {
  if (!at_key(root, "space", [&] { return space.is_empty(); })) return;
  const std::vector<space::ExclusionCount> reasons =
      space.listable() ? reasons_of(space) : std::vector<space::ExclusionCount>{};
  std::vector<std::string> texts;
  for (const space::ExclusionCount& reason : reasons) texts.push_back(excluded_text(reason));
  if (texts.empty()) texts.emplace_back("no configuration satisfies all constraints at once");
  const std::string key = key_to_blame(space, reasons);
  root.fail(key, "no configuration is left: " + join(texts, ", "),
            key == "space" ? "choose micro-batches whose product with the ranks divides train_batch_size"
                           : "loosen the constraint, or widen the ranges of its parameters");
}

}  // namespace krigtune::session
