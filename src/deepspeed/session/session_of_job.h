#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/json.h"
#include "jobs/installed/model_probe.h"
#include "session/session.h"
#include "workload/node_gpus.h"

namespace krigtune::deepspeed {

// The user's DeepSpeed job as a session to tune: its file and its command are read, this machine is looked at, and what
// only a launch can tell is asked of the job itself.
//
//   JobRequest request;
//   request.ds_config = "ds_config.json";
//   request.command = {"deepspeed", "train.py", "--deepspeed_config", "ds_config.json"};
//   request.run_directory = "runs/ds_config";
//   const JobSession made = session_of_job(request, clock);

/// The purposes for which the user's job may be launched before the session is made. A recorded answer of the same job
/// is used in any case.
enum class JobLaunches {
  kAsNeeded,
  kNotForModel,  ///< not to determine the model's size
  kNone,         ///< a recorded failure is used, too
};

using workload::NodeGpus;

struct JobRequest {
  std::filesystem::path ds_config;
  /// The command that trains with it; empty: a session whose runner is "none"
  std::vector<std::string> command;
  /// The user's own session, which then runs the command; empty: a new one is made.
  std::filesystem::path session;
  std::optional<std::filesystem::path> hf_config;  ///< config.json of Hugging Face transformers
  bool tensor_parallel = false;                    ///< also search AutoTP, if one trial with it succeeds
  /// If the number of ranks is unknown, assume this node's and say so in a remark; otherwise throw UserError.
  bool may_guess_ranks = false;
  /// Returns the GPUs of this node. Called at most once, and not at all if DS_ACCELERATOR is "cpu" or the job is
  /// refused because of its files. By default there are none.
  std::function<NodeGpus()> find_gpus = [] { return NodeGpus{}; };
  JobLaunches launches = JobLaunches::kNone;
  /// Lets the command's Python count the parameters of a workload's model, and returns a line about that
  /// (jobs/installed/model_probe.h). Empty: nobody is asked.
  std::function<std::string(const jobs::ProbedCommand& job, Json& workload)> count_parameters = {};
  /// Directory of the run. The job's answers are stored beside it, in <run_directory>.model, which a fresh run does not
  /// delete.
  std::filesystem::path run_directory;
  std::function<void(const std::string&)> progress = [](const std::string&) {};  ///< called before each launch
};

struct JobSession {
  Json json;                 ///< made by session_of_job(), or the user's own with the command as its runner
  session::Session session;  ///< read from it
  /// One line each, for the user: assumptions, omissions and settings without effect.
  std::vector<std::string> remarks;
};

/// Returns the user's session, or one made for this machine (deepspeed_session.h), with the user's command as its
/// runner.
/// - Ranks: those that the command states, otherwise from the environment and this node. A job on other nodes is
/// assumed to run on nodes like this one, with a remark.
/// - Model: if its size is not known otherwise, the job is launched once to determine it, and on accelerators once more
/// for its activations, if `launches` allows it.
/// - Tensor parallelism: if requested, one more launch shows whether the job trains with it.
///
/// Throws UserError if the command names another file than `ds_config` or the session has other ranks, and like
/// deepspeed_session() and read_session(). `clock` is used only during the call.
JobSession session_of_job(const JobRequest& request, const Clock& clock);

}  // namespace krigtune::deepspeed
