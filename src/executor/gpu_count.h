#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/codec.h"
#include "space/expression.h"
#include "space/space.h"
#include "trial/placeholders.h"

namespace krigtune::executor {

inline constexpr const char* kAutoGpus = "auto";

/// The key "gpus_per_trial" of every kind of executor: a number, or a text ("auto", a parameter, an expression).
Codec<std::string> gpus_codec();

/// How many GPUs a trial has: an expression over parameters and facts of the job, as commands may use them.
class GpuCount {
 public:
  /// Throws UserError for an expression that is none, or that uses a name nobody knows.
  GpuCount(const std::string& text, const space::Space& space);

  /// Throws UserError where it is no whole number from 1 on.
  std::int64_t of(const space::Configuration& configuration) const;
  /// The smallest over the values of the parameters that it uses. Throws as `of`.
  std::int64_t least(const space::Space& space) const;

 private:
  trial::JobNames names_;
  space::Expression expression_;
};

}  // namespace krigtune::executor
