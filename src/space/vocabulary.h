#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expression_node.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/space.h"

namespace krigtune {

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

}  // namespace krigtune
