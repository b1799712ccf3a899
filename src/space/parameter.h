#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "space/configuration.h"
#include "space/expression.h"

namespace krigtune::space {

/// How the values of a parameter are mapped to the surrogate's [0, 1] axis.
enum class Scale {
  kRank,    ///< a list of numbers or booleans: evenly, by position
  kLinear,  ///< a range
  kLog,     ///< a range with "scale": "log" or "log2"
};

/// All real numbers in [min, max].
struct RealRange {
  double min = 0.0;
  double max = 1.0;
};

/// One tunable parameter: a finite, ordered list of values, or a range of real numbers.
struct Parameter {
  std::string name;
  std::vector<Value> values;                      ///< distinct and ordered, at least one; empty if `range` is set
  Scale scale = Scale::kRank;                     ///< ignored if categorical
  bool categorical = false;                       ///< text values: without order, compared for equality
  std::optional<RealRange> range = std::nullopt;  ///< continuous: "type": "real" without "steps"; scale kLinear or kLog
  std::optional<Expression> when =
      std::nullopt;  ///< the parameter exists only if this is true; otherwise configurations do not contain it

  bool continuous() const { return range.has_value(); }
  /// Returns the position of the value in the list, or -1.
  int index_of(const Value& value) const;
};

/// Reads the session's block "space"; the parameters are in the order of the file:
/// - a list: its values in order (categorical if all are text);
/// - {"min", "max"}: every integer; with "scale": "log2" the powers of two in the range; with "scale": "log" and
/// "steps" spaced geometrically, with "steps" alone evenly, both with the ends included, rounded and without
/// duplicates;
/// - with "type": "real": nothing is rounded, and without "steps" the parameter is continuous;
/// - {"values", "scale"}: a list that is placed on the axis like a range;
/// - "when": a condition.
///
/// Throws UserError with the JSON pointer below `pointer`.
std::vector<Parameter> read_parameters(const nlohmann::ordered_json& space, const std::string& source,
                                       const std::string& pointer);

/// Writes a parameter so that read_parameters returns the same one: a list, {"values": [...], "scale": "log"} or
/// {"type": "real", "min", "max"}.
nlohmann::ordered_json to_json(const Parameter& parameter);

/// Returns the JSON Schema of a parameter in a session.
nlohmann::ordered_json parameter_schema();

}  // namespace krigtune::space
