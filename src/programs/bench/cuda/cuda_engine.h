#pragma once
#include <string>

#include "engine/host/launch.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// What NVIDIA's libraries report, as one line of JSON: the GPUs or why there are none, the versions of the driver and
/// the libraries, where they are, and for which GPUs the kernels were compiled. Works without any of them.
struct DeviceProbe {
  int gpus = 0;
  std::string json;
};
DeviceProbe probe_devices();

/// Returns the index of this process on its machine, from what torchrun, Open MPI or srun put into the environment.
/// Without that, ranks are assigned in order to machines with `gpus` GPUs each. Throws UserError if a variable is not a
/// number.
int local_rank_from(const engine::Environment& environment, int rank, int gpus);

/// Returns why training is impossible, for krigtune-bench and krigtune doctor, which start this program with --version:
/// the missing library and where it was looked for. Empty if nothing is missing.
std::string why_it_cannot_start();

/// The engine of krigtune-bench-cuda, which trains on GPUs.
BenchEngine cuda_engine();

}  // namespace krigtune::bench
