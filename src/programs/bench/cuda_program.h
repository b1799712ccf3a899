#pragma once
#include <string>
#include <vector>

#include "engine/gpu_probe.h"
#include "programs/bench/bench_result.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// Returns why krigtune-bench-cuda cannot train on this machine's GPUs, empty if it can. Starts the program to find
/// out.
std::string why_no_gpu_is_used(const engine::GpuProbe& probe);

/// If the job belongs on GPUs, replaces this process by krigtune-bench-cuda, which lies beside this program, with the
/// same arguments. Otherwise returns: with exit code 0 if the CPU is meant, with a message if that leaves GPUs unused.
///
/// --device auto means GPUs if this build can use them and there is one for each rank of a node. If the job emulates a
/// network, one GPU is enough.
BenchEnding hand_over_to_cuda(const BenchOptions& options, const std::vector<std::string>& arguments);

}  // namespace krigtune::bench
