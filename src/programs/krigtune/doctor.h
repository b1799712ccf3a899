#pragma once
#include <string>
#include <vector>

#include "machine/finding.h"
#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

using machine::Finding;
using machine::Health;

/// Examines everything once. Starts only krigtune-bench-cuda --version and, if present, nvidia-smi and Slurm's sinfo
/// and scontrol. Writes nothing, and works on a login node.
std::vector<Finding> examine(const Console& console);

/// Returns the number of GPUs that the CUDA driver reports; 0 without a driver.
int count_gpus();

}  // namespace krigtune::cli
