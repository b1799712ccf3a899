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

/// Reads and writes the key "gpus_per_trial" of every kind of executor: a number, or a text ("auto", a parameter, an
/// expression).
Codec<std::string> gpus_codec();

/// The number of GPUs of a trial: an expression over parameters and facts of the job, like those in commands.
class GpuCount {
 public:
  /// Throws UserError if the expression is invalid or uses an unknown name.
  GpuCount(const std::string& text, const space::Space& space);

  /// Returns the number for one configuration. Throws UserError if it is not a whole number of at least 1.
  std::int64_t of(const space::Configuration& configuration) const;
  /// Returns the smallest number over all values of the parameters that it uses. Throws as `of` does.
  std::int64_t least(const space::Space& space) const;

 private:
  trial::JobNames names_;
  space::Expression expression_;
};

}  // namespace krigtune::executor
