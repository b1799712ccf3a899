#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "programs/krigtune/command.h"
#include "search/model/job_summary.h"

namespace krigtune::cli {

/// A session with what an earlier run says about its job.
struct InferredSession {
  std::string text;                   ///< of the session file, with comments
  std::vector<std::string> inferred;  ///< blocks that are not those of the run: "workload", "cluster"
  std::string remark;                 ///< one line for the user: what was inferred
  std::vector<std::string> warnings;
  search::JobSummary job;
  bool may_hold_a_secret = false;  ///< only its owner may read the run's own record
};

/// Returns the session of a run, with a workload and a cluster where it says nothing of them or where its trials
/// contradict it. `file`: where it will be written. Throws UserError if nothing can be inferred.
InferredSession inferred_session(const Context& context, const std::filesystem::path& directory,
                                 const std::filesystem::path& file);

}  // namespace krigtune::cli
