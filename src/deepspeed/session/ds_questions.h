#pragma once
#include <string>
#include <vector>

#include "core/clock.h"
#include "deepspeed/session/deepspeed_session.h"
#include "deepspeed/session/session_of_job.h"

// Questions that only a launch of the user's job can answer. The answers and a directory for each launch are stored
// beside the run directory, so that the same job is not launched for them again.
namespace krigtune::deepspeed {

/// Determines the size of the model with one launch at the smallest micro-batch of the session of `inputs` and, on
/// accelerators, a second one at a larger micro-batch that measures the activations per sequence (model_info.json).
/// Returns what the job reported, or nothing if it failed, and adds a line to `remarks`.
DsModelFacts ask_for_model(const DsSessionInputs& inputs, const JobRequest& request, const Clock& clock,
                           std::vector<std::string>& remarks);

/// Returns whether the job trains with tensor parallelism (AutoTP). Only a trial can tell, because a script may give
/// different sequences to the ranks of a group, or contain layers that cannot be split. `made`: the session of
/// `inputs`, with AutoTP in its space. Runs one trial of the baseline over groups of two ranks (tensor_parallel.json);
/// if it fails, a line with the reason is added to `remarks`. Returns false if nothing is recorded and no launch is
/// allowed.
bool splits_tensors(const DsSessionInputs& inputs, const DsSession& made, const JobRequest& request, const Clock& clock,
                    std::vector<std::string>& remarks);

}  // namespace krigtune::deepspeed
