// From parameters, facts and constraints to rules. A parameter p is read as
//
//   exists(p) ? stands_for(p) : absent        exists(p) = its "when" holds
//   stands_for(p) = no_effect(p) ? first : (p holds all parameters ? smallest that does : p)
//
// and stands_for(p) = p where only representatives are looked at: then a rule of its own says so.
#include "lattice_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "canonical.h"
#include "domains.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

// An error that says already which condition it is about.
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
  return node(BoundOp::kHolds, condition(*parameter.when, where, false));
}

int Binder::no_effect(std::size_t i) {
  const Expression* where = facts_.well_known ? condition_of_no_effect(parameters_[i].name) : nullptr;
  return where == nullptr ? -1 : node(BoundOp::kHolds, condition(*where, parameters_[i].name, true));
}

int Binder::stands_for(std::size_t i) {
  const Parameter& parameter = parameters_[i];
  int value = result_.expressions.variable(BoundOp::kVariable, i);
  if (points_ == LatticePoints::kRepresentatives && !parameter.continuous()) return value;
  const std::optional<std::int64_t>& all = facts_.parameter_count;
  if (facts_.well_known && all && is_bucket(parameter.name)) {
    const auto elems = static_cast<double>(*all);
    const Value held = canonical_value(parameter, number_value(elems), false, all);
    const int holds_all = node(BoundOp::kLessEqual, constant(elems), value);
    value = node(BoundOp::kSelect, holds_all, constant(words_.number_of(held)), value);
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

// The identities of krigtune/space/batch.h as expressions, whose bounds are known before all parameters are.
int Binder::dp() {
  const int ways = node(BoundOp::kProduct, otherwise(kTensorParallel, 1.0), otherwise(kPipelineParallel, 1.0));
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
  const int ranks = constant(static_cast<double>(facts_.ranks));
  const int tensor = otherwise(kTensorParallel, 1.0);
  const int pipeline = otherwise(kPipelineParallel, 1.0);
  add_rule(node(BoundOp::kAnd, divides(tensor, ranks), divides(pipeline, node(BoundOp::kDivide, ranks, tensor))),
           Exclusion::kRanksNotDivisible, 0);
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
    const int smallest = smallest_that_holds(parameter, all);
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

}  // namespace krigtune
