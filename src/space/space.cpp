#include "space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

#include "core/error.h"
#include "space/lattice.h"
#include "space/parallel_layout.h"
#include "space/ranges.h"
#include "space/usual_names.h"
#include "space/vocabulary.h"
#include "space/well_known.h"

namespace krigtune::space {
namespace {

// The names that decide what is possible must have integer values; otherwise no rule could be applied to them.
void check_well_known(const Parameter& parameter) {
  const WellKnownParameter* known = find_well_known(parameter.name);
  if (known == nullptr || !std::holds_alternative<std::int64_t>(known->default_value)) return;
  const std::string hint = fmt::format("its values are integers from {} on", known->smallest);
  if (parameter.continuous()) {
    throw UserError(fmt::format("the parameter '{}' is a range of real numbers", parameter.name), hint);
  }
  for (const Value& value : parameter.values) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer != nullptr && *integer >= known->smallest) continue;
    throw UserError(fmt::format("the parameter '{}' has the value {}", parameter.name, to_string(value)), hint);
  }
}

void check_parameter(const Parameter& parameter, const JobFacts& facts) {
  if (parameter.values.empty() && !parameter.continuous()) {
    throw UserError(fmt::format("the parameter '{}' has no values", parameter.name), "give it at least one");
  }
  if (!facts.well_known) return;
  check_well_known(parameter);
  if (parameter.name == kAccumulation && parameter.when && facts.train_batch_size) {
    throw UserError(fmt::format("'{}' cannot have \"when\": train_batch_size asks for it everywhere", parameter.name),
                    "drop \"when\"");
  }
}

// Processes each parameter after those that its existence and effect depend on.
void drop_and_canonicalise(Configuration& configuration, const std::vector<Parameter>& parameters,
                           const JobFacts& facts, const Lattice& lattice) {
  const Vocabulary& vocabulary = lattice.vocabulary();
  for (const std::size_t i : lattice.all().by_need) {
    const Parameter& parameter = parameters[i];
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr) continue;
    if (parameter.when && !vocabulary.holds(*parameter.when, configuration, false).value_or(false)) {
      configuration.erase(parameter.name);
      continue;
    }
    if (!facts.well_known) continue;
    const Expression* condition = condition_of_no_effect(parameter.name);
    const bool no_effect = condition != nullptr && vocabulary.holds(*condition, configuration, true).value_or(false);
    configuration.set(parameter.name, canonical_value(parameter, *value, no_effect, facts.parameter_count));
  }
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
  with_fixed_ = parameters_;
  for (const auto& [name, value] : facts_.fixed) {
    with_fixed_.push_back({name, {value}});
    with_fixed_.back().categorical = std::holds_alternative<std::string>(value);
  }
  std::set<std::string> names;
  for (const Parameter& parameter : with_fixed_) {
    check_parameter(parameter, facts_);
    if (names.insert(parameter.name).second) continue;
    if (facts_.fixed.has(parameter.name)) {
      throw UserError(fmt::format("the parameter '{}' is fixed, and in the space as well", parameter.name),
                      "keep one of them");
    }
    throw UserError(fmt::format("duplicate parameter '{}' in the space", parameter.name), "keep one of them");
  }
  lattice_ = std::make_shared<const Lattice>(with_fixed_, facts_, constraints_);
}

const Parameter* Space::find(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

std::vector<std::string> Space::columns() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  if (lattice_->vocabulary().derives_accumulation()) names.emplace_back(kAccumulation);
  return names;
}

void Space::restrict_to(Predicate keep) { restrictions_.push_back(std::move(keep)); }

bool Space::contains(const Configuration& configuration) const {
  const std::optional<Assignment> assignment = lattice_->assignment_of(configuration);
  return assignment && lattice_->meets_rules(*assignment) && lattice_->configuration_of(*assignment) == configuration &&
         is_kept(configuration);
}

Exclusion Space::complete(Configuration& configuration) const {
  Configuration completed = configuration;
  for (const auto& [name, value] : facts_.fixed) completed.set(name, value);
  drop_and_canonicalise(completed, with_fixed_, facts_, *lattice_);
  if (facts_.well_known) {
    const std::optional<Configuration> renamed = with_usual_names(completed);
    const Configuration& usual = renamed ? *renamed : completed;
    const std::optional<std::int64_t> dp = data_parallel_ranks(facts_.ranks, usual);
    if (!dp) return Exclusion::kRanksNotDivisible;
    if (facts_.train_batch_size) {
      const auto steps = accumulation_steps(*facts_.train_batch_size, usual.integer(kMicroBatch, 1), *dp);
      const bool given = usual.has(kAccumulation);
      const bool derived = lattice_->vocabulary().derives_accumulation();
      if (!steps) return given && !derived ? Exclusion::kBatchMismatch : Exclusion::kBatchNotDivisible;
      if (given && usual.integer(kAccumulation, 0) != *steps) return Exclusion::kBatchMismatch;
      if (!given) completed.set(kAccumulation, *steps);
    }
  }
  configuration = std::move(completed);
  return Exclusion::kNone;
}

bool Space::meets_constraints(const Configuration& configuration) const {
  return std::all_of(constraints_.begin(), constraints_.end(), [&](const Expression& constraint) {
    return lattice_->vocabulary().holds(constraint, configuration, false).value_or(true);
  });
}

bool Space::is_kept(const Configuration& configuration) const {
  return std::all_of(restrictions_.begin(), restrictions_.end(),
                     [&](const Predicate& keep) { return keep(configuration); });
}

// Questions about all configurations of a space: count, list, exclude, sample.
namespace {

using Count = LatticeCount::Count;

std::int64_t saturated(Count count) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return count >= static_cast<Count>(kMost) ? kMost : static_cast<std::int64_t>(count);
}

Count lattice_points(const std::vector<Parameter>& parameters) {
  Count points = 1;
  for (const Parameter& parameter : parameters) {
    if (!parameter.continuous()) points *= static_cast<Count>(parameter.values.size());
  }
  return points;
}

// Builds the configurations of successive assignments; only differences are rewritten.
class Shown {
 public:
  Shown(const std::vector<Parameter>& parameters, const Lattice& lattice) : parameters_(parameters), lattice_(lattice) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].when) conditional_.push_back(i);
    }
  }

  const Configuration& of(const Assignment& assignment) {
    const std::vector<bool> exists = existing(assignment);
    if (digits_.empty() || exists != exists_) {
      configuration_ = lattice_.configuration_of(assignment);
      exists_ = exists;
    } else {
      for (std::size_t i = 0; i < digits_.size(); ++i) {
        const auto digit = static_cast<std::size_t>(assignment.digits[i]);
        const bool changed = assignment.digits[i] != digits_[i] && configuration_.has(parameters_[i].name);
        if (changed) configuration_.set(parameters_[i].name, parameters_[i].values[digit]);
      }
      if (const auto steps = lattice_.accumulation_steps(assignment)) configuration_.set(kAccumulation, *steps);
    }
    digits_ = assignment.digits;
    return configuration_;
  }

 private:
  std::vector<bool> existing(const Assignment& assignment) const {
    std::vector<bool> exists;
    for (const std::size_t i : conditional_) exists.push_back(lattice_.exists(i, assignment));
    return exists;
  }

  const std::vector<Parameter>& parameters_;
  const Lattice& lattice_;
  std::vector<std::size_t> conditional_;
  std::vector<bool> exists_;  ///< of the conditional ones
  std::vector<int> digits_;
  Configuration configuration_;
};

void require_listable(const Space& space) {
  for (const Parameter& parameter : space.parameters()) {
    if (!parameter.continuous()) continue;
    throw UserError(fmt::format("the space cannot be listed: '{}' is any real number of its range", parameter.name),
                    "give it \"steps\"");
  }
}

}  // namespace

bool Space::listable() const {
  return std::none_of(parameters_.begin(), parameters_.end(), [](const Parameter& p) { return p.continuous(); });
}

std::int64_t Space::lattice_count() const { return saturated(lattice_points(parameters_)); }

void Space::for_each(const std::function<bool(const Configuration&)>& visit) const {
  require_listable(*this);
  Shown shown(with_fixed_, *lattice_);
  walk(*lattice_, [&](const Assignment& assignment) {
    const Configuration& configuration = shown.of(assignment);
    return !is_kept(configuration) || visit(configuration);
  });
}

std::int64_t Space::count() const {
  require_listable(*this);
  if (restrictions_.empty()) return saturated(lattice_->count().total());
  std::int64_t count = 0;
  for_each([&](const Configuration&) {
    ++count;
    return true;
  });
  return count;
}

bool Space::is_empty() const {
  if (lattice_->count().total() == 0) return true;
  if (listable() && restrictions_.empty()) return false;
  Rng rng(0, 0);
  return !draw(rng).has_value();
}

std::vector<ExclusionCount> Space::exclusions() const {
  std::vector<ExclusionCount> counts;
  for (const Exclusion reason :
       {Exclusion::kNone, Exclusion::kRanksNotDivisible, Exclusion::kBatchNotDivisible, Exclusion::kBatchMismatch}) {
    counts.push_back({reason, 0});
  }
  for (const Expression& constraint : constraints_) counts.push_back({Exclusion::kConstraint, 0, constraint.text()});
  counts.push_back({Exclusion::kRestricted, 0});
  const LatticeRules& rules = lattice_->all();
  Count left = lattice_points(parameters_);
  for (std::size_t i = 0; i < rules.rules.size() && left > 0; ++i) {
    const Rule& rule = rules.rules[i];
    const Count next = LatticeCount(rules, i + 1).total();
    const auto first = static_cast<std::size_t>(rule.reason);
    counts[rule.reason == Exclusion::kConstraint ? first + rule.constraint : first].count = saturated(left - next);
    left = next;
  }
  if (!restrictions_.empty() && listable()) {
    Count kept = 0;
    Shown shown(with_fixed_, *lattice_);
    walk(*lattice_, [&](const Assignment& assignment) {
      if (is_kept(shown.of(assignment))) kept += lattice_->multiplicity(assignment);
      return true;
    });
    counts.back().count = saturated(left - kept);
    left = kept;
  }
  counts.front().count = saturated(left);
  return counts;
}

Configuration Space::sample(Rng& rng) const {
  if (std::optional<Configuration> drawn = draw(rng)) return *drawn;
  if (!listable() && lattice_->count().total() > 0) {
    throw UserError("no configuration of the space was found: its constraints leave next to nothing",
                    "loosen the constraints on real ranges");
  }
  throw UserError("the space has no configuration",
                  "widen its lists or loosen the constraints and the batch size; `krigtune plan` counts the reasons");
}

std::optional<Configuration> Space::draw(Rng& rng) const {
  // Rejection is always uniform. If few points of a list remain, counting is cheaper than drawing further.
  constexpr int kDraws = 1000;
  constexpr int kDrawsOfReals = 100'000;
  const LatticeCount& points = lattice_->count();
  if (points.total() == 0) return std::nullopt;
  const bool is_list = listable();
  for (int tries = 0; tries < (is_list ? kDraws : kDrawsOfReals); ++tries) {
    Assignment assignment = points.draw(rng);
    lattice_->draw_reals(rng, assignment);
    if (!is_list && !lattice_->meets_rules(assignment)) continue;
    Configuration configuration = lattice_->configuration_of(assignment);
    if (is_kept(configuration)) return configuration;
  }
  if (!is_list) return std::nullopt;
  const std::int64_t total = count();
  if (total == 0) return std::nullopt;
  auto left = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total)));
  Configuration chosen;
  for_each([&](const Configuration& configuration) {
    if (left == 0) chosen = configuration;
    return left-- > 0;
  });
  return chosen;
}

namespace {

// Returns the initial value of a parameter that comes into existence by a step of another one.
Value entry_value(const Parameter& parameter) {
  return parameter.continuous() ? number_value(real_at(parameter, 0.5)) : parameter.values.front();
}

// Moves by a tenth of the axis, but not beyond the range.
Value moved_real(const Parameter& parameter, const Value& value, int direction) {
  constexpr double kStep = 0.1;
  const RealRange& range = *parameter.range;
  const double inside = is_number(value) ? std::clamp(as_number(value), range.min, range.max) : range.min;
  return number_value(
      real_at(parameter, axis_position(parameter.scale, range.min, range.max, inside) + direction * kStep));
}

// Removes parameters that no longer exist, adds those that now do, and restores the order of the session.
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
    // A step goes to the next value that makes a different configuration, skipping gaps and values without effect.
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
  // If both factors are tuned, a step of only one would always violate the identity, so the other one follows.
  const Parameter* parameter =
      find_usual(parameters_, well_known_name(moved_name) == kAccumulation ? kMicroBatch : kAccumulation);
  if (parameter == nullptr) return Exclusion::kBatchMismatch;
  for (const Value& value : parameter->values) {
    moved.set(parameter->name, value);
    if (complete(moved) == Exclusion::kNone) return Exclusion::kNone;
  }
  return Exclusion::kBatchMismatch;
}

}  // namespace krigtune::space
