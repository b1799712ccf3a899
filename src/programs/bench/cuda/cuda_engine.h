#pragma once
#include <string>

#include "engine/host/launch.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// What NVIDIA's libraries say, as one line of JSON: GPUs and why there are none, the
/// driver's and the libraries' versions, where they are and for which GPUs the kernels were compiled. Works without
/// any.
struct DeviceProbe {
  int gpus = 0;
  std::string json;
};
DeviceProbe probe_devices();

/// Which process of its machine this is, by what torchrun, Open MPI or srun put into the environment; without it, rank
/// `rank` of machines with `gpus` GPUs each. Throws UserError for what is no number.
int local_rank_from(const engine::Environment& environment, int rank, int gpus);

/// What krigtune-bench and krigtune doctor are told that start this program with --version to look: the library without
/// which nothing can be trained and where it was looked for, or nothing.
std::string why_it_cannot_start();

/// On GPUs: what krigtune-bench-cuda is made of.
BenchEngine cuda_engine();

}  // namespace krigtune::bench
