#include "report/compared_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/statistics.h"
#include "core/text.h"

namespace krigtune::report {
namespace {

constexpr int kComparedVersion = 1;
constexpr const char* kComparisonFile = "comparison.csv";
// The blocks that make two sessions comparable. The runner may differ, because a comparison may be of recorded trials;
// it is named beside the curves.
constexpr const char* kSameKeys[] = {"workload", "cluster",   "space",      "fixed", "constraints",
                                     "memory",   "objective", "objectives", "limits"};

Json comparable_blocks(const session::Session& session) {
  // Converts to text first, so that numbers are compared as they are written.
  const Json record = parse_json(session::resolved(session).dump(), "session");
  Json blocks = Json::object();
  for (const char* key : kSameKeys) {
    if (record.contains(key)) blocks[key] = record[key];
  }
  return blocks;
}

std::vector<std::string> differing_blocks(const Json& there, const Json& here) {
  std::vector<std::string> names;
  for (const char* key : kSameKeys) {
    if (there.value(key, Json()) != here.value(key, Json())) names.emplace_back(key);
  }
  return names;
}

// The values best_so_far by strategy, run and trial.
using BestByRun = std::map<std::string, std::map<std::string, std::map<int, double>>>;

BestByRun read_best(const std::filesystem::path& file) {
  const std::string source = file.string();
  const CsvTable table = parse_csv(read_text(file, kMostTableBytes), source);
  const auto column = [&](const char* name) {
    const int found = table.column(name);
    if (found < 0)
      throw UserError(fmt::format("{}: there is no column '{}'", source, name), "run krigtune compare again");
    return static_cast<std::size_t>(found);
  };
  const std::size_t strategy = column("strategy");
  const std::size_t seed = column("seed");
  const std::size_t trial = column("trial");
  const std::size_t best = column("best_so_far");
  BestByRun runs;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    const space::Value number = space::value_from_text(row[trial]);
    const space::Value value = space::value_from_text(row[best]);
    const bool is_empty = row[best].empty();
    if (!std::holds_alternative<std::int64_t>(number) || (!is_empty && !space::is_number(value))) {
      throw UserError(
          fmt::format("{}: line {}: numbers were expected as trial and best_so_far", source, table.lines[i]),
          "run krigtune compare again");
    }
    std::map<int, double>& run = runs[row[strategy]][row[seed]];
    if (!is_empty) run[static_cast<int>(space::as_number(number))] = space::as_number(value);
  }
  return runs;
}

// A run that ended earlier keeps its last value.
std::optional<double> best_at(const std::map<int, double>& run, int trial) {
  const auto next = run.upper_bound(trial);
  return next == run.begin() ? std::nullopt : std::optional(std::prev(next)->second);
}

ComparedCurve curve_of(const std::string& strategy, const std::map<std::string, std::map<int, double>>& runs) {
  ComparedCurve curve;
  curve.strategy = strategy;
  curve.runs = static_cast<int>(runs.size());
  int last = -1;
  for (const auto& [seed, run] : runs) last = std::max(last, run.empty() ? -1 : run.rbegin()->first);
  for (int trial = 0; trial <= last; ++trial) {
    std::vector<double> values;
    double sum = 0.0;
    for (const auto& [seed, run] : runs) {
      const std::optional<double> best = best_at(run, trial);
      if (!best) break;
      values.push_back(*best);
      sum += *best;
    }
    if (values.size() < runs.size()) continue;
    std::sort(values.begin(), values.end());
    curve.trials.push_back(trial);
    curve.best.push_back({.median = quantile(values, 0.5),
                          .mean = sum / static_cast<double>(values.size()),
                          .q25 = quantile(values, 0.25),
                          .q75 = quantile(values, 0.75)});
  }
  return curve;
}

}  // namespace

Json compared_record(const session::Session& session, int trials) {
  return {{"schema_version", kComparedVersion},
          {"trials", trials},
          {"runner", session::resolved(session).value("runner", Json::object()).value("kind", "")},
          {"session", comparable_blocks(session)}};
}

ComparedCurves compared_curves(const std::filesystem::path& directory, const session::Session& session) {
  const std::filesystem::path file = directory / kComparedFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    throw UserError(fmt::format("{}: there is no comparison in it (no {})", directory.string(), kComparedFile),
                    "name a directory that krigtune compare made");
  }
  const Json record = load_json(file);
  const bool is_record = record.is_object() && record.value("session", Json()).is_object();
  if (!is_record || record.value("schema_version", Json()) != kComparedVersion) {
    throw UserError(fmt::format("{}: it is not a record of a comparison that this version reads", file.string()),
                    "run krigtune compare again");
  }
  const std::vector<std::string> differing = differing_blocks(record["session"], comparable_blocks(session));
  if (!differing.empty()) {
    throw UserError(fmt::format("{}: it compares another session: {} differ{}", directory.string(),
                                join(differing, ", "), differing.size() == 1 ? "s" : ""),
                    "compare this session: krigtune compare SESSION");
  }
  ComparedCurves compared{directory, "", {}};
  if (const Json& runner = record.value("runner", Json()); runner.is_string()) compared.runner = runner;
  for (const auto& [strategy, runs] : read_best(directory / kComparisonFile)) {
    ComparedCurve curve = curve_of(strategy, runs);
    if (!curve.trials.empty()) compared.curves.push_back(std::move(curve));
  }
  return compared;
}

ComparedCurves curves_beside(const std::filesystem::path& run_directory, const session::Session& session) {
  std::filesystem::path beside = run_directory.lexically_normal();
  if (!beside.has_filename()) beside = beside.parent_path();
  beside += "-compare";
  for (const std::filesystem::path& directory : {run_directory, beside}) {
    std::error_code error;
    if (!std::filesystem::exists(directory / kComparedFile, error)) continue;
    try {
      return compared_curves(directory, session);
    } catch (const UserError&) {  // nobody requested it, so one that does not match is not shown
      continue;
    }
  }
  return {};
}

}  // namespace krigtune::report
