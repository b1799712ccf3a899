// A measured table replaces a machine. Several rows of one configuration are merged:
//
//   best     the row with the best value, with all its metrics
//   median   of the value and of each metric separately; with at least three rows, its standard error is the asymptotic
//            standard error of the median of n normal values with the rows' standard deviation s, s sqrt(pi / 2) /
//            sqrt(n) (Cramer 1946, Mathematical Methods of Statistics, 28.5)
//   cycle    the n-th measurement uses the n-th row
#include "runner/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <stdexcept>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "runner/replay_rows.h"

namespace krigtune::runner {
namespace {

using Rows = std::vector<ReplayRow>;

constexpr const char* kValueSem = "value_sem";
constexpr const char* kPeakMemory = "peak_memory_bytes";

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double best_of(const std::vector<double>& values, bool maximize) {
  return maximize ? *std::max_element(values.begin(), values.end()) : *std::min_element(values.begin(), values.end());
}

std::vector<double> objective_values(const Rows& rows) {
  std::vector<double> values;
  for (const ReplayRow& row : rows) values.push_back(row.value);
  return values;
}

double normal_standard_error_of_median(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < 3) return 0.0;
  double mean = 0.0;
  for (const double value : values) mean += value / count;
  double variance = 0.0;
  for (const double value : values) variance += (value - mean) * (value - mean) / (count - 1.0);
  return std::sqrt(0.5 * std::numbers::pi * variance / count);
}

ReplayRow median_row(const Rows& rows) {
  std::map<std::string, std::vector<double>> metrics;
  for (const ReplayRow& row : rows) {
    for (const auto& [name, number] : row.metrics) metrics[name].push_back(number);
  }
  ReplayRow median{median_of(objective_values(rows))};
  for (auto& [name, numbers] : metrics) median.metrics[name] = median_of(std::move(numbers));
  const double sem = normal_standard_error_of_median(objective_values(rows));
  if (sem > 0.0) median.metrics.emplace(kValueSem, sem);
  return median;
}

ReplayRow best_row(const Rows& rows, bool maximize) {
  const auto worse = [&](const ReplayRow& a, const ReplayRow& b) {
    return maximize ? a.value < b.value : a.value > b.value;
  };
  return *std::max_element(rows.begin(), rows.end(), worse);
}

trial::Measured measured_from_row(ReplayRow row, const std::string& metric) {
  trial::Measured outcome;
  outcome.metrics = std::move(row.metrics);
  if (const auto sem = outcome.metrics.extract(kValueSem)) outcome.value_sem = std::max(0.0, sem.mapped());
  if (const auto bytes = outcome.metrics.extract(kPeakMemory)) {
    constexpr double kMost = 1e18;
    outcome.peak_memory = Bytes{std::llround(std::clamp(bytes.mapped(), 0.0, kMost))};
  }
  outcome.metrics[metric] = row.value;
  return outcome;
}

/// Converts rows to configurations as the space represents them.
class RowConfigurations {
 public:
  RowConfigurations(const space::Space& space, const std::vector<std::string>& parameters)
      : space_(space), parameters_(parameters) {
    for (const space::Parameter& parameter : space.parameters()) {
      for (const space::Value& value : parameter.values) {
        values_[parameter.name].emplace(spelling_of_field(space::to_string(value)), value);
      }
    }
  }

  /// Empty if the row is not a configuration of the space.
  std::optional<space::Configuration> of(const ReplayGroup& group) const {
    space::Configuration configuration;
    for (const space::Parameter& parameter : space_.parameters()) {
      const auto at = std::find(parameters_.begin(), parameters_.end(), parameter.name);
      if (at == parameters_.end()) return std::nullopt;
      const std::string& field = group.fields[static_cast<std::size_t>(at - parameters_.begin())];
      if (field.empty()) continue;  // the parameter does not exist in this configuration
      const std::optional<space::Value> value = value_of(parameter, field);
      if (!value) return std::nullopt;
      configuration.set(parameter.name, *value);
    }
    if (space_.complete(configuration) != space::Exclusion::kNone || !space_.contains(configuration))
      return std::nullopt;
    return configuration;
  }

 private:
  std::optional<space::Value> value_of(const space::Parameter& parameter, const std::string& field) const {
    if (parameter.continuous()) return space::value_from_text(field);
    const auto& spelled = values_.at(parameter.name);
    const auto found = spelled.find(spelling_of_field(field));
    return found == spelled.end() ? std::nullopt : std::optional(found->second);
  }

  const space::Space& space_;
  const std::vector<std::string>& parameters_;
  std::map<std::string, std::map<std::string, space::Value>> values_;
};

class ReplayRunner final : public trial::Runner {
 public:
  explicit ReplayRunner(const ReplayTable& table) : table_(table) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& /*context*/) override {
    if (!table_.contains(configuration)) {
      return trial::Failed{trial::FailureReason::kInvalid, 0, "the table has no row for " + configuration.text()};
    }
    return table_.look_up(configuration, measurements_[configuration.text()]++);
  }

 private:
  const ReplayTable& table_;
  std::map<std::string, int> measurements_;
};

}  // namespace

struct ReplayTable::Impl {
  std::vector<std::string> parameters;
  std::string metric;
  ReplaySpec::Repeats repeats;
  bool maximize;
  ReplayKeys keys;
  ReplayGroups groups;

  // The outcome is ok if any row is ok.
  trial::Outcome merged(const ReplayGroup& group, int measurement) const {
    if (group.rows.empty()) {
      if (group.bound) return *group.bound;
      if (group.memory) return *group.memory;
      return *group.failure;
    }
    switch (repeats) {
      case ReplaySpec::Repeats::kBest:
        return measured_from_row(best_row(group.rows, maximize), metric);
      case ReplaySpec::Repeats::kMedian:
        return measured_from_row(median_row(group.rows), metric);
      case ReplaySpec::Repeats::kCycle:
        break;
    }
    return measured_from_row(group.rows[static_cast<std::size_t>(measurement) % group.rows.size()], metric);
  }

  // Returns one number for all rows of a configuration.
  std::optional<double> merged_value(const ReplayGroup& group) const {
    if (group.rows.empty()) return std::nullopt;
    if (repeats == ReplaySpec::Repeats::kBest) return best_of(objective_values(group.rows), maximize);
    return median_of(objective_values(group.rows));
  }
};

ReplayTable::ReplayTable(const ReplaySpec& spec, const std::vector<std::string>& parameters, const std::string& metric,
                         bool maximize)
    : impl_(std::make_unique<Impl>(Impl{parameters, metric, spec.repeats, maximize, ReplayKeys(spec, parameters),
                                        read_replay_groups(spec, parameters, maximize)})) {
  for (const auto& [name, column] : spec.metrics) {
    if (name != metric) continue;
    throw UserError(fmt::format("runner's 'metrics' names '{}', the objective, whose column is 'value'", name),
                    "remove it there");
  }
}

ReplayTable::~ReplayTable() = default;

bool ReplayTable::contains(const space::Configuration& configuration) const {
  return impl_->groups.count(impl_->keys.of(configuration)) > 0;
}

trial::Outcome ReplayTable::look_up(const space::Configuration& configuration, int measurement) const {
  const auto found = impl_->groups.find(impl_->keys.of(configuration));
  if (found == impl_->groups.end()) throw std::logic_error("look_up of a configuration that is not in the table");
  return impl_->merged(found->second, measurement);
}

int ReplayTable::measurements(const space::Configuration& configuration) const {
  const auto found = impl_->groups.find(impl_->keys.of(configuration));
  if (found == impl_->groups.end()) return 0;
  const auto rows = static_cast<int>(found->second.rows.size());
  return impl_->repeats == ReplaySpec::Repeats::kCycle ? std::max(rows, 1) : 1;
}

std::optional<double> ReplayTable::value_of(const space::Configuration& configuration) const {
  const auto found = impl_->groups.find(impl_->keys.of(configuration));
  return found == impl_->groups.end() ? std::nullopt : impl_->merged_value(found->second);
}

std::optional<double> ReplayTable::optimum(const space::Space& space, const Worth& worth) const {
  const RowConfigurations configurations(space, impl_->parameters);
  std::vector<double> values;
  // Iterates over the rows, because the space may be far larger, or continuous.
  for (const auto& [key, group] : impl_->groups) {
    const std::optional<double> value = impl_->merged_value(group);
    if (!value) continue;
    const std::optional<space::Configuration> configuration = configurations.of(group);
    if (!configuration || impl_->keys.of(*configuration) != key) continue;
    values.push_back(worth ? worth(*configuration, *value) : *value);
  }
  if (values.empty()) return std::nullopt;
  return best_of(values, impl_->maximize);
}

std::size_t ReplayTable::size() const { return impl_->groups.size(); }

std::unique_ptr<trial::Runner> make_replay_runner(const ReplayTable& table) {
  return std::make_unique<ReplayRunner>(table);
}

namespace {

constexpr EnumWords<ReplaySpec::Repeats, 3> kRepeatsWords = {{{"best", ReplaySpec::Repeats::kBest},
                                                              {"median", ReplaySpec::Repeats::kMedian},
                                                              {"cycle", ReplaySpec::Repeats::kCycle}}};

Block<TableColumn> column_block() {
  Codec<std::string> name = text();
  name.schema = schema::not_empty(name.schema);
  Block<TableColumn> block("a column whose numbers are in another unit");
  block.key("column", &TableColumn::name, name, "the column's name").required();
  block.key("times", &TableColumn::times, number(above(0)), "what makes our unit of its numbers");
  return block;
}

Json column_schema() {
  return schema::either({schema::not_empty(schema::text("the column's name")), column_block().schema()}, "the column");
}

TableColumn column_of(JsonObject& block, const std::string& key) {
  const Json& json = block.require(key);
  TableColumn column;
  if (json.is_string()) {
    column.name = json.get<std::string>();
  } else if (json.is_object()) {
    JsonObject object = block.object(key);
    column_block().read(object, column);
  } else {
    block.fail(key, "a column was expected", R"(write "name", or {"column": "name", "times": 1e6})");
  }
  if (column.name.empty()) block.fail(key, "names no column", "write its name");
  return column;
}

std::vector<std::pair<std::string, TableColumn>> columns_of(JsonObject& block, const char* key) {
  std::vector<std::pair<std::string, TableColumn>> columns;
  if (block.find(key) == nullptr) return columns;
  JsonObject object = block.object(key);
  for (const auto& item : object.value().items()) columns.emplace_back(item.key(), column_of(object, item.key()));
  return columns;
}

std::vector<std::pair<std::string, std::string>> conditions_of(JsonObject& block) {
  std::vector<std::pair<std::string, std::string>> conditions;
  if (block.find("where") == nullptr) return conditions;
  const JsonObject object = block.object("where");
  for (const auto& [name, value] : object.value().items()) {
    conditions.emplace_back(
        name, space::to_string(space::value_from_json(value, block.source() + ": " + object.pointer(name))));
  }
  return conditions;
}

Json column_json(const TableColumn& column) {
  if (column.times == 1.0) return column.name;
  return {{"column", column.name}, {"times", json_number(column.times)}};
}

Json columns_json(const std::vector<std::pair<std::string, TableColumn>>& columns) {
  Json json = Json::object();
  for (const auto& [name, column] : columns) json[name] = column_json(column);
  return json;
}

std::filesystem::path table_of(JsonObject& block, const std::filesystem::path& base_dir) {
  const std::filesystem::path table = block.text("table", "");
  if (table.empty()) block.fail("table", "is empty", "name a CSV file");
  return std::filesystem::absolute(base_dir / table).lexically_normal();
}

Json conditions_json(const std::vector<std::pair<std::string, std::string>>& conditions) {
  Json json = Json::object();
  for (const auto& [column, value] : conditions) json[column] = space::to_json(space::value_from_text(value));
  return json;
}

Block<ReplaySpec> replay_block(const std::filesystem::path& base_dir) {
  Block<ReplaySpec> block("Trials are looked up in a table of measurements");
  block
      .custom(
          "table", schema::not_empty(schema::text()), "a CSV file, relative to the session",
          [base_dir](JsonObject& object, ReplaySpec& spec) { spec.table = table_of(object, base_dir); },
          [](const ReplaySpec& spec) { return Json(spec.table.string()); })
      .required();
  block.custom(
      "where", schema::map(schema::scalar()), "selects rows: column -> value",
      [](JsonObject& object, ReplaySpec& spec) { spec.where = conditions_of(object); },
      [](const ReplaySpec& spec) { return conditions_json(spec.where); });
  block.custom(
      "columns", schema::map(column_schema()), "parameters whose column has another name or unit",
      [](JsonObject& object, ReplaySpec& spec) { spec.columns = columns_of(object, "columns"); },
      [](const ReplaySpec& spec) { return columns_json(spec.columns); });
  block
      .custom(
          "value", column_schema(), "the column of the objective",
          [](JsonObject& object, ReplaySpec& spec) { spec.value = column_of(object, "value"); },
          [](const ReplaySpec& spec) { return column_json(spec.value); })
      .required();
  block.custom(
      "metrics", schema::map(column_schema()), "columns of further metrics",
      [](JsonObject& object, ReplaySpec& spec) { spec.metrics = columns_of(object, "metrics"); },
      [](const ReplaySpec& spec) { return columns_json(spec.metrics); });
  block.key("status", &ReplaySpec::status_column, text_or_null(),
            "the column of the status (default: every row is ok)");
  block.key("reason", &ReplaySpec::reason_column, text_or_null(), "the column of the reason of a failure");
  block.key("repeats", &ReplaySpec::repeats, one_of(kRepeatsWords),
            "which value counts if a configuration has several rows");
  return block;
}

}  // namespace

std::optional<std::vector<std::string>> ReplaySpec::measured_names() const {
  std::vector<std::string> names;
  for (const auto& [name, column] : metrics) names.push_back(name);
  return names;
}

trial::RunnerEntry<ReplaySpec> ReplaySpec::entry() {
  return {{.name = "replay",
           .reads_config = false,
           .has_our_units = false,
           .words = {.trials_are = "looked up",
                     .about_trials = "The trials were looked up in a table.",
                     .how_to_measure = R"(add "metrics": {{"{}": "COLUMN"}} to the runner, with the table's column)",
                     .after_failure = "widen \"space\" or \"where\" of the session"}},
          replay_block,
          [](const ReplaySpec& /*spec*/, const trial::RunnerJob& job) { return make_replay_runner(*job.table); }};
}

namespace {

constexpr char kSeparator = '\x1f';  // ASCII's unit separator

std::string spelling(const space::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? number_text(space::as_number(value)) : *text;
}

// Parses a field as other programs write it: Python's True and False are booleans too.
space::Value value_of_field(const std::string& field) {
  const bool boolean = field.size() >= 4 && field.size() <= 5 && (field[0] == 'T' || field[0] == 'F');
  const std::string word = boolean ? lower_case(field) : field;
  return space::value_from_text(word == "true" || word == "false" ? word : field);
}

std::string key_part(const space::Value& value, bool other_units) {
  return (other_units && space::is_number(value) ? number_text(rounded(space::as_number(value))) : spelling(value)) +
         kSeparator;
}

}  // namespace

// Does not use stod, which throws for subnormal numbers.
double rounded(double number) { return std::strtod(fmt::format("{:.12g}", number).c_str(), nullptr); }

std::string spelling_of_field(const std::string& field) { return spelling(value_of_field(field)); }

ReplayKeys::ReplayKeys(const ReplaySpec& spec, const std::vector<std::string>& parameters) {
  for (const std::string& parameter : parameters) {
    parts_.push_back({parameter, 1.0});
    for (const auto& [name, column] : spec.columns) {
      if (name == parameter) parts_.back().times = column.times;
    }
  }
}

std::string ReplayKeys::of(const space::Configuration& configuration) const {
  std::string key;
  for (const Part& part : parts_) {
    const space::Value* value = configuration.find(part.parameter);
    key += value == nullptr ? std::string(1, kSeparator) : key_part(*value, part.times != 1.0);
  }
  return key;
}

std::string ReplayKeys::of(std::vector<std::string>& fields) const {
  std::string key;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    space::Value value = value_of_field(fields[i]);
    const bool other_units = parts_[i].times != 1.0;
    if (other_units && space::is_number(value)) value = rounded(space::as_number(value) * parts_[i].times);
    fields[i] = space::to_string(value);
    key += key_part(value, other_units);
  }
  return key;
}

}  // namespace krigtune::runner
