#pragma once
#include "programs/krigtune/doctor.h"

namespace krigtune::cli {

/// Returns Slurm's version, partitions and limits, and what a session with the executor slurm would do here.
Finding examine_slurm(const Console& console);

}  // namespace krigtune::cli
