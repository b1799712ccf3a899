#include "space/ranges.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <limits>
namespace krigtune::space {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool exact(const BoundRange& a) { return a.low == a.high; }

// Returns the kinds of an operation on a and b: absent if either is, otherwise undefined if either is.
BoundRange kinds(const BoundRange& a, const BoundRange& b) {
  BoundRange result;
  result.absent = a.absent || b.absent;
  const bool a_there = a.number || a.undefined;
  const bool b_there = b.number || b.undefined;
  result.undefined = a_there && b_there && (a.undefined || b.undefined);
  result.number = a.number && b.number;
  return result;
}

void set_undefined(BoundRange& result, bool always) {
  result.undefined = true;
  if (always) result.number = false;
  result.low = -kInfinity;
  result.high = kInfinity;
}

// The bounds of a monotone operation are among its values at the corners.
template <class Operation>
BoundRange corners(const BoundRange& a, const BoundRange& b, Operation operation) {
  BoundRange result = kinds(a, b);
  if (!result.number) return result;
  const auto at = {operation(a.low, b.low), operation(a.low, b.high), operation(a.high, b.low),
                   operation(a.high, b.high)};
  result.low = std::min(at);
  result.high = std::max(at);
  const bool not_finite = std::any_of(at.begin(), at.end(), [](double value) { return !std::isfinite(value); });
  const bool both_exact = exact(a) && exact(b);
  // inf - inf and 0 * inf may also occur between the corners, so the mere possibility counts.
  if (both_exact ? std::isnan(result.low) : not_finite) set_undefined(result, both_exact);
  return result;
}

BoundRange divided(const BoundRange& a, const BoundRange& b) {
  BoundRange result = kinds(a, b);
  if (!result.number) return result;
  if (b.low <= 0.0 && b.high >= 0.0) {
    set_undefined(result, b.low == 0.0 && b.high == 0.0);
    return result;
  }
  return corners(a, b, [](double x, double y) { return x / y; });
}

BoundRange remainder(const BoundRange& a, const BoundRange& b) {
  BoundRange result = kinds(a, b);
  if (!result.number) return result;
  if (exact(a) && exact(b) && b.low != 0.0) return corners(a, b, [](double x, double y) { return std::fmod(x, y); });
  if (b.low <= 0.0 && b.high >= 0.0) {
    set_undefined(result, exact(b));
    return result;
  }
  const double widest = std::max(std::abs(b.low), std::abs(b.high));
  result.low = a.low >= 0.0 ? 0.0 : std::max(a.low, -widest);
  result.high = a.high <= 0.0 ? 0.0 : std::min(a.high, widest);
  if (!std::isfinite(a.low) || !std::isfinite(a.high)) result.undefined = true;
  return result;
}

BoundRange smaller_or_larger(BoundOp op, const BoundRange& a, const BoundRange& b) {
  BoundRange result = kinds(a, b);
  result.low = op == BoundOp::kMin ? std::min(a.low, b.low) : std::max(a.low, b.low);
  result.high = op == BoundOp::kMin ? std::min(a.high, b.high) : std::max(a.high, b.high);
  return result;
}

BoundRange logical(BoundOp op, const BoundRange& a, const BoundRange& b) {
  if (op == BoundOp::kAnd) {
    return BoundRange::truth(a.may_hold() && b.may_hold(), a.may_fail() || b.may_fail(),
                             (a.absent && (b.absent || b.may_hold())) || (b.absent && a.may_hold()));
  }
  return BoundRange::truth(a.may_hold() || b.may_hold(), a.may_fail() && b.may_fail(),
                           (a.absent && (b.absent || b.may_fail())) || (b.absent && a.may_fail()));
}

BoundRange compared(BoundOp op, const BoundRange& a, const BoundRange& b) {
  const BoundRange kind = kinds(a, b);
  bool may_hold = false;
  bool may_fail = kind.undefined;
  if (kind.number) {
    const bool may_equal = a.low <= b.high && b.low <= a.high;
    const bool must_equal = exact(a) && exact(b) && a.low == b.low;
    switch (op) {
      case BoundOp::kEqual:
        may_hold = may_equal;
        may_fail = may_fail || !must_equal;
        break;
      case BoundOp::kNotEqual:
        may_hold = !must_equal;
        may_fail = may_fail || may_equal;
        break;
      case BoundOp::kLess:
        may_hold = a.low < b.high;
        may_fail = may_fail || a.high >= b.low;
        break;
      default:
        may_hold = a.low <= b.high;
        may_fail = may_fail || a.high > b.low;
    }
  }
  return BoundRange::truth(may_hold, may_fail, kind.absent);
}

}  // namespace

BoundRange BoundRange::truth(bool may_hold, bool may_fail, bool may_be_absent) {
  return {may_fail ? 0.0 : 1.0, may_hold ? 1.0 : 0.0, may_hold || may_fail, false, may_be_absent};
}

BoundRange combine(BoundOp op, const BoundRange& a, const BoundRange& b) {
  switch (op) {
    case BoundOp::kSum:
      return corners(a, b, [](double x, double y) { return x + y; });
    case BoundOp::kProduct:
      return corners(a, b, [](double x, double y) { return x * y; });
    case BoundOp::kMin:
    case BoundOp::kMax:
      return smaller_or_larger(op, a, b);
    case BoundOp::kAnd:
    case BoundOp::kOr:
      return logical(op, a, b);
    case BoundOp::kDivide:
      return divided(a, b);
    case BoundOp::kModulo:
      return remainder(a, b);
    case BoundOp::kOtherwise: {
      if (!a.absent) return a;
      BoundRange there = a;
      there.absent = false;
      return there.number || there.undefined ? either(there, b) : b;
    }
    default:
      return compared(op, a, b);
  }
}

BoundRange combine(BoundOp op, const BoundRange& a) {
  switch (op) {
    case BoundOp::kNot:
      return BoundRange::truth(a.may_fail(), a.may_hold(), a.absent);
    case BoundOp::kIsTrue:
      return BoundRange::truth(a.may_hold(), a.may_fail() || a.absent, false);
    default:
      assert(op == BoundOp::kNegate);
      return {-a.high, -a.low, a.number, a.undefined, a.absent};
  }
}

BoundRange identity(BoundOp op) {
  switch (op) {
    case BoundOp::kSum:
    case BoundOp::kOr:
      return BoundRange::exactly(0.0);
    case BoundOp::kMin:
      return BoundRange::exactly(kInfinity);
    case BoundOp::kMax:
      return BoundRange::exactly(-kInfinity);
    default:
      return BoundRange::exactly(1.0);
  }
}

BoundRange either(const BoundRange& a, const BoundRange& b) {
  BoundRange result = a.number ? a : b;
  if (a.number && b.number) {
    result.low = std::min(a.low, b.low);
    result.high = std::max(a.high, b.high);
  }
  result.number = a.number || b.number;
  result.undefined = a.undefined || b.undefined;
  result.absent = a.absent || b.absent;
  return result;
}

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

double axis_position(Scale scale, double low, double high, double value) {
  if (scale == Scale::kLog) return std::log(value / low) / std::log(high / low);
  // Computes with halves, so that a range as wide as all doubles does not overflow.
  return (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
}

double axis_value(Scale scale, double low, double high, double at) {
  if (scale == Scale::kLog) return low * std::exp(at * std::log(high / low));
  return low * (1.0 - at) + high * at;
}

double real_at(const Parameter& continuous, double at) {
  const RealRange& range = *continuous.range;
  if (at <= 0.0) return range.min;
  if (at >= 1.0) return range.max;
  return std::clamp(axis_value(continuous.scale, range.min, range.max, at), range.min, range.max);
}

}  // namespace krigtune::space
