#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "programs/krigtune/command.h"
#include "programs/krigtune/deepspeed_record.h"

namespace krigtune::cli {

/// Asks the job for the size of its model: one launch at the smallest micro-batch of `session`, and on accelerators a
/// second one at a larger one, which tells what a sequence's activations take. Records the answer in `directory`
/// (model_info.json, and a directory of each launch), so that the same job need not be asked again. Returns the model,
/// empty where the job did not tell it, and adds a line on it to `remarks`.
deepspeed::DsModelFacts model_of_job(const Context& context, const deepspeed::DsSessionInputs& inputs,
                                     const deepspeed::DsSession& session, const std::filesystem::path& directory,
                                     JobLaunches launches, std::vector<std::string>& remarks);

}  // namespace krigtune::cli
