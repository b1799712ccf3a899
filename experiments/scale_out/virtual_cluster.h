#pragma once
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "core/clock.h"
#include "krigtune/rng.h"
#include "run/loop.h"
#include "run/prepared.h"
#include "trial/executor.h"
#include "trial/runner.h"

/// A cluster with a scheduler that exists only in this process, with a clock of its own: thousands of trials on a
/// thousand nodes in seconds, with everything that happens to jobs there. Only the executor is simulated: the loop that
/// asks and tells, its threads and its journal are those of `krigtune tune`.
///
///   VirtualClock clock;
///   VirtualCluster cluster(clock, {.nodes = 1000, .most_jobs = 300, .faults = {.node_hours = 500}});
///   options.executor = &cluster;
///   run::run_session(session, candidates, make_timed_runners(runner, clock), dir, options, clock, observer, stop);
///
/// where the observer's waiting() calls cluster.nothing_to_begin().
namespace krigtune::scale_out {

/// Only the cluster moves this clock. Safe from any thread.
class VirtualClock final : public Clock {
 public:
  /// `counts_own_time`: the processor time of this process passes as well, so that suggestions are timed, independently
  /// of other activity on the machine.
  explicit VirtualClock(bool counts_own_time = false) : counts_own_time_(counts_own_time) {}
  double now_s() const override { return virtual_s_ + (counts_own_time_ ? processor_s() : 0.0); }
  std::int64_t unix_us() const override;
  void sleep_until_s(double deadline_s) const override;
  double virtual_s() const { return virtual_s_; }
  void move_to_s(double virtual_s) { virtual_s_ = virtual_s; }

 private:
  static double processor_s();

  const bool counts_own_time_;
  mutable std::atomic<double> virtual_s_{0.0};
};

struct Faults {
  double node_hours = 1e9;   ///< mean time until a node fails, together with its job
  double rack_hours = 1e9;   ///< mean time between failures of a switch: all nodes of one rack fail at once
  double repair_s = 3600.0;  ///< how long a node is down
  double preempted = 0.0;    ///< fraction of jobs that are ended in favour of others, at a random moment
  double requeued = 0.5;     ///< fraction of these lost jobs that the scheduler itself runs again
  double late = 0.0;         ///< fraction of results that appear late, because the file system caches
  double late_s = 60.0;      ///< mean delay
};
/// More faults than a thousand nodes have: ten of them fail in an hour, and a rack.
inline constexpr Faults kRoughLife = {
    .node_hours = 100.0, .rack_hours = 1.0, .preempted = 0.05, .requeued = 0.5, .late = 0.1};

struct ClusterOptions {
  int nodes = 1000;
  int nodes_per_rack = 20;
  int most_jobs = 300;  ///< jobs at a time, waiting and running
  std::uint64_t seed = 1;
  Faults faults = {};
};

/// Counts of events.
struct ClusterCounts {
  int submitted = 0;  ///< jobs; a trial that runs again is another job
  int nodes_failed = 0;
  int preempted = 0;
  int requeued = 0;  ///< by the scheduler, after one of the events above
  int lost = 0;      ///< reported to the tuner as lost
  int late = 0;
  int timed_out = 0;
  int ended_unseen = 0;  ///< while there was no tuner
  int most_pending = 0;  ///< largest number of jobs at a time
  int most_waiting = 0;  ///< largest number of them in the queue
};

class VirtualCluster final : public trial::Executor {
 public:
  /// `clock` must outlive it.
  VirtualCluster(VirtualClock& clock, const ClusterOptions& options);

  int capacity() const override { return options_.most_jobs; }
  bool has_room(const trial::TrialNeeds& needs) const override;
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override;
  bool survives() const override { return true; }

  /// Call it when the loop has nothing to begin before something ends. Time continues only after this call, or when all
  /// places are taken, so no trial ends while the loop would have begun another one beside it.
  void nothing_to_begin();
  /// Kills the tuner: threads that wait for a job return at once, and the jobs continue.
  void tuner_dies();
  /// The next tuner starts that many seconds later.
  void tuner_starts_after(double seconds);

  ClusterCounts counts() const;
  /// Returns how often the program of each trial ended.
  std::map<int, int> ends() const;

 private:
  class JobPlace;
  struct Job {
    int nodes = 1;
    double seconds = 0.0;
    double timeout_s = 0.0;
    std::vector<int> on = {};  ///< empty: it waits
    std::uint64_t start = 0;   ///< counts the starts of jobs; events of an earlier start are ignored
    bool is_awaited = false;   ///< a thread of the tuner waits for it
    std::optional<trial::ProcessResult> result = std::nullopt;
    std::string where = "waits";
    std::condition_variable changed = {};
  };
  struct Event {
    enum class Kind { kEnd, kLateResult, kPreemption, kNodeFailure, kRackFailure, kRepair };
    double at_s = 0.0;
    std::uint64_t sequence = 0;  ///< the order of events at the same time
    Kind kind = Kind::kEnd;
    int number = 0;  ///< of the trial or node
    std::uint64_t start = 0;
    bool operator<(const Event& other) const {  // the earliest on top
      return at_s > other.at_s || (at_s == other.at_s && sequence > other.sequence);
    }
  };

  trial::ProcessResult run(const trial::TrialTask& task, const trial::ProcessSpec& spec, std::string& where);
  void advance();
  void happen(const Event& event);
  void begin_waiting_jobs();
  void begin(int trial, Job& job);
  void end(int trial, Job& job);
  void fail_node(int node);
  void break_off(int trial, Job& job, const std::string& why);
  void give(Job& job, trial::ProcessResult result);
  void free_nodes_of(Job& job);
  void schedule(double in_s, Event::Kind kind, int number, std::uint64_t start = 0);
  double exponential(double mean) { return -mean * std::log1p(-rng_.uniform()); }

  VirtualClock& clock_;
  const ClusterOptions options_;
  mutable std::mutex mutex_;  // guards the members below
  Rng rng_;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  std::uint64_t starts_ = 0;
  std::map<int, Job> jobs_;     ///< by trial
  std::deque<int> queue_;       ///< trials
  std::set<int> free_nodes_;    ///< nodes that are up
  std::map<int, int> user_of_;  ///< the trial on each node
  std::set<int> down_;
  int places_ = 0;
  int awaited_ = 0;
  bool is_idle_ = false;
  bool is_tuner_there_ = true;
  ClusterCounts counts_;
  std::map<int, int> ends_;
};

/// Makes runners that answer as `runner` does (one for all, one call at a time) and take the time of its trials on the
/// cluster: 20 s to start, and 30 steps if the result has a step_time_s. Both must outlive them.
trial::RunnerFactory make_timed_runners(trial::Runner& runner, const Clock& clock, double timeout_s);

/// Thrown by a Watcher when the tuner is dead.
struct Killed {};

/// Tells the cluster when the loop has nothing to begin, kills the tuner once, and records how long suggestions took.
class Watcher final : public run::Observer {
 public:
  /// `killed_after`: number of trials that end before.
  Watcher(VirtualCluster& cluster, int killed_after) : cluster_(cluster), left_(killed_after) {}
  void trial_begins(const journal::Trial& trial, const search::History& history) override;
  void waiting(const journal::Trial& trial) override;
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  std::vector<double> suggest_s;  ///< one for each trial that began

 private:
  VirtualCluster& cluster_;
  int left_;
};

/// Runs run_session on the cluster. If the watcher kills the tuner, another one starts five minutes later.
run::RunResult tune_with_a_death(const run::Prepared& prepared, trial::Runner& runner,
                                 const std::filesystem::path& directory, run::RunOptions options,
                                 VirtualCluster& cluster, const Clock& clock, Watcher& watcher);

/// Returns one sentence for each trial that was never closed, whose program did not end exactly once, that is in no
/// journal, or that measures a configuration again without saying so.
std::vector<std::string> what_is_wrong(const search::Candidates& candidates, const search::History& history,
                                       const VirtualCluster& cluster);

/// Returns the peak memory of this process.
double peak_memory_mb();

}  // namespace krigtune::scale_out
