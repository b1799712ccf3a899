#include "run/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "journal/lock.h"
#include "run/earlier_run.h"
#include "runner/begun_file.h"

namespace krigtune::run {
namespace {

constexpr int kSchemaVersion = 1;

constexpr const char* kMachine = "machine";
constexpr const char* kGpus = "local_gpus";
constexpr const char* kWarmStart = "warm_start";
constexpr const char* kMemory = "memory";

// The keys that session.json has in addition to the session.
constexpr const char* kOwnKeys[] = {"schema_version", "krigtune_version", "strategy", "seed", kMachine, kGpus,
                                    kWarmStart};

Json load_record(const std::filesystem::path& directory) {
  const std::filesystem::path file = session_path(directory);
  if (!std::filesystem::exists(file)) {
    throw UserError(
        fmt::format("{}: is not a run directory (there is no {})", directory.string(), file.filename().string()),
        "name a directory that krigtune tune made");
  }
  return load_json(file);
}

// Writes parameters like this version.
void normalise_space(Json& record) {
  if (!record.contains("space")) return;
  for (const space::Parameter& parameter : space::read_parameters(record["space"], "session.json", "/space")) {
    record["space"][parameter.name] = space::to_json(parameter);
  }
}

// Returns what decides which trial comes next, apart from the journal.
Json search_part(const Json& record) {
  Json part = Json::object();
  for (const char* key : {"strategy", "seed", kMemory}) part[key] = record.value(key, Json());
  const std::string strategy = record.value("strategy", "");
  if (record.contains(strategy)) part[strategy] = record.at(strategy);  // only it reads its block
  Json sources = Json::array();
  for (const Json& run : record.value(kWarmStart, Json::array())) sources.push_back(run.value("source", Json()));
  part[kWarmStart] = std::move(sources);
  return part;
}

// Returns what a trial is and how it is measured.
Json measured_part(Json record) {
  normalise_space(record);
  const trial::RunnerTraits traits = runner::traits_of_block(record.value("runner", Json::object()));
  for (const char* key : {"schema_version", "krigtune_version", "budget", "strategy", "seed", "grid", "stagewise",
                          kMachine, kGpus, kWarmStart}) {
    record.erase(key);
  }
  record.erase("executor");  // it only says where trials run
  record.erase("prefer");    // of several results it only says which one is recommended
  // It decides what fits on the virtual clock; of other trials it only says which ones are worth a try.
  if (!traits.only_what_is_modelled || traits.runs_programs) record.erase(kMemory);
  for (const char* key : {"assumed", "not_modelled", "also_not_modelled"}) {  // of predictions
    if (record.contains("workload")) record["workload"].erase(key);
  }
  // Of a user's own program, whose parameters are only predicted with. They may be counted otherwise next time.
  const bool is_predicted_only = traits.runs_programs && !traits.only_what_is_modelled;
  if (is_predicted_only && record.contains("workload") && record["workload"].contains("model"))
    record["workload"]["model"].erase("others");
  for (const char* key : {"run_noise", "unit"}) {
    if (record.contains("objective")) record["objective"].erase(key);
  }
  if (record.contains("objectives")) {
    for (Json& objective : record["objectives"]) {
      for (const char* key : {"run_noise", "unit", "limit"}) objective.erase(key);
    }
  }
  record.erase("limits");
  if (!record.contains("runner")) return record;
  for (const char* key : {"timeout_s", "grace_s", "no_progress_s", "early_end", "config_as", "today"})
    record["runner"].erase(key);
  return record;
}

// Absent, null and empty are equivalent, because an older version did not write keys that it did not know.
bool is_nothing(const Json& json) { return json.is_null() || (json.is_structured() && json.empty()); }

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (!is_nothing(value)) keys.push_back(key);
  }
  return keys;
}

std::optional<workload::MeasuredMachine> machine_of(const Json& record, const std::string& source) {
  if (!record.contains(kMachine)) return std::nullopt;
  return workload::read_measured_machine(record.at(kMachine), source, std::string("/") + kMachine);
}

// Returns the GPUs as a cluster that names them, with what differs from the tables.
Json gpus_json(const session::Session& session) {
  workload::ClusterSpec named = session.cluster;
  named.gpu = named.device->id;
  named.hardware = nullptr;
  named.emulated_network.reset();
  Json json = {{"cluster", workload::to_json(named)}};
  if (session.usable_per_rank) json["usable_bytes_per_rank"] = session.usable_per_rank->count;
  return json;
}

// Shortens the text so that it fits into a line.
std::string shortened(const Json& json) {
  constexpr std::size_t kShownBytes = 120;
  const std::string text = json.dump();
  return text.size() <= kShownBytes ? text : fmt::format("{} characters", text.size());
}

// Adds "/space/zero_stage was [0,1], now [0,1,2]" for every leaf or list that differs.
void add_differences(const Json& before, const Json& now, const std::string& pointer, std::vector<std::string>& list) {
  if (before == now || (is_nothing(before) && is_nothing(now))) return;
  if (!before.is_object() || !now.is_object()) {
    const std::string was = shortened(before);
    const std::string is = shortened(now);
    list.push_back(was == is ? fmt::format("{} is another", pointer)
                             : fmt::format("{} was {}, now {}", pointer, was, is));
    return;
  }
  const std::size_t found = list.size();
  for (const auto& [key, value] : before.items()) {
    add_differences(value, now.contains(key) ? now.at(key) : Json(nullptr), pointer + "/" + key, list);
  }
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) add_differences(nullptr, value, pointer + "/" + key, list);
  }
  if (list.size() == found && keys_of(before) != keys_of(now)) {
    list.push_back(fmt::format("the order of the keys of {} is another", pointer));
  }
}

}  // namespace

namespace {

bool is_record(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && load_json(file).contains("schema_version");
}

}  // namespace

bool is_run(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(journal_path(directory), error) || is_record(session_path(directory));
}

std::filesystem::path named_run(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return std::filesystem::exists(session_path(path), error) && is_run(path) ? path : "";
  }
  if (path.filename() != session_path("").filename() || !is_record(path)) return "";
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::filesystem::path session_path(const std::filesystem::path& directory) { return directory / "session.json"; }
std::filesystem::path journal_path(const std::filesystem::path& directory) { return directory / "journal.log"; }

std::filesystem::path trials_path(const std::filesystem::path& directory) { return directory / "trials.csv"; }

RunRecord load_run(const std::filesystem::path& directory) {
  Json json = load_record(directory);
  const std::string source = session_path(directory).string();
  RunRecord record;
  {
    JsonObject block(json, source, "");
    if (block.integer("schema_version", 0) != kSchemaVersion) {
      block.fail("schema_version", "is not one that this version reads", "use the krigtune that made the directory");
    }
    record.options.strategy = search::strategy_kind_from(block.text("strategy", ""), source + ": /strategy");
    const Json& seed = block.require("seed");
    if (!seed.is_number_integer()) block.fail("seed", "a whole number was expected", "restore session.json");
    record.options.seed = seed.get<std::uint64_t>();
    if (const Json* runs = block.find(kWarmStart)) {
      record.options.earlier = earlier_runs_from_json(*runs, source, "/warm_start");
    }
  }
  const std::optional<workload::MeasuredMachine> machine = machine_of(json, source);
  for (const char* key : kOwnKeys) json.erase(key);
  record.session = session::read_session(json, source, std::filesystem::absolute(directory));
  record.session.file = session_path(directory);
  record.session.cluster.measured = machine;
  runner::recall_begun_file(record.session.runner, directory);
  return record;
}

namespace {

// Decides by the names of the variables that the session sets for its trials.
bool contains_a_secret(const Json& record) {
  constexpr std::array<std::string_view, 7> kWords = {"token", "secret",     "password", "passwd",
                                                      "key",   "credential", "auth"};
  if (!record.contains("runner") || !record["runner"].contains("env")) return false;
  const auto items = record["runner"]["env"].items();
  return std::any_of(items.begin(), items.end(), [&](const auto& variable) {
    const std::string name = lower_case(variable.key());
    return std::any_of(kWords.begin(), kWords.end(),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
  });
}

}  // namespace

void write_run_record(const std::filesystem::path& directory, const session::Session& session,
                      const LoopOptions& options) {
  runner::keep_begun_file(session.runner, directory);
  const Json record = run_record(session, options);
  const std::string text = record.dump(2) + "\n";
  if (contains_a_secret(record)) {
    write_private(session_path(directory), text);
  } else {
    write_atomically(session_path(directory), text);
  }
  remove_old_temporaries(session_path(directory));
}

forecast::EarlierRuns recorded_earlier_runs(const std::filesystem::path& directory) {
  const Json json = load_record(directory);
  const std::string source = session_path(directory).string();
  return json.contains(kWarmStart) ? earlier_runs_from_json(json[kWarmStart], source, "/warm_start")
                                   : forecast::EarlierRuns();
}

std::optional<workload::MeasuredMachine> recorded_machine(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(session_path(directory))) return std::nullopt;
  return machine_of(load_record(directory), session_path(directory).string());
}

std::optional<RecordedGpus> recorded_gpus(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(session_path(directory))) return std::nullopt;
  const Json record = load_record(directory);
  if (!record.contains(kGpus)) return std::nullopt;
  JsonObject gpus(record[kGpus], session_path(directory).string(), std::string("/") + kGpus);
  RecordedGpus recorded{
      workload::read_cluster(gpus.require("cluster"), gpus.source(), gpus.pointer("cluster"), directory), std::nullopt};
  if (const Json* usable = gpus.find("usable_bytes_per_rank"); usable != nullptr && usable->is_number_integer()) {
    recorded.usable_per_rank = Bytes{usable->get<std::int64_t>()};
  }
  return recorded;
}

Json run_record(const session::Session& session, const LoopOptions& options) {
  Json record = Json::object();
  record["schema_version"] = kSchemaVersion;
  record["krigtune_version"] = KRIGTUNE_VERSION;
  record["strategy"] = search::to_string(options.strategy);
  record["seed"] = options.seed;
  if (session.cluster.measured) record[kMachine] = workload::to_json(*session.cluster.measured);
  if (session.cluster.is_local() && session.cluster.device) record[kGpus] = gpus_json(session);
  const Json session_json = session::resolved(session);
  for (const auto& [key, value] : session_json.items()) record[key] = value;
  if (!options.earlier.empty()) record[kWarmStart] = to_json(options.earlier);
  return record;
}

namespace {

// Beginning again would overwrite the files of the trials.
void refuse_a_lost_journal(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path journal = journal_path(directory);
  if (std::filesystem::exists(journal, error) && std::filesystem::file_size(journal, error) > 0) return;
  if (!std::filesystem::is_regular_file(trials_path(directory), error)) return;
  const std::size_t trials =
      parse_csv(read_text(trials_path(directory), kMostTableBytes), trials_path(directory).string()).rows.size();
  if (trials == 0) return;
  throw UserError(fmt::format("{}: the journal is {}, though {} has {} of its trials", directory.string(),
                              std::filesystem::exists(journal, error) ? "empty" : "missing",
                              trials_path(directory).string(), trials),
                  fmt::format("put a copy of it back, or make it again from them: krigtune repair {}; --fresh starts "
                              "over and keeps the old directory",
                              directory.string()));
}

}  // namespace

namespace {

std::string differences_text(const Json& before, const Json& now, bool* in_how_it_measures = nullptr) {
  std::vector<std::string> differences;
  add_differences(before, now, "", differences);
  if (in_how_it_measures != nullptr) {
    *in_how_it_measures = std::any_of(differences.begin(), differences.end(), [](const std::string& one) {
      return one.starts_with("/runner") || one.starts_with("/objective");
    });
  }
  constexpr std::size_t kShown = 3;
  const std::size_t more = differences.size() > kShown ? differences.size() - kShown : 0;
  differences.resize(differences.size() - more);
  return join(differences, ", ") + (more > 0 ? fmt::format(" (and {} more)", more) : "");
}

// The copy of the user's file is not in session.json.
std::string begun_file_change(const std::filesystem::path& directory, const session::Session& session) {
  if (!runner::begins_otherwise(session.runner, directory)) return "";
  return runner::edited_file(session.runner)->string() + " has changed";
}

// Names only options that the command has.
std::string ways_to_go_on(const std::filesystem::path& directory, const SessionChange& change, journal::Asker asker) {
  const bool by_hand = asker == journal::Asker::kHand;
  const std::string learn = change.in_how_it_measures
                                ? ""
                                : fmt::format(", where {}--warm-start {} learns from these trials",
                                              by_hand ? "" : "--out NEW ", directory.string());
  if (by_hand) return "change it back, or name another directory" + learn;
  if (learn.empty()) return "change it back, or start over with --fresh, which keeps the old directory";
  return "change it back, or start over with --fresh, which keeps the old directory, or in another one" + learn;
}

// Looks at the names before it asks whether this is a run: another process may begin one meanwhile, and the first file
// that it writes is the one that shows it.
void refuse_a_foreign_directory(const std::filesystem::path& directory, journal::Asker asker) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return;
  constexpr std::size_t kShown = 3;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(".")) names.push_back(name);
  }
  if (names.empty() || is_run(directory)) return;
  std::sort(names.begin(), names.end());
  const bool has_more = names.size() > kShown;
  names.resize(std::min(names.size(), kShown));
  throw UserError(
      fmt::format("{}: is no run directory and not empty ({}{}), and a run would overwrite files that have its names",
                  directory.string(), join(names, ", "), has_more ? ", ..." : ""),
      asker == journal::Asker::kHand ? "name another directory" : "choose another directory with --out");
}

}  // namespace

SessionChange change_since_begun(const std::filesystem::path& directory, const session::Session& session,
                                 const LoopOptions& options) {
  SessionChange change;
  if (!std::filesystem::exists(session_path(directory))) return change;
  const Json before = load_record(directory);
  // Converts to text first, so that numbers are compared as they are written.
  const Json now = parse_json(run_record(session, options).dump(), "session");
  change.measured = differences_text(measured_part(before), measured_part(now), &change.in_how_it_measures);
  if (const std::string file = begun_file_change(directory, session); !file.empty()) {
    change.measured += (change.measured.empty() ? "" : ", ") + file;
    change.in_how_it_measures = true;
  }
  change.search = differences_text(search_part(before), search_part(now));
  return change;
}

bool holds_results(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(journal_path(directory))) return false;
  const std::string kind = std::filesystem::exists(session_path(directory))
                               ? load_record(directory).value("executor", Json::object()).value("kind", "local")
                               : "local";
  const bool jobs_go_on = !executor::traits_of(executor::executor_of_kind(kind, "session.json")).is_this_machine;
  const search::History history = journal::read_journal(journal_path(directory));
  return std::any_of(history.begin(), history.end(), [&](const journal::Trial& trial) {
    if (trial.outcome) return !std::holds_alternative<trial::Failed>(*trial.outcome);
    return jobs_go_on || trial.proposal.asker == journal::Asker::kHand || trial.waiting || !trial.passed_over.empty();
  });
}

std::filesystem::path set_aside(const std::filesystem::path& directory) {
  const std::string plain = std::filesystem::absolute(directory / "").parent_path().lexically_normal().string();
  // Another process that does the same does not wait: it is refused, or it finds the new run.
  const journal::TunerClaim claim(journal_path(directory));
  int number = 1;
  while (std::filesystem::exists(fmt::format("{}.{}", plain, number))) ++number;
  const std::string aside = fmt::format("{}.{}", plain, number);
  std::error_code error;
  std::filesystem::rename(plain, aside, error);
  if (error) throw UserError(fmt::format("cannot move '{}': {}", plain, error.message()), "fix its permissions");
  return aside;
}

std::string settle(const std::filesystem::path& directory, const session::Session& session, const LoopOptions& options,
                   journal::Asker asker) {
  refuse_a_foreign_directory(directory, asker);
  refuse_a_lost_journal(directory);
  const SessionChange change = change_since_begun(directory, session, options);
  if (change.measured.empty()) {
    return change.search.empty()
               ? ""
               : fmt::format("{}: goes on with another search: {}", directory.string(), change.search);
  }
  if (holds_results(directory)) {
    throw UserError(fmt::format("{}: was begun with another session: {}", directory.string(), change.measured),
                    ways_to_go_on(directory, change, asker));
  }
  return fmt::format(
      "{}: begins again, because no trial was measured yet and the session has changed: {}; what was there is now in "
      "{}",
      directory.string(), change.measured, set_aside(directory).string());
}

}  // namespace krigtune::run
