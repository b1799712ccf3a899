// Counting by dynamic programming over the parameters, which are bound one after the other. The number of ways to
// continue depends on the earlier parameters only through the residue, the information about them that the open rules
// still need. So it is computed once for each residue, as the sum over the next parameter's values. If no rule is open,
// the residue is empty and counts multiply. A point is drawn by descending with these counts.
//
// The order of the parameters is greedy: next comes the one that leaves the fewest combinations of bound parameters
// which open rules read (the frontier, as in variable elimination: Dechter 1999, "Bucket elimination").
#include "space/lattice_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "space/parallel_layout.h"
#include "space/ranges.h"
#include "space/vocabulary.h"
#include "space/well_known.h"

namespace krigtune::space {

// Converts parameters, facts and constraints to rules. A parameter p is read as
//
//   exists(p) ? stands_for(p) : absent        exists(p) = its "when" is true
//   stands_for(p) = no_effect(p) ? first : (p covers all parameters ? smallest that does : p)
//
// If only representatives are considered, a rule requires stands_for(p) = p.

namespace {

// An error whose message already names the condition.
class LocatedError : public UserError {
 public:
  using UserError::UserError;
};

struct Bound {
  int root = 0;
  Kind kind = Kind::kNumber;
};

class Binder {
 public:
  Binder(const std::vector<Parameter>& parameters, const JobFacts& facts, const Vocabulary& vocabulary,
         LatticePoints points)
      : parameters_(parameters),
        facts_(facts),
        vocabulary_(vocabulary),
        points_(points),
        result_(domains_of(parameters, words_)),
        references_(parameters.size(), -1) {
    result_.exists.assign(parameters.size(), -1);
    result_.no_effect.assign(parameters.size(), -1);
  }

  LatticeRules rules(const std::vector<Expression>& constraints) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) reference(i);
    if (facts_.well_known) add_batch_rules();
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      const std::string where = fmt::format("the constraint \"{}\"", constraints[i].text());
      add_rule(condition(constraints[i], where, false), Exclusion::kConstraint, i);
    }
    for (std::size_t i = 0; points_ == LatticePoints::kRepresentatives && i < parameters_.size(); ++i)
      add_representative(i);
    return std::move(result_);
  }

 private:
  template <class... Operands>
  int node(BoundOp op, Operands... operands) {
    return result_.expressions.node(op, {operands...});
  }
  int constant(double value) { return result_.expressions.constant(value); }

  void add_rule(int root, Exclusion reason, std::size_t constraint) {
    result_.rules.push_back({root, result_.expressions.variables_of(root), reason, constraint});
  }

  // `where` names the expression in errors. With `defaults` a well-known parameter that is absent is its default.
  int condition(const Expression& expression, const std::string& where, bool defaults) {
    try {
      const Bound bound = bind(expression.root(), defaults);
      check_condition(expression.root(), bound.kind);
      return bound.root;
    } catch (const LocatedError&) {
      throw;
    } catch (const UserError& error) {
      throw LocatedError(fmt::format("{}: {}", where, error.what()));
    }
  }

  Bound bind(const Expression::Node& node, bool defaults);
  Bound bind_name(const Expression::Node& name, bool defaults);

  int reference(std::size_t i);
  int stands_for(std::size_t i);
  int existence(std::size_t i);
  int no_effect(std::size_t i);
  int otherwise(const char* name, double fallback);
  int dp();
  int accumulation_steps();
  void add_batch_rules();
  void add_representative(std::size_t i);

  const std::vector<Parameter>& parameters_;
  const JobFacts& facts_;
  const Vocabulary& vocabulary_;
  LatticePoints points_;
  Words words_;
  LatticeRules result_;
  std::vector<int> references_;      ///< by parameter; -1: not made yet
  std::vector<std::size_t> making_;  ///< parameters whose reference is being made
};

Bound Binder::bind(const Expression::Node& expression, bool defaults) {
  if (expression.op == Operator::kNumber) return {constant(expression.number), expression.kind};
  if (expression.op == Operator::kText) return {constant(words_.number_of(expression.text)), Kind::kText};
  if (expression.op == Operator::kName) return bind_name(expression, defaults);
  std::vector<int> operands;
  std::vector<Kind> kinds;
  for (const Expression::Node& child : expression.children) {
    const Bound bound = bind(child, defaults);
    operands.push_back(bound.root);
    kinds.push_back(bound.kind);
  }
  check_operands(expression, kinds);
  if (expression.op == Operator::kGreater || expression.op == Operator::kGreaterEqual) {
    std::swap(operands[0], operands[1]);
  }
  if (expression.op == Operator::kSubtract) operands[1] = node(BoundOp::kNegate, operands[1]);
  return {result_.expressions.node(bound_op(expression.op), operands), expression.kind};
}

Bound Binder::bind_name(const Expression::Node& name, bool defaults) {
  const Vocabulary::Meaning meaning = vocabulary_.meaning_of(name.text);
  const Kind kind = vocabulary_.kind_of(meaning);
  switch (meaning.is) {
    case Vocabulary::Meaning::Is::kNothing:
      vocabulary_.fail_unknown(name);
    case Vocabulary::Meaning::Is::kConstant:
      return {constant(words_.number_of(meaning.constant)), kind};
    case Vocabulary::Meaning::Is::kDp:
      return {dp(), kind};
    case Vocabulary::Meaning::Is::kAccumulationSteps:
      return {accumulation_steps(), kind};
    case Vocabulary::Meaning::Is::kParameter:
      break;
  }
  const Value* fallback = defaults ? vocabulary_.default_of(name.text) : nullptr;
  const int read = reference(meaning.parameter);
  if (fallback == nullptr) return {read, kind};
  return {node(BoundOp::kOtherwise, read, constant(words_.number_of(*fallback))), kind};
}

int Binder::reference(std::size_t i) {
  if (references_[i] >= 0) return references_[i];
  const auto circle = std::find(making_.begin(), making_.end(), i);
  if (circle != making_.end()) {
    std::vector<std::string> path;
    for (auto at = circle; at != making_.end(); ++at) path.push_back(parameters_[*at].name);
    path.push_back(parameters_[i].name);
    throw LocatedError(fmt::format("conditions that go in a circle: {}", join(path, " needs ")), "drop one \"when\"");
  }
  making_.push_back(i);
  result_.exists[i] = existence(i);
  result_.no_effect[i] = no_effect(i);
  const int value = stands_for(i);
  const int exists = result_.exists[i];
  references_[i] = exists < 0 ? value : node(BoundOp::kSelect, exists, value, result_.expressions.absent());
  making_.pop_back();
  result_.by_need.push_back(i);
  return references_[i];
}

int Binder::existence(std::size_t i) {
  const Parameter& parameter = parameters_[i];
  if (!parameter.when) return -1;
  const std::string where = fmt::format("\"when\" of '{}'", parameter.name);
  return node(BoundOp::kIsTrue, condition(*parameter.when, where, false));
}

int Binder::no_effect(std::size_t i) {
  const Expression* where = facts_.well_known ? condition_of_no_effect(parameters_[i].name) : nullptr;
  return where == nullptr ? -1 : node(BoundOp::kIsTrue, condition(*where, parameters_[i].name, true));
}

int Binder::stands_for(std::size_t i) {
  const Parameter& parameter = parameters_[i];
  int value = result_.expressions.variable(BoundOp::kVariable, i);
  if (points_ == LatticePoints::kRepresentatives && !parameter.continuous()) return value;
  const std::optional<std::int64_t>& all = facts_.parameter_count;
  if (facts_.well_known && all && is_bucket(parameter.name)) {
    const auto elems = static_cast<double>(*all);
    const Value held = canonical_value(parameter, number_value(elems), false, all);
    const int fits_all = node(BoundOp::kLessEqual, constant(elems), value);
    value = node(BoundOp::kSelect, fits_all, constant(words_.number_of(held)), value);
  }
  if (result_.no_effect[i] < 0) return value;
  return node(BoundOp::kSelect, result_.no_effect[i], constant(words_.number_of(first_value(parameter))), value);
}

int Binder::otherwise(const char* name, double fallback) {
  const Vocabulary::Meaning meaning = vocabulary_.meaning_of(name);
  const bool tuned = meaning.is == Vocabulary::Meaning::Is::kParameter && vocabulary_.kind_of(meaning) != Kind::kText;
  if (!tuned) return constant(fallback);
  return node(BoundOp::kOtherwise, reference(meaning.parameter), constant(fallback));
}

// The identities of space/well_known.h and space/parallel_layout.h as expressions, which have bounds before all
// parameters are known.
int Binder::dp() {
  int ways = constant(1.0);
  for (const char* divisor : rank_divisors()) ways = node(BoundOp::kProduct, ways, otherwise(divisor, 1.0));
  return node(BoundOp::kDivide, constant(static_cast<double>(facts_.ranks)), ways);
}

int Binder::accumulation_steps() {
  const int batch = constant(static_cast<double>(*facts_.train_batch_size));
  return node(BoundOp::kDivide, node(BoundOp::kDivide, batch, otherwise(kMicroBatch, 1.0)), dp());
}

void Binder::add_batch_rules() {
  const auto divides = [&](int divisor, int number) {
    return node(BoundOp::kEqual, node(BoundOp::kModulo, number, divisor), constant(0.0));
  };
  int ranks = constant(static_cast<double>(facts_.ranks));
  int all_divide = constant(1.0);
  for (const char* divisor : rank_divisors()) {
    const int ways = otherwise(divisor, 1.0);
    all_divide = node(BoundOp::kAnd, all_divide, divides(ways, ranks));
    ranks = node(BoundOp::kDivide, ranks, ways);
  }
  add_rule(all_divide, Exclusion::kRanksNotDivisible, 0);
  if (!facts_.train_batch_size) return;
  const int batch = constant(static_cast<double>(*facts_.train_batch_size));
  const int micro_batch = otherwise(kMicroBatch, 1.0);
  const int whole =
      node(BoundOp::kAnd, divides(micro_batch, batch), divides(dp(), node(BoundOp::kDivide, batch, micro_batch)));
  const int steps = accumulation_steps();
  if (vocabulary_.derives_accumulation()) {
    result_.accumulation_steps = steps;
    add_rule(whole, Exclusion::kBatchNotDivisible, 0);
    return;
  }
  const int given = reference(vocabulary_.meaning_of(kAccumulation).parameter);
  add_rule(node(BoundOp::kAnd, whole, node(BoundOp::kEqual, given, steps)), Exclusion::kBatchMismatch, 0);
}

void Binder::add_representative(std::size_t i) {
  const Parameter& parameter = parameters_[i];
  if (parameter.continuous()) return;
  const int digit = result_.expressions.variable(BoundOp::kDigit, i);
  const int is_first = node(BoundOp::kEqual, digit, constant(0.0));
  int stands = constant(1.0);
  if (facts_.well_known && facts_.parameter_count && is_bucket(parameter.name)) {
    const auto all = static_cast<double>(*facts_.parameter_count);
    const int smaller = node(BoundOp::kLess, result_.expressions.variable(BoundOp::kVariable, i), constant(all));
    const int smallest = smallest_that_fits(parameter, all);
    stands = node(BoundOp::kOr, smaller, node(BoundOp::kEqual, digit, constant(smallest)));
  }
  if (result_.no_effect[i] >= 0) stands = node(BoundOp::kSelect, result_.no_effect[i], is_first, stands);
  if (result_.exists[i] >= 0) stands = node(BoundOp::kSelect, result_.exists[i], stands, is_first);
  const std::vector<std::size_t> read = result_.expressions.variables_of(stands);
  if (!read.empty()) add_rule(stands, Exclusion::kNone, 0);
}

}  // namespace

LatticeRules make_rules(const std::vector<Parameter>& parameters, const JobFacts& facts,
                        const std::vector<Expression>& constraints, const Vocabulary& vocabulary,
                        LatticePoints points) {
  return Binder(parameters, facts, vocabulary, points).rules(constraints);
}

namespace {

// Memory for about a gigabyte of residues. Further residues are not stored, so their counts are computed each time.
constexpr std::size_t kMostRemembered = 4'000'000;
// One or two seconds. Counting two parameters with a million values each, tied by x + y < 90, would take days.
constexpr std::size_t kMostVisits = 5'000'000;

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

// A draw from the whole lattice costs one check of each rule, and is rejected as often as the counts say. A descent
// costs one check for each value of each parameter. Both are exact.
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
    if (steps_[depth].free) {  // all values have equally many points below them
      const Count each = below(depth + 1, assignment, nullptr);
      const Count rest = std::fmod(left, each);
      const Count digit = (left - rest) / each;
      bind(variable, std::min(values - 1, static_cast<std::size_t>(digit)), assignment);
      left = rest;
      continue;
    }
    std::size_t last = values;  // of those with points below; rounding of huge counts may lead beyond all of them
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

}  // namespace krigtune::space
