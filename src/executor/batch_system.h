#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trial/executor.h"

namespace krigtune::executor {

/// A job as its scheduler sees it.
struct JobState {
  enum class Phase { kPending, kRunning, kEnded };
  /// Why it ended, where it did.
  enum class End { kByItself, kTimeLimit, kOutOfMemory, kCancelled, kNodeFailure, kPreempted, kOther };
  std::string id;
  std::string name;
  Phase phase = Phase::kPending;
  End end = End::kByItself;
  std::string word;                 ///< the scheduler's: "NODE_FAIL"
  std::string reason;               ///< why it waits: "Resources"
  bool never_starts = false;        ///< that reason does not pass by itself
  std::string nodes;                ///< "n[1-2]"; "" while it waits
  std::optional<double> elapsed_s;  ///< since it started
};

/// What is to be submitted.
struct JobRequest {
  std::string name;                 ///< krigtune-<hash of the run directory>-<trial>: [A-Za-z0-9-] only
  std::filesystem::path directory;  ///< of the trial
  std::filesystem::path script;
  std::filesystem::path log;  ///< of the script itself
  trial::TrialNeeds needs;
  double time_limit_s = 0.0;
  std::vector<std::string> avoid;  ///< nodes that have failed
};

struct Submission {
  enum class Answer { kAccepted, kRefused, kLater };
  Answer answer = Answer::kRefused;
  std::string id;    ///< kAccepted
  std::string text;  ///< otherwise: the reason, quoted, and the fix
};

/// A scheduler's commands: Slurm's, or templates of the user's. Thread-safe.
class BatchSystem {
 public:
  virtual ~BatchSystem() = default;
  virtual Submission submit(const JobRequest& request) = 0;
  /// Of all jobs asked for those that the scheduler knows. Empty: it does not answer.
  struct Asked {
    std::string name;
    std::string id;  ///< "": not known, found by name
  };
  virtual std::optional<std::vector<JobState>> jobs(const std::vector<Asked>& asked) = 0;
  /// One that the list no longer has: what is still known of it elsewhere. Empty: nothing.
  virtual std::optional<JobState> forgotten(const std::string& id) = 0;
  /// False: it did not answer; to be tried again.
  virtual bool cancel(const std::string& id) = 0;
  /// Only if it still waits, as far as the scheduler can tell them apart.
  virtual bool take_back(const std::string& id) = 0;
  /// All jobs of that name, for a trial that is begun anew.
  virtual void cancel_named(const std::string& name) = 0;
  /// "" where such a trial can be run here, or this cannot be said; otherwise why not, and the fix.
  virtual std::string objection(const trial::TrialNeeds& needs, double time_limit_s) = 0;
  /// Words before the program's own in the job script that start it on all nodes of the job; empty: it is started once,
  /// on the first node.
  virtual std::vector<std::string> launcher(const std::vector<std::string>& argv,
                                            const trial::TrialNeeds& needs) const = 0;
  /// Those of `nodes` (as JobState::nodes) that are down; what cannot be said is left out.
  virtual std::vector<std::string> broken_nodes(const std::string& nodes) = 0;
  virtual const char* name() const = 0;  ///< "Slurm"
};

}  // namespace krigtune::executor
