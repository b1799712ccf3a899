#include "krigtune/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

#include "canonical.h"
#include "krigtune/core/error.h"

namespace krigtune {
namespace {

constexpr const char* kAccumulation = "gradient_accumulation_steps";

// Calls visit(point) for every point of the lattice, the last parameter fastest, until it returns false.
template <class Visit>
void for_each_lattice_point(const std::vector<Parameter>& parameters, Visit visit) {
  Configuration point;
  for (const Parameter& parameter : parameters) point.set(parameter.name, parameter.values.front());
  std::vector<std::size_t> digits(parameters.size(), 0);
  while (visit(std::as_const(point))) {
    std::size_t i = parameters.size();
    for (; i > 0; --i) {
      const Parameter& parameter = parameters[i - 1];
      std::size_t& digit = digits[i - 1];
      digit = (digit + 1) % parameter.values.size();
      point.set(parameter.name, parameter.values[digit]);
      if (digit != 0) break;
    }
    if (i == 0) return;
  }
}

// The names that decide what is possible must hold integers, or no rule could be applied to them.
void check_well_known(const Parameter& parameter) {
  const std::pair<const char*, std::int64_t> kSmallest[] = {
      {"zero_stage", 0}, {"micro_batch", 1}, {kAccumulation, 1}, {"tensor_parallel", 1}, {"pipeline_parallel", 1}};
  for (const auto& [name, smallest] : kSmallest) {
    if (parameter.name != name) continue;
    for (const Value& value : parameter.values) {
      const auto* integer = std::get_if<std::int64_t>(&value);
      if (integer != nullptr && *integer >= smallest) continue;
      throw UserError(fmt::format("the parameter '{}' has the value {}", name, to_string(value)),
                      fmt::format("its values are integers from {} on", smallest));
    }
  }
}

// Nothing where `ranks` do not split into whole model replicas.
std::optional<std::int64_t> data_parallel_ranks(const Configuration& configuration, std::int64_t ranks) {
  for (const char* name : {"tensor_parallel", "pipeline_parallel"}) {
    const std::int64_t ways = configuration.integer(name, 1);
    if (ways < 1 || ranks % ways != 0) return std::nullopt;
    ranks /= ways;
  }
  return ranks;
}

// train_batch_size / (micro_batch * dp) where that is an integer; divided in turn, so that nothing overflows.
std::optional<std::int64_t> accumulation_steps(std::int64_t train_batch_size, std::int64_t micro_batch,
                                               std::int64_t dp) {
  if (micro_batch < 1 || train_batch_size % micro_batch != 0) return std::nullopt;
  const std::int64_t micro_batches = train_batch_size / micro_batch;
  if (micro_batches % dp != 0) return std::nullopt;
  return micro_batches / dp;
}

}  // namespace

const char* to_string(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::kNone:
      return "none";
    case Exclusion::kRanksNotDivisible:
      return "ranks not divisible";
    case Exclusion::kBatchNotDivisible:
      return "batch not divisible";
    case Exclusion::kBatchMismatch:
      return "batch mismatch";
    case Exclusion::kConstraint:
      return "constraint";
    case Exclusion::kRestricted:
      return "restricted";
  }
  return "unknown";
}

Space::Space(std::vector<Parameter> parameters, JobFacts facts, std::vector<Expression> constraints)
    : parameters_(std::move(parameters)), facts_(std::move(facts)), constraints_(std::move(constraints)) {
  assert(facts_.ranks >= 1);
  std::set<std::string> names;
  for (const Parameter& parameter : parameters_) {
    if (parameter.values.empty()) {
      throw UserError(fmt::format("the parameter '{}' has no values", parameter.name), "give it at least one");
    }
    if (!names.insert(parameter.name).second) {
      throw UserError(fmt::format("the parameter '{}' stands twice in the space", parameter.name), "keep one of them");
    }
    if (facts_.well_known) check_well_known(parameter);
  }
}

std::vector<std::string> Space::columns() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  if (derives_accumulation()) names.emplace_back(kAccumulation);
  return names;
}

void Space::restrict_to(Predicate keep) { restrictions_.push_back(std::move(keep)); }

std::int64_t Space::lattice_count() const {
  std::int64_t count = 1;
  for (const Parameter& parameter : parameters_) {
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(parameter.values.size()), &count)) {
      return std::numeric_limits<std::int64_t>::max();
    }
  }
  return count;
}

std::int64_t Space::count() const {
  std::int64_t count = 0;
  for_each([&](const Configuration&) {
    ++count;
    return true;
  });
  return count;
}

void Space::for_each(const std::function<bool(const Configuration&)>& visit) const {
  for_each_lattice_point(parameters_, [&](const Configuration& point) {
    Configuration configuration = point;
    return !admit(configuration) || visit(configuration);
  });
}

std::vector<ExclusionCount> Space::exclusions() const {
  std::vector<ExclusionCount> counts;
  for (const Exclusion reason : {Exclusion::kNone, Exclusion::kRanksNotDivisible, Exclusion::kBatchNotDivisible,
                                 Exclusion::kBatchMismatch, Exclusion::kConstraint, Exclusion::kRestricted}) {
    counts.push_back({reason, 0});
  }
  for_each_lattice_point(parameters_, [&](const Configuration& point) {
    Configuration configuration = point;
    Exclusion reason = complete(configuration);
    if (reason == Exclusion::kNone && !is_kept(configuration)) reason = Exclusion::kRestricted;
    ++counts[static_cast<std::size_t>(reason)].count;
    return true;
  });
  return counts;
}

Configuration Space::sample(Rng& rng) const {
  // Rejection is uniform whatever it rejects; where little is left, counting costs less than drawing on.
  constexpr int kDraws = 1000;
  for (int draw = 0; draw < kDraws; ++draw) {
    Configuration point;
    for (const Parameter& parameter : parameters_) {
      point.set(parameter.name, parameter.values[rng.below(parameter.values.size())]);
    }
    if (admit(point)) return point;
  }
  const std::int64_t total = count();
  if (total == 0) {
    throw UserError("the space holds no configuration",
                    "widen its lists or loosen the constraints and the batch size; `krigtune plan` counts the reasons");
  }
  auto left = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total)));
  Configuration chosen;
  for_each([&](const Configuration& configuration) {
    if (left == 0) chosen = configuration;
    return left-- > 0;
  });
  return chosen;
}

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

bool Space::contains(const Configuration& configuration) const {
  Configuration point;
  for (const Parameter& parameter : parameters_) {
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr || parameter.index_of(*value) < 0) return false;
    point.set(parameter.name, *value);
  }
  return admit(point) && point == configuration;
}

Exclusion Space::complete(Configuration& configuration) const {
  if (!facts_.well_known) return Exclusion::kNone;
  const std::optional<std::int64_t> dp = data_parallel_ranks(configuration, facts_.ranks);
  if (!dp) return Exclusion::kRanksNotDivisible;
  if (facts_.train_batch_size) {
    const auto steps = accumulation_steps(*facts_.train_batch_size, configuration.integer("micro_batch", 1), *dp);
    const bool given = configuration.has(kAccumulation);
    if (!steps) return given && !derives_accumulation() ? Exclusion::kBatchMismatch : Exclusion::kBatchNotDivisible;
    if (given && configuration.integer(kAccumulation, 0) != *steps) return Exclusion::kBatchMismatch;
    if (!given) configuration.set(kAccumulation, *steps);
  }
  canonicalise_knobs(parameters_, {configuration.integer("zero_stage", 0), *dp, facts_.parameter_count}, configuration);
  return Exclusion::kNone;
}

bool Space::derives_accumulation() const {
  return facts_.well_known && facts_.train_batch_size &&
         std::none_of(parameters_.begin(), parameters_.end(),
                      [](const Parameter& p) { return p.name == kAccumulation; });
}

bool Space::is_kept(const Configuration& configuration) const {
  return std::all_of(restrictions_.begin(), restrictions_.end(),
                     [&](const Predicate& keep) { return keep(configuration); });
}

bool Space::admit(Configuration& point) const {
  Configuration completed = point;
  if (complete(completed) != Exclusion::kNone) return false;
  const bool stands_for_itself = std::all_of(point.begin(), point.end(), [&](const Configuration::Entry& entry) {
    return same_value(entry.second, *completed.find(entry.first));
  });
  if (!stands_for_itself || !is_kept(completed)) return false;
  point = std::move(completed);
  return true;
}

std::optional<Configuration> Space::moved_to(const Configuration& configuration, const Parameter& parameter,
                                             const Value& value) const {
  Configuration moved;
  for (const Parameter& other : parameters_) {
    const Value* kept = configuration.find(other.name);
    if (&other == &parameter) {
      moved.set(other.name, value);
    } else if (kept != nullptr) {
      moved.set(other.name, *kept);
    }
  }
  Exclusion reason = complete(moved);
  if (reason == Exclusion::kBatchMismatch) reason = keep_batch(moved, parameter.name);
  if (reason != Exclusion::kNone || !contains(moved)) return std::nullopt;
  return moved;
}

Exclusion Space::keep_batch(Configuration& moved, const std::string& moved_name) const {
  // Where both factors are tuned, one step of one alone would always break the identity: the other one follows.
  const std::string follower = moved_name == kAccumulation ? "micro_batch" : kAccumulation;
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
