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

/// What names mean in a space: parameters, facts of the job, and well-known parameters that are not in the space and
/// stand for their default.
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
  /// What a well-known parameter is where it is absent; nullptr: no such.
  const Value* default_of(std::string_view name) const;
  /// All of them, for suggestions.
  std::vector<std::string> names() const;
  /// "at character 3: unknown name 'x'; did you mean 'y'?"
  [[noreturn]] void fail_unknown(const Expression::Node& name) const;
  /// Whether gradient_accumulation_steps follows from the batch size.
  bool derives_accumulation() const;

  /// The value of `name` in a configuration, whatever its values are. nullptr: a parameter that it lacks, or no name.
  /// With `defaults`, a well-known parameter that it lacks stands for its default.
  /// The result lives as long as `scratch` and the configuration.
  const Value* look_up(std::string_view name, const Configuration& configuration, bool defaults, Value& scratch) const;
  std::optional<bool> holds(const Expression& condition, const Configuration& configuration, bool defaults) const;

 private:
  double dp(const Configuration& configuration) const;

  const std::vector<Parameter> parameters_;
  JobFacts facts_;
  std::map<std::string, Value, std::less<>> constants_;
};

/// The condition under which a knob changes nothing: it then has one value, the first of its range. nullptr: it always
/// has an effect. It lives as long as the program.
const Expression* condition_of_no_effect(const std::string& knob);

/// Whether all sizes of this bucket that hold `elems` are alike: they are one value, the smallest of the range.
bool is_bucket(const std::string& knob);
/// Position of the smallest value of the list that holds `elems`, or -1.
int smallest_that_holds(const Parameter& bucket, double elems);

/// The value that stands for the meaning of `value`. `no_effect`: the condition holds.
Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count);

/// The first of the list, or of the range.
Value first_value(const Parameter& parameter);

}  // namespace krigtune::space
