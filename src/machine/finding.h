#pragma once
#include <string>
#include <vector>

namespace krigtune::machine {

enum class Health { kOk, kWarn, kFail, kSkip };
const char* to_string(Health health);  ///< OK, WARN, FAIL, SKIP

/// What can make a job slow; a check, or a rate that is too low, may explain it.
enum class Slowness {
  kDevice,    ///< kernels: products and operations limited by the device's memory bandwidth
  kHost,      ///< the program that issues kernels, data loading, copies between host and device
  kNode,      ///< collectives within a node
  kNetwork,   ///< collectives between nodes
  kStraggler  ///< one rank slower than the others
};

/// The finding of one check.
struct Finding {
  std::string name;
  Health health = Health::kOk;
  std::string what;                     ///< what was found
  std::string cost;                     ///< consequence for the user and the fix, in lines; empty: nothing
  bool is_needed = false;               ///< no trial can run without it
  std::vector<Slowness> explains = {};  ///< for a warning
};

}  // namespace krigtune::machine
