#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "executor/batch_system.h"

namespace krigtune::executor {

/// What the scheduler says of all jobs of this process, asked for together: one command for all of them, and at most
/// one every poll_s. Who looks when that time is over asks for everybody. Thread-safe.
class JobWatch {
 public:
  /// Both must outlive it.
  JobWatch(BatchSystem& system, const Clock& clock, double poll_s) : system_(system), clock_(clock), poll_s_(poll_s) {}

  /// From here on `name` is among what is asked for; `id`: "" where the job is only known by its name.
  void add(const std::string& name, const std::string& id);
  void remove(const std::string& name);

  struct Seen {
    int answers = 0;             ///< since add(); what was asked before it does not count
    std::vector<JobState> jobs;  ///< of that name, of the last answer: none, one, or several tries of a trial
    double silent_s = 0.0;       ///< for how long the scheduler has not answered; 0: it did when it was last asked
  };
  Seen look(const std::string& name);

 private:
  struct Entry {
    std::string id;
    int answers = 0;
    std::vector<JobState> jobs;
  };
  std::vector<BatchSystem::Asked> due(double now_s);
  void note(const std::vector<BatchSystem::Asked>& asked, const std::optional<std::vector<JobState>>& answer);

  BatchSystem& system_;
  const Clock& clock_;
  const double poll_s_;
  std::mutex mutex_;  // of all below
  std::map<std::string, Entry> entries_;
  bool is_asking_ = false;
  double next_s_ = 0.0;
  bool has_asked_ = false;
  int failures_ = 0;  ///< in a row
  double silent_since_s_ = 0.0;
};

}  // namespace krigtune::executor
