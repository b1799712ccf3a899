#include "krigtune/runner/replay.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "registry.h"
#include "replay_rows.h"

namespace krigtune {
namespace {

constexpr const char* kBest = "best";
constexpr const char* kMedian = "median";
constexpr const char* kCycle = "cycle";

std::vector<std::pair<std::string, std::string>> read_pairs(JsonObject& block, const char* key, bool texts_only) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (block.find(key) == nullptr) return pairs;
  const JsonObject object = block.object(key);
  for (const auto& [name, value] : object.value().items()) {
    if (texts_only && !value.is_string()) object.fail(name, "a column's name was expected", "write \"...\"");
    pairs.emplace_back(name, to_string(value_from_json(value, block.source() + ": " + object.pointer(name))));
  }
  return pairs;
}

void read_replay(JsonObject& block, const std::filesystem::path& base_dir, RunnerSpec& spec) {
  block.require("table");
  block.require("value");
  const std::filesystem::path table = block.text("table", "");
  if (table.empty()) block.fail("table", "is empty", "name a CSV file");
  spec.replay.table = std::filesystem::absolute(base_dir / table).lexically_normal();
  spec.replay.where = read_pairs(block, "where", false);
  for (auto& [parameter, column] : read_pairs(block, "columns", true)) {
    spec.replay.columns.push_back({parameter, {column, 1.0}});
  }
  spec.replay.value.name = block.text("value", "");
  spec.replay.status_column = block.text("status", "");
  const std::string repeats = block.text("repeats", kBest);
  if (repeats == kBest) {
    spec.replay.repeats = ReplaySpec::Repeats::kBest;
  } else if (repeats == kMedian) {
    spec.replay.repeats = ReplaySpec::Repeats::kMedian;
  } else if (repeats == kCycle) {
    spec.replay.repeats = ReplaySpec::Repeats::kCycle;
  } else {
    block.fail("repeats", fmt::format("'{}' is not known", repeats), "known: best, median, cycle");
  }
}

void write_replay(const RunnerSpec& spec, Json& block) {
  block["table"] = spec.replay.table.string();
  block["where"] = Json::object();
  for (const auto& [column, value] : spec.replay.where) block["where"][column] = to_json(value_from_text(value));
  block["columns"] = Json::object();
  for (const auto& [parameter, column] : spec.replay.columns) block["columns"][parameter] = column.name;
  block["value"] = spec.replay.value.name;
  block["status"] = spec.replay.status_column.empty() ? Json(nullptr) : Json(spec.replay.status_column);
  block["repeats"] = spec.replay.repeats == ReplaySpec::Repeats::kBest     ? kBest
                     : spec.replay.repeats == ReplaySpec::Repeats::kMedian ? kMedian
                                                                           : kCycle;
}

class ReplayRunner final : public Runner {
 public:
  explicit ReplayRunner(const ReplayTable& table) : table_(table) {}

  Outcome run(const Configuration& configuration, const std::filesystem::path& /*trial_dir*/) override {
    if (!table_.contains(configuration)) {
      return Failed{FailureReason::kInvalid, 0, "the table has no row for " + configuration.text()};
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
  ReplayGroups groups;

  Outcome merged(const ReplayGroup& group, int measurement) const {
    if (group.values.empty()) {
      if (group.out_of_memory) return OutOfMemory{};
      return Failed{FailureReason::kCrash, 0, "the table says " + group.failure};
    }
    const std::size_t turn = static_cast<std::size_t>(measurement) % group.values.size();
    const double value = repeats == ReplaySpec::Repeats::kCycle ? group.values[turn] : *merged_value(group);
    return Measured{{{metric, value}}, 0.0, std::nullopt};
  }

  // One number for all rows of a configuration.
  std::optional<double> merged_value(const ReplayGroup& group) const {
    if (group.values.empty()) return std::nullopt;
    if (repeats == ReplaySpec::Repeats::kBest) return best_of(group.values, maximize);
    return median_of(group.values);
  }
};

ReplayTable::ReplayTable(const RunnerSpec& spec, const std::vector<std::string>& parameters, const std::string& metric,
                         bool maximize)
    : impl_(std::make_unique<Impl>(
          Impl{parameters, metric, spec.replay.repeats, maximize, read_replay_groups(spec, parameters)})) {}

ReplayTable::~ReplayTable() = default;

bool ReplayTable::contains(const Configuration& configuration) const {
  return impl_->groups.count(replay_key(configuration, impl_->parameters)) > 0;
}

Outcome ReplayTable::look_up(const Configuration& configuration, int measurement) const {
  const auto found = impl_->groups.find(replay_key(configuration, impl_->parameters));
  if (found == impl_->groups.end()) throw std::logic_error("look_up of a configuration that is not in the table");
  return impl_->merged(found->second, measurement);
}

std::optional<double> ReplayTable::optimum(const Space& space) const {
  std::vector<double> values;
  space.for_each([&](const Configuration& configuration) {
    const auto found = impl_->groups.find(replay_key(configuration, impl_->parameters));
    const std::optional<double> value =
        found == impl_->groups.end() ? std::nullopt : impl_->merged_value(found->second);
    if (value) values.push_back(*value);
    return true;
  });
  if (values.empty()) return std::nullopt;
  return best_of(values, impl_->maximize);
}

std::size_t ReplayTable::size() const { return impl_->groups.size(); }

RunnerEntry replay_runner_entry() { return {RunnerKind::kReplay, "replay", read_replay, write_replay}; }

std::unique_ptr<Runner> make_replay_runner(const ReplayTable& table) { return std::make_unique<ReplayRunner>(table); }

}  // namespace krigtune
