#include "krigtune/report/fields.h"

#include <fmt/format.h>

#include "krigtune/core/text.h"

namespace krigtune {
namespace {

const Measured* measured(const Trial& trial) {
  return trial.outcome ? std::get_if<Measured>(&*trial.outcome) : nullptr;
}

}  // namespace

std::string field(std::optional<double> number) { return number ? number_text(*number) : ""; }

std::string field(std::optional<Bytes> bytes) { return bytes ? fmt::format("{}", bytes->count) : ""; }

std::string field(std::optional<bool> flag) { return flag ? (*flag ? "true" : "false") : ""; }

std::vector<std::string> fields(const Configuration& configuration, const std::vector<std::string>& columns) {
  std::vector<std::string> row;
  row.reserve(columns.size());
  for (const std::string& column : columns) {
    const Value* value = configuration.find(column);
    row.push_back(value == nullptr ? "" : to_string(*value));
  }
  return row;
}

void append(std::vector<std::string>& row, const std::vector<std::string>& more) {
  row.insert(row.end(), more.begin(), more.end());
}

std::optional<double> metric_of(const Trial& trial, const std::string& name) {
  const Measured* result = measured(trial);
  if (result == nullptr) return std::nullopt;
  const auto found = result->metrics.find(name);
  return found == result->metrics.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Bytes> peak_memory_of(const Trial& trial) {
  const Measured* result = measured(trial);
  return result == nullptr ? std::nullopt : result->peak_memory;
}

}  // namespace krigtune
