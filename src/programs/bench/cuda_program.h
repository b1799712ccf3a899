#pragma once
#include <string>
#include <vector>

#include "engine/gpu_probe.h"
#include "programs/bench/bench_result.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// Empty where krigtune-bench-cuda can train on this machine's GPUs; starts it to see.
std::string why_no_gpu_is_used(const engine::GpuProbe& probe);

/// Where the job belongs on GPUs, this process becomes krigtune-bench-cuda, which lies beside this program, with the
/// same arguments. Returns otherwise: with exit code 0 if the CPU is meant, and then with a message if there are GPUs.
///
/// --device auto means GPUs where this build can use them and there is one for each rank of a node; where the job
/// imitates a network, one is enough.
BenchEnding hand_over_to_cuda(const BenchOptions& options, const std::vector<std::string>& arguments);

}  // namespace krigtune::bench
