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

/// A cluster with a scheduler that exists in this process alone, on a clock of its own: thousands of trials on a
/// thousand nodes in seconds, with everything that befalls jobs there. Nothing but the executor is pretended: the loop
/// that asks and tells, its threads and its journal are those of `krigtune tune`.
///
///   VirtualClock clock;
///   VirtualCluster cluster(clock, {.nodes = 1000, .most_jobs = 300, .faults = {.node_hours = 500}});
///   options.executor = &cluster;
///   run::run_session(session, candidates, make_timed_runners(runner, clock), dir, options, clock, observer, stop);
///
/// where the observer's waiting() calls cluster.nothing_to_begin().
namespace krigtune::scale_out {

/// Moved by the cluster alone. Safe from any thread.
class VirtualClock final : public Clock {
 public:
  /// `counts_own_time`: the processor time of this process passes as well, so that suggestions are timed, whatever else
  /// the machine does.
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
  double node_hours = 1e9;   ///< that a node runs on average until it fails, and its job with it
  double rack_hours = 1e9;   ///< between failures of a switch: the nodes of one rack fail at once
  double repair_s = 3600.0;  ///< that a node is down
  double preempted = 0.0;    ///< share of jobs that are ended for others, at a random moment
  double requeued = 0.5;     ///< share of those two that the scheduler itself runs again
  double late = 0.0;         ///< share of results that appear late: a file system that remembers
  double late_s = 60.0;      ///< by so much on average
};
/// What a thousand nodes are not: ten of them fail in an hour, and a rack.
inline constexpr Faults kRoughLife = {
    .node_hours = 100.0, .rack_hours = 1.0, .preempted = 0.05, .requeued = 0.5, .late = 0.1};

struct ClusterOptions {
  int nodes = 1000;
  int nodes_per_rack = 20;
  int most_jobs = 300;  ///< at a time: those that wait and those that run
  std::uint64_t seed = 1;
  Faults faults = {};
};

/// What happened.
struct ClusterCounts {
  int submitted = 0;  ///< jobs; a trial that is run again is another one
  int nodes_failed = 0;
  int preempted = 0;
  int requeued = 0;  ///< by the scheduler, after one of these
  int lost = 0;      ///< told to the tuner as lost
  int late = 0;
  int timed_out = 0;
  int ended_unseen = 0;  ///< while no tuner was there
  int most_pending = 0;  ///< jobs at a time
  int most_waiting = 0;  ///< of them in the queue
};

class VirtualCluster final : public trial::Executor {
 public:
  /// `clock` must outlive it.
  VirtualCluster(VirtualClock& clock, const ClusterOptions& options);

  int capacity() const override { return options_.most_jobs; }
  bool has_room(const trial::TrialNeeds& needs) const override;
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override;
  bool survives() const override { return true; }

  /// The loop has nothing to begin before something ends. Time goes on only after it is said, or with all places taken:
  /// so no trial ends that the loop would have begun another one beside.
  void nothing_to_begin();
  /// The tuner is killed: whoever waits for a job returns at once, and the jobs go on.
  void tuner_dies();
  /// So many seconds later the next one is started.
  void tuner_starts_after(double seconds);

  ClusterCounts counts() const;
  /// How often the program of each trial came to its end.
  std::map<int, int> ends() const;

 private:
  class JobPlace;
  struct Job {
    int nodes = 1;
    double seconds = 0.0;
    double timeout_s = 0.0;
    std::vector<int> on = {};  ///< empty: it waits
    std::uint64_t start = 0;   ///< which of all starts of jobs; events of an earlier one do not count
    bool is_awaited = false;   ///< by a thread of the tuner
    std::optional<trial::ProcessResult> result = std::nullopt;
    std::string where = "waits";
    std::condition_variable changed = {};
  };
  struct Event {
    enum class Kind { kEnd, kLateResult, kPreemption, kNodeFailure, kRackFailure, kRepair };
    double at_s = 0.0;
    std::uint64_t sequence = 0;  ///< the order of those at one time
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
  mutable std::mutex mutex_;  // of all below
  Rng rng_;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  std::uint64_t starts_ = 0;
  std::map<int, Job> jobs_;     ///< by trial
  std::deque<int> queue_;       ///< trials
  std::set<int> free_nodes_;    ///< that are up
  std::map<int, int> user_of_;  ///< trial by node
  std::set<int> down_;
  int places_ = 0;
  int awaited_ = 0;
  bool is_idle_ = false;
  bool is_tuner_there_ = true;
  ClusterCounts counts_;
  std::map<int, int> ends_;
};

/// Runners that answer as `runner` does (one for all, one call at a time) and take the time of its trials on the
/// cluster: 20 s to start, and 30 steps where the result has a step_time_s. Both must outlive them.
trial::RunnerFactory make_timed_runners(trial::Runner& runner, const Clock& clock, double timeout_s);

/// Thrown by a Watcher: the tuner is dead.
struct Killed {};

/// Tells the cluster when the loop has nothing to begin, kills the tuner once, and remembers how long suggestions took.
class Watcher final : public run::Observer {
 public:
  /// `killed_after`: trials that have ended before.
  Watcher(VirtualCluster& cluster, int killed_after) : cluster_(cluster), left_(killed_after) {}
  void trial_begins(const journal::Trial& trial, const search::History& history) override;
  void waiting(const journal::Trial& trial) override;
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  std::vector<double> suggest_s;  ///< one for each trial that was begun

 private:
  VirtualCluster& cluster_;
  int left_;
};

/// run_session on the cluster; where the watcher kills the tuner, another one is started five minutes later.
run::RunResult tune_with_a_death(const run::Prepared& prepared, trial::Runner& runner,
                                 const std::filesystem::path& directory, run::RunOptions options,
                                 VirtualCluster& cluster, const Clock& clock, Watcher& watcher);

/// Trials that were never closed, whose program did not come to its end exactly once, that stand in no journal, or that
/// measure a configuration again without saying so; a sentence for each.
std::vector<std::string> what_is_wrong(const search::Candidates& candidates, const search::History& history,
                                       const VirtualCluster& cluster);

/// The largest that this process has been in memory.
double peak_memory_mb();

}  // namespace krigtune::scale_out
