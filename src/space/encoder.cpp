// Columns of the surrogate. In a range v_0 < ... < v_(n-1), a value v lies at
//
//   rank   i / (n - 1)                             (lists and booleans; i: position in the list)
//   linear (v - v_0) / (v_(n-1) - v_0)
//   log    log(v / v_0) / log(v_(n-1) / v_0)
//
// so that the values span [0, 1]. A value outside the list lies, by the same measure, between its neighbours or beyond
// an end; on the rank axis, positions beyond an end continue the slope of the last step. It lies at most one length of
// the axis beyond the end: a default of 5e8 beside a list that ends at 8000 would otherwise be a thousand axes away,
// and would contribute nothing.
//
// A parameter that does not exist in a configuration is put into the middle of its axis, or into a category of its own.
// Any constant would do. Whether it exists follows from other columns ("when"), so among the configurations without it
// this column is constant and adds nothing to the distance between them. Between configurations with and without it,
// the middle keeps the distance to at most half an axis, the smallest bound that a constant can give.
#include "space/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "krigtune/rng.h"
#include "space/ranges.h"

namespace krigtune::space {
namespace {

constexpr double kFarthest = 1.0;  // limit beyond an end, in lengths of the axis
constexpr double kAbsent = 0.5;

// A list of one value is no choice, so it has no column.
bool has_column(const Parameter& parameter) { return parameter.continuous() || parameter.values.size() >= 2; }

double number_at(const Parameter& parameter, std::size_t i) { return as_number(parameter.values[i]); }

// Returns the position of `value` relative to a (0) and b (1). It may be beyond either.
double fraction(double a, double b, double value) { return (value - a) / (b - a); }

double rank_position(const Parameter& parameter, double value) {
  const std::size_t last = parameter.values.size() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    const double at = fraction(number_at(parameter, i), number_at(parameter, i + 1), value);
    if (at >= 0.0 && at <= 1.0) return (static_cast<double>(i) + at) / static_cast<double>(last);
  }
  const bool before = std::abs(value - number_at(parameter, 0)) < std::abs(value - number_at(parameter, last));
  const std::size_t i = before ? 0 : last - 1;
  const double at = fraction(number_at(parameter, i), number_at(parameter, i + 1), value);
  // In a list without order a value may be larger than all others and yet not beyond this end; it is then placed at the
  // end.
  const double beyond = before ? std::min(at, 0.0) : std::max(at, 1.0);
  return (static_cast<double>(i) + beyond) / static_cast<double>(last);
}

double position_of_number(const Parameter& parameter, double value) {
  if (parameter.scale == Scale::kRank) return rank_position(parameter, value);
  const double low = number_at(parameter, 0);
  const double high = number_at(parameter, parameter.values.size() - 1);
  // This axis has no position for values <= 0: they are placed one step below the lowest value, as far as the next one
  // is above it.
  if (parameter.scale == Scale::kLog && value <= 0.0)
    return -std::log(number_at(parameter, 1) / low) / std::log(high / low);
  return axis_position(parameter.scale, low, high, value);
}

double position_of_real(const Parameter& parameter, double value) {
  if (parameter.scale == Scale::kLog && value <= 0.0) return -kFarthest;
  return axis_position(parameter.scale, parameter.range->min, parameter.range->max, value);
}

double position_of_index(const Parameter& parameter, std::size_t i) {
  if (parameter.scale == Scale::kRank) return static_cast<double>(i) / static_cast<double>(parameter.values.size() - 1);
  return position_of_number(parameter, number_at(parameter, i));
}

double position(const Parameter& parameter, const Value& value) {
  const int index = parameter.index_of(value);
  if (index >= 0) return position_of_index(parameter, static_cast<std::size_t>(index));
  if (std::holds_alternative<std::string>(value)) {
    throw UserError(fmt::format("'{}' is '{}', where the space has numbers", parameter.name, to_string(value)),
                    "write a number");
  }
  const double number = as_number(value);
  const double at =
      parameter.continuous() ? position_of_real(parameter, number) : position_of_number(parameter, number);
  return std::clamp(at, -kFarthest, 1.0 + kFarthest);
}

Value nearest_value(const Parameter& parameter, double at) {
  if (parameter.continuous()) return number_value(real_at(parameter, at));
  std::size_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < parameter.values.size(); ++i) {
    const double distance = std::abs(position_of_index(parameter, i) - at);
    if (distance < best_distance) {
      best_distance = distance;
      best = i;
    }
  }
  return parameter.values[best];
}

// Returns the squared distance. A different category counts as much as the length of an axis.
double squared_distance(const EncodedPoint& a, const EncodedPoint& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.ordered.size(); ++i) sum += std::pow(a.ordered[i] - b.ordered[i], 2);
  for (std::size_t i = 0; i < a.categories.size(); ++i) sum += a.categories[i] == b.categories[i] ? 0.0 : 1.0;
  return sum;
}

}  // namespace

Encoder::Encoder(const Space& space) : space_(space) {
  for (std::size_t i = 0; i < space_.parameters().size(); ++i) {
    const Parameter& parameter = space_.parameters()[i];
    if (!has_column(parameter)) continue;
    (parameter.categorical ? categorical_ : ordered_).push_back(static_cast<int>(i));
  }
}

EncodedPoint Encoder::encode(const Configuration& configuration) const {
  const auto value_of = [&](const Parameter& parameter) -> const Value* {
    const Value* value = configuration.find(parameter.name);
    if (value != nullptr || parameter.when) return value;
    throw UserError(fmt::format("the configuration '{}' lacks '{}'", configuration.text(), parameter.name), "add it");
  };
  EncodedPoint point;
  for (const int i : ordered_) {
    const Parameter& parameter = space_.parameters()[static_cast<std::size_t>(i)];
    const Value* value = value_of(parameter);
    point.ordered.push_back(value == nullptr ? kAbsent : position(parameter, *value));
  }
  for (const int i : categorical_) {
    const Parameter& parameter = space_.parameters()[static_cast<std::size_t>(i)];
    const Value* value = value_of(parameter);
    const int count = static_cast<int>(parameter.values.size());
    const int index = value == nullptr ? count + 1 : parameter.index_of(*value);
    point.categories.push_back(index >= 0 ? index : count);
  }
  return point;
}

Configuration Encoder::decode(const EncodedPoint& point) const {
  Configuration configuration;
  for (const Parameter& parameter : space_.parameters()) {
    configuration.set(parameter.name, parameter.continuous() ? Value(parameter.range->min) : parameter.values.front());
  }
  for (std::size_t column = 0; column < ordered_.size(); ++column) {
    const Parameter& parameter = space_.parameters()[static_cast<std::size_t>(ordered_[column])];
    configuration.set(parameter.name, nearest_value(parameter, point.ordered[column]));
  }
  for (std::size_t column = 0; column < categorical_.size(); ++column) {
    const Parameter& parameter = space_.parameters()[static_cast<std::size_t>(categorical_[column])];
    const auto index = static_cast<std::size_t>(point.categories[column]);
    if (index < parameter.values.size()) configuration.set(parameter.name, parameter.values[index]);
  }
  if (space_.complete(configuration) == Exclusion::kNone && space_.contains(configuration)) return configuration;
  return nearest_configuration(point);
}

Configuration Encoder::nearest_configuration(const EncodedPoint& point) const {
  constexpr std::int64_t kMostToWalk = 1'000'000;
  if (!space_.listable() || space_.lattice_count() > kMostToWalk) return near_configuration(point);
  Configuration best;
  double best_distance = std::numeric_limits<double>::infinity();
  space_.for_each([&](const Configuration& candidate) {
    const double distance = squared_distance(encode(candidate), point);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
    return true;
  });
  if (best.empty()) throw UserError("the space has no configuration", "widen its lists or loosen the constraints");
  return best;
}

// Takes the best of some draws, then moves step by step to the nearest neighbour. The draws are always the same, so
// decoding is a function.
Configuration Encoder::near_configuration(const EncodedPoint& point) const {
  constexpr int kDraws = 100;
  Rng rng(0, 0);
  Configuration best = space_.sample(rng);
  double best_distance = squared_distance(encode(best), point);
  const auto consider = [&](const Configuration& candidate) {
    const double distance = squared_distance(encode(candidate), point);
    if (distance >= best_distance) return false;
    best_distance = distance;
    best = candidate;
    return true;
  };
  for (int draw = 1; draw < kDraws; ++draw) consider(space_.sample(rng));
  for (bool nearer = true; nearer;) {
    nearer = false;
    for (const Configuration& neighbour : space_.neighbours(best)) nearer = consider(neighbour) || nearer;
  }
  return best;
}

std::vector<std::string> Encoder::ordered_names() const {
  std::vector<std::string> names;
  for (const int i : ordered_) names.push_back(space_.parameters()[static_cast<std::size_t>(i)].name);
  return names;
}

const Parameter& Encoder::ordered_parameter(int column) const {
  return space_.parameters()[static_cast<std::size_t>(ordered_[static_cast<std::size_t>(column)])];
}

const Parameter& Encoder::category_parameter(int column) const {
  return space_.parameters()[static_cast<std::size_t>(categorical_[static_cast<std::size_t>(column)])];
}

double Encoder::number_on_axis(int column, double at) const {
  const Parameter& parameter = ordered_parameter(column);
  if (parameter.continuous()) return axis_value(parameter.scale, parameter.range->min, parameter.range->max, at);
  const std::size_t last = parameter.values.size() - 1;
  if (parameter.scale != Scale::kRank) {
    return axis_value(parameter.scale, number_at(parameter, 0), number_at(parameter, last), at);
  }
  const double place = at * static_cast<double>(last);
  const auto before = static_cast<std::size_t>(std::clamp(std::floor(place), 0.0, static_cast<double>(last - 1)));
  return std::lerp(number_at(parameter, before), number_at(parameter, before + 1), place - static_cast<double>(before));
}

}  // namespace krigtune::space
