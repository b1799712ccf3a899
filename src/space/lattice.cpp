#include "space/lattice.h"

#include <algorithm>
#include <cmath>

#include "space/ranges.h"
#include "space/vocabulary.h"

namespace krigtune::space {
namespace {

class Walk {
 public:
  Walk(const LatticeRules& rules, const std::function<bool(const Assignment&)>& visit)
      : rules_(rules), visit_(visit), assignment_(rules.expressions.domains().size()) {
    reading_.resize(assignment_.digits.size());
    for (const Rule& rule : rules.rules) {
      for (const std::size_t variable : rule.variables) reading_[variable].push_back(rule.root);
    }
  }

  void run() {
    const auto may_hold = [&](const Rule& rule) { return this->may_hold(rule.root); };
    if (std::all_of(rules_.rules.begin(), rules_.rules.end(), may_hold)) below(0);
  }

 private:
  bool may_hold(int root) const {
    const BoundRange result = rules_.expressions.evaluate(root, assignment_);
    return result.may_hold() || result.absent;
  }

  // Returns false if the walk must end.
  bool below(std::size_t depth) {
    if (depth == reading_.size()) return visit_(assignment_);
    const std::vector<double>& values = rules_.expressions.domains()[depth].values;
    for (std::size_t digit = 0; digit < values.size(); ++digit) {
      assignment_.bind(depth, static_cast<int>(digit), values[digit]);
      const bool open =
          std::all_of(reading_[depth].begin(), reading_[depth].end(), [&](int root) { return may_hold(root); });
      if (open && !below(depth + 1)) return false;
    }
    assignment_.unbind(depth);
    return true;
  }

  const LatticeRules& rules_;
  const std::function<bool(const Assignment&)>& visit_;
  Assignment assignment_;
  std::vector<std::vector<int>> reading_;  ///< by parameter: the rules that read it
};

}  // namespace

void walk(const Lattice& lattice, const std::function<bool(const Assignment&)>& visit) {
  Walk(lattice.representatives(), visit).run();
}

Lattice::Lattice(const std::vector<Parameter>& parameters, const JobFacts& facts,
                 const std::vector<Expression>& constraints)
    : parameters_(parameters),
      facts_(facts),
      vocabulary_(parameters, facts),
      representatives_(make_rules(parameters, facts, constraints, vocabulary_, LatticePoints::kRepresentatives)),
      all_(make_rules(parameters, facts, constraints, vocabulary_, LatticePoints::kAll)) {}

const LatticeCount& Lattice::count() const {
  std::call_once(counted_, [&] { count_.emplace(representatives_, representatives_.rules.size()); });
  return *count_;
}

bool Lattice::exists(std::size_t parameter, const Assignment& assignment) const {
  const int condition = representatives_.exists[parameter];
  return condition < 0 || representatives_.expressions.evaluate(condition, assignment).may_hold();
}

bool Lattice::has_no_effect(std::size_t parameter, const Assignment& assignment) const {
  const int condition = representatives_.no_effect[parameter];
  return condition >= 0 && representatives_.expressions.evaluate(condition, assignment).may_hold();
}

std::optional<std::int64_t> Lattice::accumulation_steps(const Assignment& assignment) const {
  if (!representatives_.accumulation_steps) return std::nullopt;
  return std::llround(representatives_.expressions.evaluate(*representatives_.accumulation_steps, assignment).low);
}

Configuration Lattice::configuration_of(const Assignment& assignment) const {
  Configuration configuration;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!exists(i, assignment)) continue;
    const Parameter& parameter = parameters_[i];
    if (!parameter.continuous()) {
      configuration.set(parameter.name, parameter.values[static_cast<std::size_t>(assignment.digits[i])]);
      continue;
    }
    const Value drawn = number_value(assignment.values[i]);
    configuration.set(parameter.name,
                      !facts_.well_known
                          ? drawn
                          : canonical_value(parameter, drawn, has_no_effect(i, assignment), facts_.parameter_count));
  }
  if (const auto steps = accumulation_steps(assignment)) configuration.set(kAccumulation, *steps);
  return configuration;
}

std::optional<Assignment> Lattice::assignment_of(const Configuration& configuration) const {
  Assignment assignment(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr && !parameter.when) return std::nullopt;
    if (parameter.continuous()) {
      const double number = value == nullptr ? parameter.range->min : is_number(*value) ? as_number(*value) : NAN;
      if (!(number >= parameter.range->min && number <= parameter.range->max)) return std::nullopt;
      assignment.bind(i, 0, number);
      continue;
    }
    const int digit = value == nullptr ? 0 : parameter.index_of(*value);
    if (digit < 0) return std::nullopt;
    assignment.bind(i, digit, representatives_.expressions.domains()[i].values[static_cast<std::size_t>(digit)]);
  }
  return assignment;
}

bool Lattice::meets_rules(const Assignment& assignment) const {
  return std::all_of(representatives_.rules.begin(), representatives_.rules.end(), [&](const Rule& rule) {
    return !representatives_.expressions.evaluate(rule.root, assignment).may_fail();
  });
}

LatticeCount::Count Lattice::multiplicity(const Assignment& assignment) const {
  LatticeCount::Count count = 1;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.continuous()) continue;
    if (!exists(i, assignment) || has_no_effect(i, assignment)) {
      count *= static_cast<LatticeCount::Count>(parameter.values.size());
    } else if (facts_.well_known && facts_.parameter_count && is_bucket(parameter.name)) {
      const auto all = static_cast<double>(*facts_.parameter_count);
      if (assignment.values[i] < all) continue;
      count *= static_cast<LatticeCount::Count>(std::count_if(parameter.values.begin(), parameter.values.end(),
                                                              [&](const Value& v) { return as_number(v) >= all; }));
    }
  }
  return count;
}

void Lattice::draw_reals(Rng& rng, Assignment& assignment) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].continuous()) assignment.bind(i, 0, real_at(parameters_[i], rng.uniform()));
  }
}

}  // namespace krigtune::space
