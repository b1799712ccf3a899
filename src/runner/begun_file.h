#pragma once
#include <filesystem>
#include <string>

#include "runner/runner.h"

// The user's own file that trials edit (the ds_config.json of a DeepSpeed job). The run directory keeps it as it was
// when the session began, because people go on editing it, and a trial must mean the same at the end of a session as at
// its beginning. Without such a file these functions do nothing.
namespace krigtune::runner {

/// Returns the user's file; nullptr: trials edit none.
const std::filesystem::path* edited_file(const RunnerSpec& spec);
/// Returns the path of the run directory's copy; "" if trials edit none.
std::filesystem::path begun_file_in(const RunnerSpec& spec, const std::filesystem::path& run_directory);

/// Writes the copy, unless it is there.
void keep_begun_file(const RunnerSpec& spec, const std::filesystem::path& run_directory);
/// Lets trials start from the copy or, without one or with "" as the directory, from the user's file. Returns whether
/// the user's file still says the same.
bool recall_begun_file(RunnerSpec& spec, const std::filesystem::path& run_directory);
/// Returns whether trials of `spec` start from something else than the copy in the directory.
bool begins_otherwise(const RunnerSpec& spec, const std::filesystem::path& run_directory);

}  // namespace krigtune::runner
