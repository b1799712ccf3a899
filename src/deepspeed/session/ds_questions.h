#pragma once
#include <string>
#include <vector>

#include "core/clock.h"
#include "deepspeed/session/deepspeed_session.h"
#include "deepspeed/session/session_of_job.h"

// What only a launch of the user's job can tell. Answers are recorded beside the run's directory, with a directory of
// each launch, so that the same job need not be asked again.
namespace krigtune::deepspeed {

/// The size of the model: one launch at the smallest micro-batch of the session of `inputs`, and on accelerators a
/// second one at a larger one, which tells what a sequence's activations take (model_info.json). Returns what the job
/// told, nothing where it did not, and adds a line on it to `remarks`.
DsModelFacts ask_for_model(const DsSessionInputs& inputs, const JobRequest& request, const Clock& clock,
                           std::vector<std::string>& remarks);

/// Whether the job trains with tensor parallelism (AutoTP), which only a trial can tell: a script may hand different
/// sequences to the ranks of a group, or hold layers that cannot be split. `made`: of `inputs`, with it in its space.
/// One trial of the baseline over groups of two ranks (tensor_parallel.json); where it fails a line that says why is
/// added to `remarks`. Nothing is recorded and nothing may be launched: no.
bool splits_tensors(const DsSessionInputs& inputs, const DsSession& made, const JobRequest& request, const Clock& clock,
                    std::vector<std::string>& remarks);

}  // namespace krigtune::deepspeed
