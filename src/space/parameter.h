#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "space/configuration.h"
#include "space/expression.h"

namespace krigtune::space {

/// How the values of a parameter lie on the surrogate's [0, 1] axis.
enum class Scale {
  kRank,    ///< a list of numbers or booleans: by position, evenly
  kLinear,  ///< a range
  kLog,     ///< a range with "scale": "log" or "log2"
};

/// Every real number of [min, max].
struct RealRange {
  double min = 0.0;
  double max = 1.0;
};

/// One tunable parameter: a finite, ordered list of values, or a range of real numbers.
struct Parameter {
  std::string name;
  std::vector<Value> values;                      ///< distinct, in order, at least one; empty where `range` is set
  Scale scale = Scale::kRank;                     ///< ignored for a categorical one
  bool categorical = false;                       ///< text values: no order, compared by equality
  std::optional<RealRange> range = std::nullopt;  ///< continuous: "type": "real" without "steps"; scale kLinear or kLog
  std::optional<Expression> when =
      std::nullopt;  ///< the parameter exists only where this is true: elsewhere configurations lack it

  bool continuous() const { return range.has_value(); }
  /// Position of the value in the list, or -1.
  int index_of(const Value& value) const;
};

/// Reads the session's block "space": parameters in the order of the file.
/// A list: its values in order (all text: categorical). {"min", "max"}: every integer; "scale": "log2": the powers of
/// two within; "scale": "log" with "steps": spaced geometrically, both ends included, rounded, duplicates dropped;
/// "steps" without scale: spaced evenly, likewise. With "type": "real" nothing is rounded, and without "steps" every
/// real number is meant. {"values", "scale"}: a list, with a scale on the axis of a range. "when": a condition.
/// Throws UserError with the JSON pointer below `pointer`.
std::vector<Parameter> read_parameters(const nlohmann::ordered_json& space, const std::string& source,
                                       const std::string& pointer);

/// Writes a parameter so that read_parameters gives the same one: a list, {"values": [...], "scale": "log"} or
/// {"type": "real", "min", "max"}.
nlohmann::ordered_json to_json(const Parameter& parameter);

/// What may stand behind the name of a parameter in a session, as a JSON Schema.
nlohmann::ordered_json parameter_schema();

}  // namespace krigtune::space
