#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/installed/model_probe.h"
#include "session/session.h"
#include "workload/node_gpus.h"

namespace krigtune::jobs {

// Turns any training job into a session: the user's unchanged command, and the parts of it that vary.
//
//   JobRequest request;
//   request.command = {"python", "train.py", "--mbs", "4"};
//   request.vary = {"micro_batch=--mbs:1,2,4,8"};
//   request.metric = "tokens/s ([0-9.]+)";
//   request.directory = std::filesystem::current_path();
//   const JobSession made = session_of_job(request);

struct JobRequest {
  std::vector<std::string> command;           ///< as typed in a shell; words NAME=value may precede the program
  std::vector<std::string> vary;              ///< NAME=FLAG:VALUES each: vary.h
  std::optional<std::string> metric;          ///< a regular expression with one group, the number
  std::vector<std::string> measure;           ///< NAME=REGEX each: further numbers to read
  bool minimize = false;                      ///< the metric is minimised
  bool last_line = false;                     ///< the last line with the metric counts, and trials run to their end
  std::optional<std::int64_t> warmup_steps;   ///< first measurements of a trial that do not count
  std::optional<std::int64_t> measure_steps;  ///< those after them, which do; empty: as the session or recipe says
  std::string recipe;                         ///< name or path; "": the one that matches the command, if any
  /// The user's own session, from which everything is taken that the command does not state; "": none.
  std::filesystem::path session;
  std::filesystem::path directory;  ///< base of the command's relative paths; absolute
  /// The folder of the written session, which its relative paths refer to; absolute; "": that of the user's own
  /// session, or else `directory`.
  std::filesystem::path written_in;
  std::string typed_as = "krigtune tune";  ///< prefix of lines to copy
  /// Returns an environment variable; empty if not set.
  std::function<std::optional<std::string>(const std::string& name)> variable = [](const std::string&) {
    return std::optional<std::string>();
  };
  /// Returns the GPUs of this node. Called at most once.
  std::function<workload::NodeGpus()> find_gpus = [] { return workload::NodeGpus{}; };
  /// Returns the id of the link between this node and others. Called at most once, and only for several nodes.
  std::function<std::optional<std::string>()> find_network = [] { return std::optional<std::string>(); };
  /// Lets the command's Python count the parameters of a workload's model, and returns a line about that
  /// (jobs/installed/model_probe.h). Empty: nobody is asked.
  std::function<std::string(const ProbedCommand& job, Json& workload)> count_parameters = {};
  /// Where trials run, if the command line says it: a kind of executor; "": as the session says, or here.
  std::string executor;
};

/// A session that is written but not yet read.
struct WrittenSession {
  Json json;                          ///< for read_session()
  std::vector<std::string> remarks;   ///< one line each, for the user: assumptions and omissions
  std::vector<std::string> notes;     ///< one line each: general advice about such jobs, regardless of the command
  std::optional<std::int64_t> ranks;  ///< stated by a launcher of the command or found in its surroundings
  std::string seen;                   ///< what was seen of a job without a workload: seen_facts.h; "" with one
};

struct JobSession {
  Json json;                 ///< as written_session() made it
  session::Session session;  ///< read from it; its file is the script, or the user's session
  std::vector<std::string> remarks;
  std::vector<std::string> notes;
};

/// Makes the session of the user's job.
/// - Baseline: the command's own values, which need not be among the values to try.
/// - Space: what `vary` states and, if a recipe knows the job, what the recipe varies for this model and cluster.
/// - The sequences per step stay constant if micro_batch and gradient_accumulation_steps both vary and the command
/// states both.
/// - Objective: the metric, under the name "value"; without one, what the recipe reads.
///
/// Throws a one-line UserError that says what to add if there is neither a recipe nor `vary` (it names flags that
/// resemble known parameters), if there is no metric, or if an option is invalid (vary.h, varied_command.h); also
/// throws like read_session().
WrittenSession written_session(const JobRequest& request);
/// The same, read. Also throws UserError if the user's session has other ranks than the command starts.
JobSession session_of_job(const JobRequest& request);

/// Adds what is seen of a session's own job to its JSON: "cluster", "framework" and "memory", if its runner is a
/// command and it has neither "workload" nor "cluster". `surroundings` has no command and no session; its directory is
/// the session's. Returns false if nothing is added; otherwise `lines` says what, for the user.
bool add_seen_facts(Json& session, const JobRequest& surroundings, std::vector<std::string>& lines);

}  // namespace krigtune::jobs
