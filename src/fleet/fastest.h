#pragma once
#include <cstdint>
#include <optional>

#include "session/memory_filter.h"
#include "session/session.h"

namespace krigtune::fleet {

/// The fastest configurations of a session's space, by samples a second.
struct Fastest {
  std::int64_t looked_at = 0;
  std::optional<space::Configuration> sure;    ///< surely fits into memory
  std::optional<space::Configuration> likely;  ///< fits more likely than not; at least as fast as `sure`
};

/// Looks at every configuration or, if the space has more than a million or is continuous, at a random sample. What
/// plan_study.h finds too, but memory is predicted only of configurations that are faster than the best one so far.
/// Requires that the session's times can be predicted. The result does not depend on the number of threads.
Fastest find_fastest(const session::Session& session, const session::MemoryFilter& filter, unsigned threads);

}  // namespace krigtune::fleet
