#pragma once
#include <string>
#include <vector>

namespace krigtune::machine {

enum class Health { kOk, kWarn, kFail, kSkip };
const char* to_string(Health health);  ///< OK, WARN, FAIL, SKIP

/// What can make a job slow: what a check, or a rate that is too low, may explain.
enum class Slowness {
  kDevice,    ///< kernels: products and what is bound by the device's memory
  kHost,      ///< the program that issues kernels, data loading, copies between host and device
  kNode,      ///< collectives within a node
  kNetwork,   ///< collectives between nodes
  kStraggler  ///< one rank slower than the others
};

/// What one check has found.
struct Finding {
  std::string name;
  Health health = Health::kOk;
  std::string what;                     ///< what was found
  std::string cost;                     ///< what it means for the user, and the fix, in lines; empty: nothing
  bool is_needed = false;               ///< no trial runs without it
  std::vector<Slowness> explains = {};  ///< where it is a warning
};

}  // namespace krigtune::machine
