// The session's block of the runner "replay".
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "registry.h"

namespace krigtune {
namespace {

using Repeats = ReplaySpec::Repeats;

constexpr std::array<std::pair<Repeats, const char*>, 3> kRepeats = {
    {{Repeats::kBest, "best"}, {Repeats::kMedian, "median"}, {Repeats::kCycle, "cycle"}}};

TableColumn column_of(JsonObject& block, const std::string& key) {
  const Json& json = block.require(key);
  TableColumn column;
  if (json.is_string()) {
    column.name = json.get<std::string>();
  } else if (json.is_object()) {
    JsonObject object = block.object(key);
    object.require("column");
    column.name = object.text("column", "");
    column.times = object.number("times", 1.0);
    object.finish();
    if (!(column.times > 0.0) || !std::isfinite(column.times)) {
      object.fail("times", fmt::format("{} is no factor", column.times), "give a number above 0");
    }
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
    conditions.emplace_back(name, to_string(value_from_json(value, block.source() + ": " + object.pointer(name))));
  }
  return conditions;
}

Repeats repeats_of(JsonObject& block) {
  const std::string word = block.text("repeats", "best");
  for (const auto& [repeats, name] : kRepeats) {
    if (word == name) return repeats;
  }
  block.fail("repeats", fmt::format("'{}' is not known", word), "known: best, median, cycle");
}

void read_replay(JsonObject& block, const std::filesystem::path& base_dir, RunnerSpec& spec) {
  block.require("table");
  const std::filesystem::path table = block.text("table", "");
  if (table.empty()) block.fail("table", "is empty", "name a CSV file");
  spec.replay.table = std::filesystem::absolute(base_dir / table).lexically_normal();
  spec.replay.where = conditions_of(block);
  spec.replay.columns = columns_of(block, "columns");
  spec.replay.value = column_of(block, "value");
  spec.replay.metrics = columns_of(block, "metrics");
  spec.replay.status_column = block.text("status", "");
  spec.replay.reason_column = block.text("reason", "");
  spec.replay.repeats = repeats_of(block);
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

Json name_or_null(const std::string& name) { return name.empty() ? Json(nullptr) : Json(name); }

void write_replay(const RunnerSpec& spec, Json& block) {
  block["table"] = spec.replay.table.string();
  block["where"] = Json::object();
  for (const auto& [column, value] : spec.replay.where) block["where"][column] = to_json(value_from_text(value));
  block["columns"] = columns_json(spec.replay.columns);
  block["value"] = column_json(spec.replay.value);
  block["metrics"] = columns_json(spec.replay.metrics);
  block["status"] = name_or_null(spec.replay.status_column);
  block["reason"] = name_or_null(spec.replay.reason_column);
  for (const auto& [repeats, name] : kRepeats) {
    if (spec.replay.repeats == repeats) block["repeats"] = name;
  }
}

}  // namespace

RunnerEntry replay_runner_entry() { return {RunnerKind::kReplay, "replay", read_replay, write_replay}; }

}  // namespace krigtune
