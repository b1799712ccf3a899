#pragma once
#include <filesystem>

#include "core/json.h"
#include "jobs/session/job_session.h"

// Relative paths: a command's are relative to where it is typed, a session's to where it lies.
namespace krigtune::jobs {

/// Returns what relative paths of the written session refer to.
std::filesystem::path base_of(const JobRequest& request);

/// Returns the block "set" of a runner, whose keys are files as the command names them, with keys as the written
/// session must name them.
Json named_from_session(const JobRequest& request, const Json& set);

}  // namespace krigtune::jobs
