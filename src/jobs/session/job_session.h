#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "session/session.h"
#include "workload/node_gpus.h"

namespace krigtune::jobs {

// Any training job as a session to tune: the user's command, unchanged, and what of it may vary.
//
//   JobRequest request;
//   request.command = {"python", "train.py", "--mbs", "4"};
//   request.vary = {"micro_batch=--mbs:1,2,4,8"};
//   request.metric = "tokens/s ([0-9.]+)";
//   request.directory = std::filesystem::current_path();
//   const JobSession made = session_of_job(request);

struct JobRequest {
  std::vector<std::string> command;        ///< as it is typed in a shell; words NAME=value may stand before the program
  std::vector<std::string> vary;           ///< NAME=FLAG:VALUES each: vary.h
  std::optional<std::string> metric;       ///< a regular expression with one group, the number
  bool minimize = false;                   ///< of the metric
  bool last_line = false;                  ///< the metric's last line counts, and trials run to their end
  std::string recipe;                      ///< name or path; "": the one that knows the command, if any does
  std::filesystem::path session;           ///< the user's own: what the command does not say is taken from it; "": none
  std::filesystem::path directory;         ///< that the command's paths are relative to; absolute
  std::string typed_as = "krigtune tune";  ///< for lines to copy
  /// Of the environment; empty: not set.
  std::function<std::optional<std::string>(const std::string& name)> variable = [](const std::string&) {
    return std::optional<std::string>();
  };
  /// Asks this node for its GPUs. Called at most once.
  std::function<workload::NodeGpus()> find_gpus = [] { return workload::NodeGpus{}; };
};

/// As it is written, before it is read.
struct WrittenSession {
  Json json;                          ///< for read_session()
  std::vector<std::string> remarks;   ///< one line each, for the user: what was assumed or left out
  std::vector<std::string> notes;     ///< likewise: what there is to know of such jobs, whatever the command says
  std::optional<std::int64_t> ranks;  ///< that a launcher of the command says or finds around it
};

struct JobSession {
  Json json;                 ///< as written_session() made it
  session::Session session;  ///< read of it; its file is the script, or the user's session
  std::vector<std::string> remarks;
  std::vector<std::string> notes;
};

/// The session of the user's job.
/// - Baseline: what the command says itself; it need not be among the values to try.
/// - Space: what `vary` says, and of a job that a recipe knows what that one varies for this model and cluster.
/// - The sequences of a step are kept where micro_batch and gradient_accumulation_steps both vary and the command says
///   both.
/// - Objective: the metric, under the name "value"; without one what the recipe reads.
/// Throws UserError, one line with what to add: neither recipe nor `vary` (it names the flags that look like known
/// parameters), no metric, an option that is not understood (vary.h, varied_command.h); and as read_session() does.
WrittenSession written_session(const JobRequest& request);
/// The same, read. Throws UserError too where the user's session is of other ranks than the command starts.
JobSession session_of_job(const JobRequest& request);

/// What stands for the job's file: the script as the command names it; of a module the last part.
std::filesystem::path job_file(const std::vector<std::string>& command);
/// The name of the job for people and directories: that without directory and suffix.
std::string job_name(const std::vector<std::string>& command);

}  // namespace krigtune::jobs
