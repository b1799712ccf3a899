#pragma once
#include <map>
#include <string>
#include <vector>

#include "space/bound_expression.h"
#include "space/expression_syntax.h"
#include "space/parameter.h"

namespace krigtune::space {

/// Applies one operation to ranges by interval arithmetic; the bounds are exact if the operands' are. Because rounding
/// is monotone, they are also valid for rounded results.
BoundRange combine(BoundOp op, const BoundRange& a, const BoundRange& b);
BoundRange combine(BoundOp op, const BoundRange& a);
/// Returns the neutral element of kSum ... kOr.
BoundRange identity(BoundOp op);
BoundRange either(const BoundRange& a, const BoundRange& b);

// Numbers the texts, so that a lattice consists only of numbers.
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

/// Returns the operation on bound operands. > and >= become < and <= with exchanged operands; a - b becomes the sum of
/// a and -b.
BoundOp bound_op(Operator op);

/// Returns the position of a value on a linear or logarithmic scale on which `low` is 0 and `high` is 1; values outside
/// get positions outside [0, 1]. On a logarithmic scale, low and value must be > 0.
double axis_position(Scale scale, double low, double high, double value);
/// The inverse of axis_position.
double axis_value(Scale scale, double low, double high, double at);

/// Returns the number at a position on a real range's axis; never outside the range.
double real_at(const Parameter& continuous, double at);

}  // namespace krigtune::space
