#include "forecast/shared_steps.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "forecast/archetypes.h"
#include "schedule/knobs.h"
#include "session/memory_filter.h"
#include "space/well_known.h"

namespace krigtune::forecast {
namespace {

constexpr SharedSteps::Number kUnnumbered = std::numeric_limits<SharedSteps::Number>::max();

// Returns what the parameter means or, without a role, its own name; empty if no step has it.
std::string known_name(const Roles& roles, const std::string& name) {
  const std::vector<std::string>& planned = schedule::planned_parameters();
  const auto role = roles.find(name);
  const std::string& known = role != roles.end() ? role->second : name;
  const auto is_planned = [&](std::string_view one) {
    return std::find(planned.begin(), planned.end(), one) != planned.end();
  };
  return is_planned(known) || is_planned(space::well_known_name(known)) ? known : std::string();
}

}  // namespace

SharedSteps::SharedSteps(std::vector<Roles> meanings, bool is_told) : is_told_(is_told) {
  for (Roles& roles : meanings) meanings_.push_back({std::move(roles), {}, {}});
}

std::vector<std::vector<SharedSteps::Number>> SharedSteps::of(
    const std::vector<std::size_t>& meanings, const std::vector<space::Configuration>& configurations) const {
  const std::lock_guard lock(mutex_);
  std::vector<Number> numbers;
  numbers.reserve(configurations.size());
  for (const space::Configuration& one : configurations) {
    numbers.push_back(configurations_.emplace(one.text(), static_cast<Number>(configurations_.size())).first->second);
  }
  std::vector<std::vector<Number>> steps;
  for (const std::size_t index : meanings) {
    Meaning& meaning = meanings_[index];
    if (meaning.numbers.size() < configurations_.size()) meaning.numbers.resize(configurations_.size(), kUnnumbered);
    std::vector<Number>& row = steps.emplace_back();
    row.reserve(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      Number& step = meaning.numbers[numbers[i]];
      if (step == kUnnumbered) step = number_of(meaning, configurations[i]);
      row.push_back(step);
    }
  }
  return steps;
}

const std::string& SharedSteps::name_in_step(Meaning& meaning, const std::string& name) const {
  const auto known = meaning.names.find(name);
  if (known != meaning.names.end()) return known->second;
  return meaning.names.emplace(name, known_name(meaning.roles, name)).first->second;
}

SharedSteps::Number SharedSteps::number_of(Meaning& meaning, const space::Configuration& configuration) const {
  std::vector<std::string> parts;  // in an order that does not depend on what they are called
  for (const auto& [name, value] : configuration) {
    const std::string& known = name_in_step(meaning, name);
    if (!known.empty()) parts.push_back(known + "=" + space::to_string(value) + "\n");
  }
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& part : parts) text += part;
  return steps_.emplace(std::move(text), static_cast<Number>(steps_.size())).first->second;
}

space::Configuration SharedSteps::step(std::size_t meaning, const space::Configuration& configuration) const {
  return is_told_ ? session::modelled_part(configuration) : as_training_step(configuration, meanings_[meaning].roles);
}

std::size_t SharedSteps::size() const {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

}  // namespace krigtune::forecast
