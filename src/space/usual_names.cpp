#include "space/usual_names.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "space/well_known.h"

namespace krigtune::space {
namespace {

struct StageWord {
  std::string_view word;
  std::int64_t stage;
};
// torch.distributed.fsdp.ShardingStrategy, and --data-parallel-sharding-strategy of Megatron-LM.
constexpr std::array<StageWord, 7> kStageWords = {{{"NO_SHARD", 0},
                                                   {"SHARD_GRAD_OP", 2},
                                                   {"FULL_SHARD", 3},
                                                   {"no_shard", 0},
                                                   {"optim", 1},
                                                   {"optim_grads", 2},
                                                   {"optim_grads_params", 3}}};

// Returns whether a parameter of this row may have the value.
bool may_have(const WellKnownParameter& known, const Value& value) {
  if (!is_number(known.default_value)) return value.index() == known.default_value.index();
  const std::optional<std::int64_t> number = integer_of(value);
  return number && *number >= known.smallest;
}

// Returns the parameter that each other name stands for.
const WellKnownParameter* known_by_other_name(std::string_view name) {
  static const auto kRows = [] {
    std::unordered_map<std::string_view, const WellKnownParameter*> rows;
    for (const WellKnownParameter& known : well_known_parameters()) {
      for (const OtherName& other : known.other_names) rows.emplace(other.name, &known);
    }
    return rows;
  }();
  const auto found = kRows.find(name);
  return found == kRows.end() ? nullptr : found->second;
}

// Returns the parameter that is read from this name in the configuration; nullptr if it is its own, or does not count.
const WellKnownParameter* read_from(const Configuration& configuration, std::string_view name) {
  const WellKnownParameter* known = known_by_other_name(name);
  if (known == nullptr || configuration.has(known->name)) return nullptr;
  const auto first = std::find_if(known->other_names.begin(), known->other_names.end(),
                                  [&](const OtherName& other) { return configuration.has(other.name); });
  return first->name == name ? known : nullptr;
}

}  // namespace

std::optional<Value> usual_value(std::string_view name, const Value& value) {
  const WellKnownParameter* known = find_well_known(name);
  if (known == nullptr) return std::nullopt;
  if (const bool* flag = std::get_if<bool>(&value); flag != nullptr && name == kCheckpointing) {
    return std::string(*flag ? "full" : "none");
  }
  if (const auto* word = std::get_if<std::string>(&value); word != nullptr && name == kZeroStage) {
    for (const StageWord& one : kStageWords) {
      if (one.word == *word) return one.stage;
    }
  }
  return may_have(*known, value) ? std::optional(value) : std::nullopt;
}

std::optional<Configuration> with_usual_names(const Configuration& configuration) {
  const auto is_other = [](const Configuration::Entry& entry) { return known_by_other_name(entry.first) != nullptr; };
  if (std::none_of(configuration.begin(), configuration.end(), is_other)) return std::nullopt;
  Configuration usual;
  for (const auto& [name, value] : configuration) {
    const WellKnownParameter* known = read_from(configuration, name);
    const std::optional<Value> read = known != nullptr ? usual_value(known->name, value) : std::nullopt;
    usual.set(read ? known->name : name, read.value_or(value));
  }
  return usual;
}

Configuration in_usual_names(const Configuration& configuration) {
  return with_usual_names(configuration).value_or(configuration);
}

const Parameter* find_usual(const std::vector<Parameter>& parameters, std::string_view known) {
  const auto named = [&](std::string_view name) -> const Parameter* {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& parameter) { return parameter.name == name; });
    return found == parameters.end() ? nullptr : &*found;
  };
  if (const Parameter* own = named(known)) return own;
  const WellKnownParameter* row = find_well_known(known);
  if (row == nullptr) return nullptr;
  for (const OtherName& other : row->other_names) {
    const Parameter* parameter = named(other.name);
    if (parameter == nullptr) continue;
    const bool are_the_same = std::all_of(parameter->values.begin(), parameter->values.end(),
                                          [&](const Value& value) { return may_have(*row, value); });
    return are_the_same && !parameter->continuous() ? parameter : nullptr;
  }
  return nullptr;
}

}  // namespace krigtune::space
