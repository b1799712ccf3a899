#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trial/executor.h"

namespace krigtune::executor {

/// The state of a job as its scheduler reports it.
struct JobState {
  enum class Phase { kPending, kRunning, kEnded };
  /// Why the job ended, if it has ended.
  enum class End { kByItself, kTimeLimit, kOutOfMemory, kCancelled, kNodeFailure, kPreempted, kOther };
  std::string id;
  std::string name;
  Phase phase = Phase::kPending;
  End end = End::kByItself;
  std::string word;                 ///< the scheduler's word: "NODE_FAIL"
  std::string reason;               ///< why it waits: "Resources"
  bool never_starts = false;        ///< the reason does not resolve by itself
  std::string nodes;                ///< "n[1-2]"; "" while it waits
  std::optional<double> elapsed_s;  ///< since its start
};

/// A job to submit.
struct JobRequest {
  std::string name;                 ///< krigtune-<hash of the run directory>-<trial>: [A-Za-z0-9-] only
  std::filesystem::path directory;  ///< the trial's directory
  std::filesystem::path script;
  std::filesystem::path log;  ///< output of the script itself
  trial::TrialNeeds needs;
  double time_limit_s = 0.0;
  std::vector<std::string> avoid;  ///< nodes that have failed
};

struct Submission {
  enum class Answer { kAccepted, kRefused, kLater };
  Answer answer = Answer::kRefused;
  std::string id;    ///< if kAccepted
  std::string text;  ///< otherwise: the scheduler's reason, quoted, and the fix
};

/// The commands of a scheduler: Slurm's, or the user's templates. Thread-safe.
class BatchSystem {
 public:
  virtual ~BatchSystem() = default;
  virtual Submission submit(const JobRequest& request) = 0;
  /// A job to look up.
  struct Asked {
    std::string name;
    std::string id;  ///< "": unknown, find it by name
  };
  virtual std::optional<std::vector<JobState>> jobs(const std::vector<Asked>& asked) = 0;
  /// Returns what is still known elsewhere about a job that is no longer in the list, or nothing.
  virtual std::optional<JobState> forgotten(const std::string& id) = 0;
  /// Cancels a job. Returns false if the scheduler did not answer: then try again.
  virtual bool cancel(const std::string& id) = 0;
  /// Cancels a job only if it still waits, as far as the scheduler can tell.
  virtual bool take_back(const std::string& id) = 0;
  /// Cancels all jobs with that name, before a trial begins again.
  virtual void cancel_named(const std::string& name) = 0;
  /// Returns why such a trial cannot run here, and the fix. "" if it can, or if that is unknown.
  virtual std::string objection(const trial::TrialNeeds& needs, double time_limit_s) = 0;
  /// Returns the words that the job script puts before the program to start it on all nodes of the job. If empty, the
  /// program is started once, on the first node.
  virtual std::vector<std::string> launcher(const std::vector<std::string>& argv,
                                            const trial::TrialNeeds& needs) const = 0;
  /// Returns those of `nodes` (in the form of JobState::nodes) that are down. Nodes in an unknown state are left out.
  virtual std::vector<std::string> broken_nodes(const std::string& nodes) = 0;
  virtual const char* name() const = 0;  ///< "Slurm"
};

}  // namespace krigtune::executor
