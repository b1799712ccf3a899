// Counting by dynamic programming over the parameters. Parameters are bound one after the other; the number of ways to
// go on depends on the earlier ones only through what the open rules still need to know of them (their residue), so it
// is computed once for each residue: the sum over the next parameter's values. Where no rule is open the residue is
// empty, and counts multiply. A point is drawn by descending with these counts.
//
// The order of the parameters is greedy: next comes the one that leaves the fewest combinations of bound parameters
// which open rules read (the frontier, as in variable elimination: Dechter 1999, "Bucket elimination").
#include "lattice_count.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

// Memory for about a gigabyte of residues; what lies beyond is counted anew each time.
constexpr std::size_t kMostRemembered = 4'000'000;
// A few seconds. Who ties two parameters of a million values together by x + y < 90 would wait for days.
constexpr std::size_t kMostVisits = 20'000'000;

bool reads(const std::vector<std::size_t>& variables, std::size_t variable) {
  return std::binary_search(variables.begin(), variables.end(), variable);
}

}  // namespace

std::size_t LatticeCount::Hash::operator()(const Residue& residue) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : residue) {  // the finaliser of splitmix64 after each word (Steele et al. 2014)
    hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ (hash >> 29U)) * 0x94d049bb133111ebULL;
    hash ^= hash >> 32U;
  }
  return hash;
}

LatticeCount::LatticeCount(const LatticeRules& rules, std::size_t rule_count) : rules_(rules), rule_count_(rule_count) {
  make_steps(rule_count);
  memory_.by_depth.resize(steps_.size() + 1);
  Assignment assignment(rules_.expressions.domains().size());
  Residue residue;
  for (const std::size_t rule : standing_) {
    if (!may_hold(rule, assignment, residue, false)) return;
  }
  total_ = below(0, assignment, &memory_);
  by_rejection_ = is_rejection_cheaper();
}

// A point drawn from the whole lattice costs a look at each rule, and is rejected so often as the counts say; a descent
// costs a look at each value of each parameter. Both are exact.
bool LatticeCount::is_rejection_cheaper() const {
  if (total_ <= 0) return false;
  Count points = 1;
  Count values = 0;
  for (const Step& step : steps_) {
    const auto count = static_cast<Count>(rules_.expressions.domains()[step.variable].values.size());
    points *= count;
    if (!step.free) values += count;
  }
  return points / total_ < values;
}

void LatticeCount::make_steps(std::size_t rule_count) {
  const std::vector<Domain>& domains = rules_.expressions.domains();
  std::vector<std::vector<std::size_t>> read(rule_count);  // listed parameters only: others are never bound
  for (std::size_t rule = 0; rule < rule_count; ++rule) {
    for (const std::size_t variable : rules_.rules[rule].variables) {
      if (!domains[variable].continuous) read[rule].push_back(variable);
    }
    if (read[rule].empty()) standing_.push_back(rule);
  }
  std::vector<bool> bound(domains.size(), false);
  for (std::size_t i = 0; i < domains.size(); ++i) bound[i] = domains[i].continuous;
  while (std::find(bound.begin(), bound.end(), false) != bound.end()) {
    Step step;
    step.variable = next_variable(read, bound);
    bound[step.variable] = true;
    step.free = true;
    for (std::size_t rule = 0; rule < rule_count; ++rule) {
      const auto is_bound = [&](std::size_t variable) { return bound[variable]; };
      const bool reads_it = reads(read[rule], step.variable);
      const bool all = std::all_of(read[rule].begin(), read[rule].end(), is_bound);
      const bool any = std::any_of(read[rule].begin(), read[rule].end(), is_bound);
      step.free = step.free && !reads_it;
      if (reads_it && all) step.decided.push_back(rule);
      if (any && !all) step.open.push_back(rule);
    }
    steps_.push_back(std::move(step));
  }
}

std::size_t LatticeCount::next_variable(const std::vector<std::vector<std::size_t>>& read,
                                        const std::vector<bool>& bound) const {
  std::size_t best = bound.size();
  double smallest = 0.0;
  std::vector<bool> trial = bound;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (bound[i]) continue;
    trial[i] = true;
    const double size = frontier(read, trial);
    trial[i] = false;
    if (best == bound.size() || size < smallest) {
      best = i;
      smallest = size;
    }
  }
  return best;
}

double LatticeCount::frontier(const std::vector<std::vector<std::size_t>>& read, const std::vector<bool>& bound) const {
  std::vector<bool> counted(bound.size(), false);
  double log_size = 0.0;
  for (const std::vector<std::size_t>& variables : read) {
    if (std::all_of(variables.begin(), variables.end(), [&](std::size_t i) { return bound[i]; })) continue;
    for (const std::size_t i : variables) {
      if (!bound[i] || counted[i]) continue;
      counted[i] = true;
      log_size += std::log(static_cast<double>(rules_.expressions.domains()[i].values.size()));
    }
  }
  return log_size;
}

bool LatticeCount::may_hold(std::size_t rule, const Assignment& assignment, Residue& residue, bool is_open) const {
  const std::size_t before = residue.size();
  const BoundRange result =
      rules_.expressions.evaluate(rules_.rules[rule].root, assignment, is_open ? &residue : nullptr);
  if (!is_open) return result.may_hold() || result.absent;
  const bool settled = !result.may_fail();
  if (settled) residue.resize(before);
  residue.push_back(settled ? 1 : 0);
  return result.may_hold() || result.absent;
}

LatticeCount::Count LatticeCount::below(std::size_t depth, Assignment& assignment, Memory* grow) const {
  if (grow != nullptr && ++grow->visits > kMostVisits) {
    throw UserError("the conditions tie too many values together to be counted",
                    "give the ranges that they use fewer \"steps\"");
  }
  Residue residue;
  if (depth > 0) {
    for (const std::size_t rule : steps_[depth - 1].decided) {
      if (!may_hold(rule, assignment, residue, false)) return 0;
    }
    for (const std::size_t rule : steps_[depth - 1].open) {
      if (!may_hold(rule, assignment, residue, true)) return 0;
    }
  }
  if (depth == steps_.size()) return 1;
  const Memo& known = memory_.by_depth[depth];
  if (const auto found = known.find(residue); found != known.end()) return found->second;
  const Count count = sum_below(depth, assignment, grow);
  if (grow != nullptr && grow->size < kMostRemembered) {
    ++grow->size;
    grow->by_depth[depth].emplace(std::move(residue), count);
  }
  return count;
}

LatticeCount::Count LatticeCount::sum_below(std::size_t depth, Assignment& assignment, Memory* grow) const {
  const Step& step = steps_[depth];
  const std::size_t values = rules_.expressions.domains()[step.variable].values.size();
  if (step.free) return static_cast<Count>(values) * below(depth + 1, assignment, grow);
  Count sum = 0;
  for (std::size_t digit = 0; digit < values; ++digit) {
    bind(step.variable, digit, assignment);
    sum += below(depth + 1, assignment, grow);
  }
  assignment.unbind(step.variable);
  return sum;
}

void LatticeCount::bind(std::size_t variable, std::size_t digit, Assignment& assignment) const {
  assignment.bind(variable, static_cast<int>(digit), rules_.expressions.domains()[variable].values[digit]);
}

Assignment LatticeCount::draw(Rng& rng) const {
  assert(total_ > 0);
  return by_rejection_ ? draw_by_rejection(rng) : draw_by_descent(rng);
}

Assignment LatticeCount::draw_by_rejection(Rng& rng) const {
  Assignment assignment(rules_.expressions.domains().size());
  Residue none;
  for (bool meets_rules = false; !meets_rules;) {
    for (const Step& step : steps_) {
      bind(step.variable, rng.below(rules_.expressions.domains()[step.variable].values.size()), assignment);
    }
    meets_rules = true;
    for (std::size_t rule = 0; rule < rule_count_ && meets_rules; ++rule) {
      meets_rules = may_hold(rule, assignment, none, false);
    }
  }
  return assignment;
}

Assignment LatticeCount::draw_by_descent(Rng& rng) const {
  constexpr Count kExact = 9223372036854775808.0L;  // 2^63
  Count left = total_ <= kExact ? static_cast<Count>(rng.below(static_cast<std::uint64_t>(total_)))
                                : static_cast<Count>(rng.uniform()) * total_;
  Assignment assignment(rules_.expressions.domains().size());
  for (std::size_t depth = 0; depth < steps_.size(); ++depth) {
    const std::size_t variable = steps_[depth].variable;
    const std::size_t values = rules_.expressions.domains()[variable].values.size();
    if (steps_[depth].free) {  // all values have as many points below
      const Count each = below(depth + 1, assignment, nullptr);
      const Count rest = std::fmod(left, each);
      const Count digit = (left - rest) / each;
      bind(variable, std::min(values - 1, static_cast<std::size_t>(digit)), assignment);
      left = rest;
      continue;
    }
    std::size_t last = values;  // of those with points below: rounding of huge counts may lead past all
    for (std::size_t digit = 0; digit < values; ++digit) {
      bind(variable, digit, assignment);
      const Count count = below(depth + 1, assignment, nullptr);
      if (count > 0) last = digit;
      if (left < count) break;
      left -= count;
    }
    assert(last < values);
    bind(variable, last, assignment);
  }
  return assignment;
}

}  // namespace krigtune
