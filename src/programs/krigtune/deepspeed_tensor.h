#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "programs/krigtune/command.h"
#include "programs/krigtune/deepspeed_record.h"

namespace krigtune::cli {

/// Whether the job trains with tensor parallelism (AutoTP), which only a trial can tell: a script may hand different
/// sequences to the ranks of a group, or hold layers that cannot be split. `session`: made with it in its space. One
/// trial of the baseline over groups of two ranks, recorded in `directory`; where it fails a line that says why is
/// added to `remarks`. Nothing is recorded and nothing may be launched: no.
bool splits_tensors(const Context& context, const deepspeed::DsSessionInputs& inputs,
                    const deepspeed::DsSession& session, const std::filesystem::path& directory, JobLaunches launches,
                    std::vector<std::string>& remarks);

}  // namespace krigtune::cli
