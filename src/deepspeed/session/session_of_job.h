#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/json.h"
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

/// What the user's job may be launched for before the session is made. An answer of the same job that is recorded
/// counts in any case.
enum class JobLaunches {
  kAsNeeded,
  kNotForModel,  ///< not for the size of its model
  kNone,         ///< a recorded failure counts too
};

using workload::NodeGpus;

struct JobRequest {
  std::filesystem::path ds_config;
  std::vector<std::string> command;                ///< that trains with it; empty: a session whose runner is "none"
  std::filesystem::path session;                   ///< the user's own, which the command then runs; empty: one is made
  std::optional<std::filesystem::path> hf_config;  ///< config.json of Hugging Face transformers
  bool tensor_parallel = false;                    ///< search AutoTP too, if one trial with it succeeds
  /// Where nobody says how many ranks there are, take this node's and say so in a remark; otherwise a UserError.
  bool may_guess_ranks = false;
  /// Asks this node for its GPUs. Called at most once: where DS_ACCELERATOR is "cpu", or the job is refused for its
  /// files alone, not at all. Unless somebody sets it, there are none.
  std::function<NodeGpus()> find_gpus = [] { return NodeGpus{}; };
  JobLaunches launches = JobLaunches::kNone;
  /// Of the run. What the job was asked is kept beside it, in <run_directory>.model, which a fresh run leaves alone.
  std::filesystem::path run_directory;
  std::function<void(const std::string&)> progress = [](const std::string&) {};  ///< told of each launch before it
};

struct JobSession {
  Json json;                         ///< as session_of_job() made it, or the user's own with the command as its runner
  session::Session session;          ///< read of it
  std::vector<std::string> remarks;  ///< one line each, for the user: what was assumed, left out or has no effect
};

/// The user's session, or one made for this machine (deepspeed_session.h), with the user's command as its runner.
/// - Ranks: what the command says, else the environment and this node. A job on other nodes is taken to run on nodes
///   like this one, with a remark.
/// - Model: where nothing else tells its size, the job is launched once to ask it, and on accelerators once more for
///   its activations, if `launches` let it.
/// - Tensor parallelism: where it is asked for, one more launch shows whether the job trains with it.
/// Throws UserError: a command that names another file than `ds_config`, a session of other ranks, and as
/// deepspeed_session() and read_session() do. `clock`: for the call only.
JobSession session_of_job(const JobRequest& request, const Clock& clock);

}  // namespace krigtune::deepspeed
