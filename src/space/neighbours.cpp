#include <algorithm>

#include "axis.h"
#include "canonical.h"
#include "krigtune/space/parameter_names.h"
#include "lattice.h"

namespace krigtune {
namespace {

// What a parameter has when a step elsewhere makes it exist.
Value entry_value(const Parameter& parameter) {
  return parameter.continuous() ? number_value(real_at(parameter, 0.5)) : parameter.values.front();
}

// A tenth of the axis up or down, as far as the range goes.
Value moved_real(const Parameter& parameter, const Value& value, int direction) {
  constexpr double kStep = 0.1;
  const RealRange& range = *parameter.range;
  const double inside = is_number(value) ? std::clamp(as_number(value), range.min, range.max) : range.min;
  return number_value(
      real_at(parameter, axis_position(parameter.scale, range.min, range.max, inside) + direction * kStep));
}

// Drops what does not exist any more, adds what now does, and puts all in the order of the session.
Configuration existing(const Configuration& moved, const std::vector<Parameter>& parameters, const Lattice& lattice) {
  Configuration present = moved;
  for (const std::size_t i : lattice.all().by_need) {
    const Parameter& parameter = parameters[i];
    if (!parameter.when) continue;
    const bool exists = lattice.vocabulary().holds(*parameter.when, present, false).value_or(false);
    if (!exists) present.erase(parameter.name);
    if (exists && !present.has(parameter.name)) present.set(parameter.name, entry_value(parameter));
  }
  Configuration ordered;
  for (const Parameter& parameter : parameters) {
    if (const Value* value = present.find(parameter.name)) ordered.set(parameter.name, *value);
  }
  return ordered;
}

}  // namespace

std::vector<Configuration> Space::neighbours(const Configuration& configuration) const {
  std::vector<Configuration> found;
  const auto try_value = [&](const Parameter& parameter, const Value& value) {
    const std::optional<Configuration> moved = moved_to(configuration, parameter, value);
    if (!moved || *moved == configuration) return false;
    if (std::find(found.begin(), found.end(), *moved) == found.end()) found.push_back(*moved);
    return true;
  };
  for (const Parameter& parameter : parameters_) {
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr && parameter.when) continue;  // it does not exist here
    if (parameter.continuous()) {
      for (const int direction : {-1, 1}) {
        try_value(parameter, value == nullptr ? entry_value(parameter) : moved_real(parameter, *value, direction));
      }
      continue;
    }
    const int index = value == nullptr ? -1 : parameter.index_of(*value);
    const int count = static_cast<int>(parameter.values.size());
    if (parameter.categorical || index < 0) {
      for (const Value& other : parameter.values) try_value(parameter, other);
      continue;
    }
    // One step is the way to the next value that makes another configuration: holes and dead values are leapt over.
    for (const int direction : {-1, 1}) {
      for (int i = index + direction; i >= 0 && i < count; i += direction) {
        if (try_value(parameter, parameter.values[static_cast<std::size_t>(i)])) break;
      }
    }
  }
  return found;
}

std::optional<Configuration> Space::moved_to(const Configuration& configuration, const Parameter& parameter,
                                             const Value& value) const {
  Configuration moved = configuration;
  moved.set(parameter.name, value);
  moved = existing(moved, with_fixed_, *lattice_);
  Exclusion reason = complete(moved);
  if (reason == Exclusion::kBatchMismatch) reason = keep_batch(moved, parameter.name);
  if (reason != Exclusion::kNone || !contains(moved)) return std::nullopt;
  return moved;
}

Exclusion Space::keep_batch(Configuration& moved, const std::string& moved_name) const {
  // Where both factors are tuned, one step of one alone would always break the identity: the other one follows.
  const std::string follower = moved_name == kAccumulation ? kMicroBatch : kAccumulation;
  const auto parameter =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == follower; });
  if (parameter == parameters_.end()) return Exclusion::kBatchMismatch;
  for (const Value& value : parameter->values) {
    moved.set(follower, value);
    if (complete(moved) == Exclusion::kNone) return Exclusion::kNone;
  }
  return Exclusion::kBatchMismatch;
}

}  // namespace krigtune
