#pragma once
#include <string>

#include "engine/host/launch.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// What the libraries that this program is linked with say, as one line of JSON: GPUs and why there are none, the
/// driver's and the libraries' versions. Works without a driver.
struct DeviceProbe {
  int gpus = 0;
  std::string json;
};
DeviceProbe probe_devices();

/// Which process of its machine this is, by what torchrun, Open MPI or srun put into the environment; without it, rank
/// `rank` of machines with `gpus` GPUs each. Throws UserError for what is no number.
int local_rank_from(const engine::Environment& environment, int rank, int gpus);

/// On GPUs: what krigtune-bench-cuda is made of.
BenchEngine cuda_engine();

}  // namespace krigtune::bench
