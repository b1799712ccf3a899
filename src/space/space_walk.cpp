// What a space answers about all of its configurations: count, list, exclude, sample.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "krigtune/core/error.h"
#include "lattice.h"

namespace krigtune {
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

// The configuration of one assignment after the other: only what differs is written anew.
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
  throw UserError("the space holds no configuration",
                  "widen its lists or loosen the constraints and the batch size; `krigtune plan` counts the reasons");
}

std::optional<Configuration> Space::draw(Rng& rng) const {
  // Rejection is uniform whatever it rejects; where little is left of a list, counting costs less than drawing on.
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

}  // namespace krigtune
