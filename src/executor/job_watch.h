#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "executor/batch_system.h"

namespace krigtune::executor {

/// Asks the scheduler about all jobs of this process together: with one command for all of them, at most once every
/// poll_s. The first caller after that time asks for all the others. It is thread-safe.
class JobWatch {
 public:
  /// `system` and `clock` must outlive this object.
  JobWatch(BatchSystem& system, const Clock& clock, double poll_s) : system_(system), clock_(clock), poll_s_(poll_s) {}

  /// Adds the job to those that are asked about. `id` is "" where the job is only known by its name.
  void add(const std::string& name, const std::string& id);
  void remove(const std::string& name);

  struct Seen {
    int answers = 0;             ///< number of answers since add(); an answer to an earlier question does not count
    std::vector<JobState> jobs;  ///< jobs of that name in the last answer: none, one, or several tries of a trial
    double silent_s = 0.0;       ///< for how long the scheduler has not answered; 0 if it answered the last question
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
  std::mutex mutex_;  // guards all members below
  std::map<std::string, Entry> entries_;
  bool is_asking_ = false;
  double next_s_ = 0.0;
  bool has_asked_ = false;
  int failures_ = 0;  ///< number of failures in a row
  double silent_since_s_ = 0.0;
};

}  // namespace krigtune::executor
