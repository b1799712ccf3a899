#pragma once
#include <cstdint>

#include "bench/bench_result.h"
#include "host/launch.h"
#include "host/processes.h"

namespace krigtune {

/// The environment of this process.
Environment process_environment();

/// Throws UserError where so many processes cannot train what the job's cluster describes.
void check_cluster(const ClusterSpec& cluster, const Launch& launch);

/// If any process has failed so far, all have: with the ending of the first of them. Every process calls it.
BenchEnding agreed_ending(const BenchEnding& mine, Processes* processes);

/// What the exception that is being handled means for the run.
BenchEnding ending_of_current_exception(Processes* processes);

}  // namespace krigtune
