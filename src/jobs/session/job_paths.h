#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/session/job_session.h"

// The path that a job is named by, and relative paths: a command's are relative to where it is typed, a session's to
// where it lies.
namespace krigtune::jobs {

/// Returns what relative paths of the written session refer to.
std::filesystem::path base_of(const JobRequest& request);

/// Returns the block "set" of a runner, whose keys are files as the command names them, with keys as the written
/// session must name them.
Json named_from_session(const JobRequest& request, const Json& set);

/// Returns the path that represents the job: the script as named in the command; for a module, its last part.
std::filesystem::path job_file(const std::vector<std::string>& command);
/// Returns the job's name for people and directories: that path without directory and suffix.
std::string job_name(const std::vector<std::string>& command);

}  // namespace krigtune::jobs
