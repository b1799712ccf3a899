#include "domains.h"

#include <algorithm>

namespace krigtune {

std::vector<Domain> domains_of(const std::vector<Parameter>& parameters, Words& words) {
  std::vector<Domain> domains;
  for (const Parameter& parameter : parameters) {
    Domain domain;
    domain.continuous = parameter.continuous();
    for (const Value& value : parameter.values) domain.values.push_back(words.number_of(value));
    if (domain.continuous) {
      domain.low = parameter.range->min;
      domain.high = parameter.range->max;
    } else {
      domain.low = *std::min_element(domain.values.begin(), domain.values.end());
      domain.high = *std::max_element(domain.values.begin(), domain.values.end());
    }
    domains.push_back(std::move(domain));
  }
  return domains;
}

BoundOp bound_op(Operator op) {
  switch (op) {
    case Operator::kOr:
      return BoundOp::kOr;
    case Operator::kAnd:
      return BoundOp::kAnd;
    case Operator::kEqual:
      return BoundOp::kEqual;
    case Operator::kNotEqual:
      return BoundOp::kNotEqual;
    case Operator::kLess:
    case Operator::kGreater:
      return BoundOp::kLess;
    case Operator::kLessEqual:
    case Operator::kGreaterEqual:
      return BoundOp::kLessEqual;
    case Operator::kMultiply:
      return BoundOp::kProduct;
    case Operator::kDivide:
      return BoundOp::kDivide;
    case Operator::kModulo:
      return BoundOp::kModulo;
    case Operator::kNot:
      return BoundOp::kNot;
    case Operator::kNegate:
      return BoundOp::kNegate;
    case Operator::kMin:
      return BoundOp::kMin;
    case Operator::kMax:
      return BoundOp::kMax;
    default:
      return BoundOp::kSum;
  }
}

}  // namespace krigtune
