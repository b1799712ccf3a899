#pragma once
#include "host/launch.h"

namespace krigtune::cuda {

/// Which process of its machine this is, by what torchrun, Open MPI or srun put into the environment; without it, rank
/// `rank` of machines with `gpus` GPUs each. Throws UserError for what is no number.
int local_rank_from(const Environment& environment, int rank, int gpus);

}  // namespace krigtune::cuda
