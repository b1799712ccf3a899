#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "space/expression_syntax.h"
#include "space/parameter.h"
#include "space/space.h"
#include "space/well_known.h"

namespace krigtune::space {

/// What names mean in a space: parameters, facts of the job, and well-known parameters that the space lacks and whose
/// default applies.
class Vocabulary {
 public:
  Vocabulary(const std::vector<Parameter>& parameters, const JobFacts& facts);

  struct Meaning {
    enum class Is { kNothing, kParameter, kConstant, kDp, kAccumulationSteps } is = Is::kNothing;
    std::size_t parameter = 0;
    Value constant = false;
  };
  Meaning meaning_of(std::string_view name) const;
  Kind kind_of(const Meaning& meaning) const;
  /// Returns the default of a well-known parameter, or nullptr if the name is not well-known.
  const Value* default_of(std::string_view name) const;
  /// Returns all names, for suggestions.
  std::vector<std::string> names() const;
  /// Throws "at character 3: unknown name 'x'; did you mean 'y'?".
  [[noreturn]] void fail_unknown(const Expression::Node& name) const;
  /// Returns whether gradient_accumulation_steps follows from the batch size.
  bool derives_accumulation() const;

  /// Returns the value of `name` in a configuration, whose values may be any. Returns nullptr if the configuration
  /// lacks the parameter or the name is unknown; with `defaults`, a missing well-known parameter has its default. The
  /// result is valid as long as `scratch` and the configuration exist.
  const Value* look_up(std::string_view name, const Configuration& configuration, bool defaults, Value& scratch) const;
  std::optional<bool> holds(const Expression& condition, const Configuration& configuration, bool defaults) const;

 private:
  double dp(const Configuration& configuration) const;
  /// Returns the name that the space has for a well-known parameter.
  std::string name_of(const char* known) const;

  const std::vector<Parameter> parameters_;
  JobFacts facts_;
  std::map<std::string, Value, std::less<>> constants_;
};

/// Returns the condition under which a knob has no effect and therefore only one value, the first of its range; nullptr
/// if it always has an effect. The result is valid until the program ends.
const Expression* condition_of_no_effect(const std::string& knob);

/// Returns whether all sizes of this bucket that hold `elems` are equivalent and count as one value, the smallest of
/// the range.
bool is_bucket(const std::string& knob);
/// Returns the position of the smallest value of the list that holds `elems`, or -1.
int smallest_that_fits(const Parameter& bucket, double elems);

/// Returns the canonical value that is equivalent to `value`. `no_effect`: the knob has no effect.
Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count);

/// Returns the first value of the list, or of the range.
Value first_value(const Parameter& parameter);

}  // namespace krigtune::space
