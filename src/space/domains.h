#pragma once
#include <map>
#include <string>
#include <vector>

#include "bound_expression.h"
#include "expression_node.h"
#include "krigtune/space/parameter.h"

namespace krigtune {

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

}  // namespace krigtune
