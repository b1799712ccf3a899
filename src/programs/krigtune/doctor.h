#pragma once
#include <string>
#include <vector>

#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

enum class Health { kOk, kWarn, kFail, kSkip };
const char* to_string(Health health);  ///< OK, WARN, FAIL, SKIP

struct Finding {
  std::string name;
  Health health = Health::kOk;
  std::string what;        ///< what was found
  std::string cost;        ///< what it means for the user, and the mend, in lines; empty: nothing
  bool is_needed = false;  ///< no trial runs without it
};

/// Looks at everything once. Starts no program but krigtune-bench-cuda --version and, where Slurm is, its sinfo and
/// scontrol; writes nothing; works on a login node.
std::vector<Finding> examine(const Console& console);

/// GPUs that the CUDA driver shows; 0 without a driver.
int count_gpus();

}  // namespace krigtune::cli
