#pragma once
#include <string>
#include <vector>

#include "machine/finding.h"
#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

using machine::Finding;
using machine::Health;

/// Looks at everything once. Starts no program but krigtune-bench-cuda --version and, where they are, nvidia-smi and
/// Slurm's sinfo and scontrol; writes nothing; works on a login node.
std::vector<Finding> examine(const Console& console);

/// GPUs that the CUDA driver shows; 0 without a driver.
int count_gpus();

}  // namespace krigtune::cli
