#include "runner/replay_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "runner/replay.h"

namespace krigtune::runner {
namespace {

// A table with its name for error messages.
struct Source {
  std::string name;
  CsvTable table;

  Source(const std::filesystem::path& file)
      : name(file.string()), table(parse_csv(read_text(file, kMostTableBytes), name)) {
    for (std::string& title : table.header) title = trimmed(title);
  }

  std::size_t column(const std::string& wanted, const std::string& what) const {
    const int found = table.column(wanted);
    if (std::count(table.header.begin(), table.header.end(), wanted) > 1) {
      throw UserError(fmt::format("{}: line 1: two columns are named '{}' ({})", name, wanted, what),
                      "give each a name of its own");
    }
    if (found >= 0) return static_cast<std::size_t>(found);
    throw UserError(fmt::format("{}: line 1: there is no column '{}' ({})", name, wanted, what),
                    suggestion(wanted, table.header));
  }
  std::string field(std::size_t row, std::size_t column) const { return trimmed(table.rows[row][column]); }

  [[noreturn]] void refuse(std::size_t row, std::size_t column, const std::string& hint) const {
    throw UserError(fmt::format("{}: line {}, column '{}': '{}' is not a number", name, table.lines[row],
                                table.header[column], table.rows[row][column]),
                    hint);
  }
};

std::optional<double> number_in(const std::string& field, double times) {
  const space::Value value = space::value_from_text(field);
  if (!space::is_number(value) || !std::isfinite(space::as_number(value) * times)) return std::nullopt;
  return times == 1.0 ? space::as_number(value) : rounded(space::as_number(value) * times);
}

struct NumberColumn {
  std::string metric;
  std::size_t column;
  double times;
};

struct Wanted {
  std::size_t column;
  std::string spelling;
};

/// The positions of the columns that the runner's block names.
struct Columns {
  std::vector<Wanted> where;
  std::vector<std::size_t> parameters;
  NumberColumn value;
  std::vector<NumberColumn> metrics;
  std::optional<std::size_t> status;
  std::optional<std::size_t> reason;
};

std::vector<std::size_t> parameter_columns(const ReplaySpec& spec, const std::vector<std::string>& parameters,
                                           const Source& source) {
  for (const auto& [parameter, column] : spec.columns) {
    if (std::find(parameters.begin(), parameters.end(), parameter) != parameters.end()) continue;
    throw UserError(fmt::format("runner's 'columns' maps '{}', which is not a parameter of the space", parameter),
                    suggestion(parameter, parameters));
  }
  std::vector<std::size_t> columns;
  for (const std::string& parameter : parameters) {
    std::string column = parameter;
    for (const auto& [name, other] : spec.columns) {
      if (name == parameter) column = other.name;
    }
    const bool mapped = column != parameter;
    const std::string hint = fmt::format("for parameter '{}'; map it with runner's 'columns'", parameter);
    columns.push_back(source.column(column, mapped ? fmt::format("for parameter '{}'", parameter) : hint));
  }
  return columns;
}

Columns find_columns(const ReplaySpec& spec, const std::vector<std::string>& parameters, const Source& source) {
  Columns columns;
  for (const auto& [column, value] : spec.where) {
    columns.where.push_back({source.column(column, "runner's 'where'"), spelling_of_field(trimmed(value))});
  }
  columns.parameters = parameter_columns(spec, parameters, source);
  columns.value = {"", source.column(spec.value.name, "runner's 'value'"), spec.value.times};
  for (const auto& [metric, column] : spec.metrics) {
    columns.metrics.push_back({metric, source.column(column.name, "runner's 'metrics'"), column.times});
  }
  if (!spec.status_column.empty()) columns.status = source.column(spec.status_column, "runner's 'status'");
  if (!spec.reason_column.empty()) columns.reason = source.column(spec.reason_column, "runner's 'reason'");
  return columns;
}

enum class RowStatus { kOk, kOutOfMemory, kBounded, kFailed };

// Recognises the words of other programs: exit codes, the states of DeepSpeed and Ray Tune, pandas dumps.
RowStatus status_of(const std::string& field) {
  const std::string word = lower_case(field);
  for (const char* ok : {"ok", "success", "completed", "0"}) {
    if (word == ok) return RowStatus::kOk;
  }
  for (const char* oom : {"oom", "out_of_memory", "out of memory"}) {
    if (word == oom) return RowStatus::kOutOfMemory;
  }
  return word == "bounded" ? RowStatus::kBounded : RowStatus::kFailed;
}

/// Sorts the rows into groups.
class RowReader {
 public:
  RowReader(const Source& source, const Columns& columns, bool maximize)
      : source_(source), columns_(columns), maximize_(maximize) {}

  bool is_wanted(std::size_t row) const {
    return std::all_of(columns_.where.begin(), columns_.where.end(), [&](const Wanted& wanted) {
      return spelling_of_field(source_.field(row, wanted.column)) == wanted.spelling;
    });
  }

  // A trial that was interrupted, or that the machine could not run, says nothing about its configuration.
  bool is_result(std::size_t row) const {
    const std::string reason = reason_of(row);
    return reason != trial::to_string(trial::FailureReason::kInterrupted) &&
           reason != trial::to_string(trial::FailureReason::kEnvironment) &&
           reason != trial::to_string(trial::FailureReason::kLost);
  }

  void add(std::size_t row, ReplayGroup& group) const {
    const std::string status = columns_.status ? source_.field(row, *columns_.status) : "ok";
    switch (status_of(status)) {
      case RowStatus::kOk:
        group.rows.push_back({value(row), metrics(row)});
        return;
      case RowStatus::kOutOfMemory:
        if (!group.memory) group.memory = trial::OutOfMemory{std::nullopt, reason_of(row) == "predicted"};
        return;
      case RowStatus::kBounded:
        add_bound(value(row), group);
        return;
      case RowStatus::kFailed:
        if (!group.failure) group.failure = failure(row, status);
        return;
    }
  }

 private:
  std::string reason_of(std::size_t row) const {
    return columns_.reason ? lower_case(source_.field(row, *columns_.reason)) : "";
  }

  double value(std::size_t row) const {
    const auto number = number_in(source_.field(row, columns_.value.column), columns_.value.times);
    if (!number) source_.refuse(row, columns_.value.column, "fix it, or name a status column that marks failures");
    return *number;
  }

  // If a field has no number, the row lacks that metric.
  std::map<std::string, double> metrics(std::size_t row) const {
    std::map<std::string, double> found;
    for (const NumberColumn& column : columns_.metrics) {
      const std::string field = source_.field(row, column.column);
      const std::string word = lower_case(field);
      if (word.empty() || word == "nan" || word == "none" || word == "null" || word == "na") continue;
      const auto number = number_in(field, column.times);
      if (!number) source_.refuse(row, column.column, "fix it, or leave the field empty");
      found[column.metric] = *number;
    }
    return found;
  }

  void add_bound(double at_best, ReplayGroup& group) const {
    if (group.bound && (maximize_ ? group.bound->at_best <= at_best : group.bound->at_best >= at_best)) return;
    group.bound = trial::Bounded{at_best};
  }

  trial::Failed failure(std::size_t row, const std::string& status) const {
    std::string text = "the table says " + (status.empty() ? "nothing" : status);
    const std::string reason = columns_.reason ? source_.field(row, *columns_.reason) : "";
    if (!reason.empty()) text += ": " + reason;
    return {trial::failure_reason_from(lower_case(reason)), 0, text};
  }

  const Source& source_;
  const Columns& columns_;
  bool maximize_;
};

[[noreturn]] void fail_empty(const ReplaySpec& spec, const Source& source) {
  std::vector<std::string> conditions;
  std::vector<std::string> hints;
  for (const auto& [column, value] : spec.where) {
    conditions.push_back(fmt::format("{} = {}", column, value));
    const std::size_t at = source.column(column, "runner's 'where'");
    std::set<std::string> present;
    for (const auto& row : source.table.rows) present.insert(row[at]);
    constexpr std::size_t kShown = 8;
    std::vector<std::string> shown(
        present.begin(), std::next(present.begin(), static_cast<std::ptrdiff_t>(std::min(kShown, present.size()))));
    if (present.size() > kShown) shown.emplace_back("...");
    hints.push_back(fmt::format("column '{}' has {}", column, join(shown, ", ")));
  }
  if (source.table.rows.empty()) throw UserError(source.name + ": line 1: no row follows the header", "add rows");
  if (conditions.empty()) throw UserError(source.name + ": every row was interrupted", "add rows of finished trials");
  throw UserError(fmt::format("{}: no row has {}", source.name, join(conditions, " and ")), join(hints, "; "));
}

}  // namespace

ReplayGroups read_replay_groups(const ReplaySpec& spec, const std::vector<std::string>& parameters, bool maximize) {
  const Source source(spec.table);
  const Columns columns = find_columns(spec, parameters, source);
  const RowReader reader(source, columns, maximize);
  const ReplayKeys keys(spec, parameters);
  ReplayGroups groups;
  for (std::size_t row = 0; row < source.table.rows.size(); ++row) {
    if (!reader.is_wanted(row) || !reader.is_result(row)) continue;
    std::vector<std::string> fields;
    for (const std::size_t column : columns.parameters) fields.push_back(source.field(row, column));
    const std::string key = keys.of(fields);
    ReplayGroup& group = groups[key];
    if (group.fields.empty()) group.fields = std::move(fields);
    reader.add(row, group);
  }
  if (groups.empty()) fail_empty(spec, source);
  return groups;
}

}  // namespace krigtune::runner
