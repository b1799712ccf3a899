#pragma once
#include <map>
#include <string>
#include <vector>

#include "space/bound_expression.h"
#include "space/expression_syntax.h"
#include "space/parameter.h"

namespace krigtune::space {

/// One operation on ranges: bounds by interval arithmetic, exact where the operands are. Rounding is monotone, so the
/// bounds hold for the rounded results too.
BoundRange combine(BoundOp op, const BoundRange& a, const BoundRange& b);
BoundRange combine(BoundOp op, const BoundRange& a);
/// What does not change an operand of kSum ... kOr.
BoundRange identity(BoundOp op);
BoundRange either(const BoundRange& a, const BoundRange& b);

// Texts as numbers, so that all of a lattice is numbers.
class Words {
 public:
  double number_of(const std::string& word) {
    return words_.try_emplace(word, static_cast<double>(words_.size())).first->second;
  }
  double number_of(const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr ? number_of(*text) : as_number(value);
  }

 private:
  std::map<std::string, double> words_;
};

std::vector<Domain> domains_of(const std::vector<Parameter>& parameters, Words& words);

/// The operation on bound operands; > and >= are < and <= of exchanged ones, a - b is the sum of a and -b.
BoundOp bound_op(Operator op);

/// Where a number lies between `low` (0) and `high` (1) on a linear or logarithmic scale, beyond them too. On a
/// logarithmic one low and value are above 0.
double axis_position(Scale scale, double low, double high, double value);
/// Its inverse.
double axis_value(Scale scale, double low, double high, double at);

/// The number at a place of a real range's axis, never outside the range.
double real_at(const Parameter& continuous, double at);

}  // namespace krigtune::space
