#include "replay_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "krigtune/core/csv.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string spelling(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? number_text(as_number(value)) : *text;
}

// A field as other programs write it: Python's True and False are booleans too.
std::string spelling_of_field(const std::string& field) {
  const std::string word = lower(field);
  return spelling(value_from_text(word == "true" || word == "false" ? word : field));
}

// A table with its name, for errors.
struct Source {
  std::string name;
  CsvTable table;

  std::size_t column(const std::string& wanted, const std::string& what) const {
    const int found = table.column(wanted);
    if (found >= 0) return static_cast<std::size_t>(found);
    throw UserError(fmt::format("{}: line 1: there is no column '{}' ({})", name, wanted, what),
                    suggestion(wanted, table.header));
  }
};

struct Wanted {
  std::size_t column;
  std::string spelling;
};

std::vector<Wanted> read_conditions(const RunnerSpec& spec, const Source& source) {
  std::vector<Wanted> conditions;
  for (const auto& [column, value] : spec.replay.where) {
    conditions.push_back({source.column(column, "runner's 'where'"), spelling_of_field(value)});
  }
  return conditions;
}

std::vector<std::size_t> parameter_columns(const RunnerSpec& spec, const std::vector<std::string>& parameters,
                                           const Source& source) {
  for (const auto& [parameter, column] : spec.replay.columns) {
    if (std::find(parameters.begin(), parameters.end(), parameter) != parameters.end()) continue;
    throw UserError(fmt::format("runner's 'columns' maps '{}', which is no parameter of the space", parameter),
                    suggestion(parameter, parameters));
  }
  std::vector<std::size_t> columns;
  for (const std::string& parameter : parameters) {
    std::string column = parameter;
    for (const auto& [name, other] : spec.replay.columns) {
      if (name == parameter) column = other.name;
    }
    const bool mapped = column != parameter;
    const std::string hint = fmt::format("for parameter '{}'; map it with runner's 'columns'", parameter);
    columns.push_back(source.column(column, mapped ? fmt::format("for parameter '{}'", parameter) : hint));
  }
  return columns;
}

double read_value(const Source& source, std::size_t row, std::size_t column) {
  const std::string& field = source.table.rows[row][column];
  const Value value = value_from_text(field);
  if (is_number(value) && std::isfinite(as_number(value))) return as_number(value);
  throw UserError(fmt::format("{}: line {}, column '{}': '{}' is no number", source.name, source.table.lines[row],
                              source.table.header[column], field),
                  "mend it, or name a status column that marks failures");
}

void add_row(ReplayGroup& group, const std::string& status, const std::function<double()>& value) {
  if (status == "ok") {
    group.values.push_back(value());
  } else if (status == "oom") {
    group.out_of_memory = true;
  } else if (group.failure.empty()) {
    group.failure = status.empty() ? "nothing" : status;
  }
}

[[noreturn]] void fail_empty(const RunnerSpec& spec, const Source& source) {
  std::vector<std::string> conditions;
  std::vector<std::string> hints;
  for (const auto& [column, value] : spec.replay.where) {
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
  throw UserError(fmt::format("{}: no row has {}", source.name, join(conditions, " and ")), join(hints, "; "));
}

}  // namespace

ReplayGroups read_replay_groups(const RunnerSpec& spec, const std::vector<std::string>& parameters) {
  const Source source{spec.replay.table.string(), parse_csv(read_text(spec.replay.table), spec.replay.table.string())};
  const std::vector<Wanted> conditions = read_conditions(spec, source);
  const std::vector<std::size_t> columns = parameter_columns(spec, parameters, source);
  const std::size_t value_column = source.column(spec.replay.value.name, "runner's 'value'");
  const bool has_status = !spec.replay.status_column.empty();
  const std::size_t status_column = has_status ? source.column(spec.replay.status_column, "runner's 'status'") : 0;
  ReplayGroups groups;
  for (std::size_t row = 0; row < source.table.rows.size(); ++row) {
    const std::vector<std::string>& fields = source.table.rows[row];
    const auto holds = [&](const Wanted& wanted) {
      return spelling_of_field(fields[wanted.column]) == wanted.spelling;
    };
    if (!std::all_of(conditions.begin(), conditions.end(), holds)) continue;
    std::vector<std::string> key;
    for (const std::size_t column : columns) key.push_back(spelling_of_field(fields[column]));
    const std::string status = has_status ? lower(fields[status_column]) : "ok";
    add_row(groups[key], status, [&] { return read_value(source, row, value_column); });
  }
  if (groups.empty()) fail_empty(spec, source);
  return groups;
}

std::vector<std::string> replay_key(const Configuration& configuration, const std::vector<std::string>& parameters) {
  std::vector<std::string> key;
  for (const std::string& parameter : parameters) {
    const Value* value = configuration.find(parameter);
    key.push_back(value == nullptr ? "" : spelling(*value));
  }
  return key;
}

double best_of(const std::vector<double>& values, bool maximize) {
  return maximize ? *std::max_element(values.begin(), values.end()) : *std::min_element(values.begin(), values.end());
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace krigtune
