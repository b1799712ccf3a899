#pragma once
#include "krigtune/schedule/setting.h"
#include "memory/memory_profile.h"

namespace krigtune {

/// What is in memory all the time, of one rank.
struct StateBytes {
  MomentBytes device;
  MomentBytes host;
  std::int64_t rounded_bytes = 0;         ///< on the device at the end of the step: parameters on their way to the host
  std::int64_t host_transient_bytes = 0;  ///< on their way to or from the device, at most
};

/// Of krigtune-bench: its schedule::Stores, to the byte.
StateBytes state_bytes(const schedule::Setting& setting);

}  // namespace krigtune
