#include "krigtune/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "canonical.h"
#include "krigtune/core/error.h"
#include "krigtune/space/batch.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"
#include "lattice.h"

namespace krigtune {
namespace {

// The names that decide what is possible must hold integers, or no rule could be applied to them.
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

// Each parameter after those that its existence and effect depend on, so that these are settled.
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
      throw UserError(fmt::format("the parameter '{}' is fixed and stands in the space as well", parameter.name),
                      "keep one of them");
    }
    throw UserError(fmt::format("the parameter '{}' stands twice in the space", parameter.name), "keep one of them");
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
    const std::optional<std::int64_t> dp = data_parallel_ranks(facts_.ranks, completed.integer(kTensorParallel, 1),
                                                               completed.integer(kPipelineParallel, 1));
    if (!dp) return Exclusion::kRanksNotDivisible;
    if (facts_.train_batch_size) {
      const auto steps = accumulation_steps(*facts_.train_batch_size, completed.integer(kMicroBatch, 1), *dp);
      const bool given = completed.has(kAccumulation);
      const bool derived = lattice_->vocabulary().derives_accumulation();
      if (!steps) return given && !derived ? Exclusion::kBatchMismatch : Exclusion::kBatchNotDivisible;
      if (given && completed.integer(kAccumulation, 0) != *steps) return Exclusion::kBatchMismatch;
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

}  // namespace krigtune
