#pragma once
#include <string>

#include "search/model/job_belief.h"

namespace krigtune::search {

/// Returns what trials say about a job that the session does not describe: "most likely a dense model of about 13
/// billion parameters (7 to 33), trained as by megatron". If the session does, returns a sentence only if the trials
/// contradict it. "" if there is nothing to say.
std::string job_sentence(const forecast::Hypotheses& hypotheses, const JobBelief& belief);

}  // namespace krigtune::search
