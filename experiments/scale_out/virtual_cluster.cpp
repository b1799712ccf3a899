// Virtual time passes only while a thread waits at every place of the tuner, and the tuner cannot begin more trials.
// Then one event after the other happens until one of them ends a wait. The tuner's next step happens at that moment of
// the virtual clock, however long it takes.
#include "virtual_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <ctime>
#include <fstream>

namespace krigtune::scale_out {
namespace {

constexpr double kHourS = 3600.0;
constexpr double kStartS = 20.0;
constexpr double kSteps = 30.0;

}  // namespace

double VirtualClock::processor_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t VirtualClock::unix_us() const {
  constexpr std::int64_t kSomeDayUs = 1'790'000'000'000'000;
  return kSomeDayUs + static_cast<std::int64_t>(now_s() * 1e6);
}

void VirtualClock::sleep_until_s(double deadline_s) const {
  const double missing_s = deadline_s - now_s();
  if (missing_s > 0.0) virtual_s_ = virtual_s_ + missing_s;
}

class VirtualCluster::JobPlace final : public trial::Place {
 public:
  JobPlace(VirtualCluster& cluster, trial::TrialTask task) : cluster_(cluster), task_(std::move(task)) {}
  ~JobPlace() override {
    const std::lock_guard lock(cluster_.mutex_);
    --cluster_.places_;
    cluster_.advance();  // a tuner that had nothing to begin only takes away what has ended
  }
  JobPlace(const JobPlace&) = delete;
  JobPlace& operator=(const JobPlace&) = delete;
  trial::PlaceFacts facts() const override { return {.gpus = {}, .is_elsewhere = true}; }
  trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock& /*clock*/) override {
    return cluster_.run(task_, spec, where_);
  }
  std::string where() const override {
    const std::lock_guard lock(cluster_.mutex_);
    return where_;
  }

 private:
  VirtualCluster& cluster_;
  const trial::TrialTask task_;
  std::string where_ = "waits";
};

VirtualCluster::VirtualCluster(VirtualClock& clock, const ClusterOptions& options)
    : clock_(clock), options_(options), rng_(options.seed, 0) {
  for (int node = 0; node < options_.nodes; ++node) free_nodes_.insert(node);
  schedule(exponential(options_.faults.node_hours * kHourS / options_.nodes), Event::Kind::kNodeFailure, 0);
  schedule(exponential(options_.faults.rack_hours * kHourS), Event::Kind::kRackFailure, 0);
}

bool VirtualCluster::has_room(const trial::TrialNeeds& /*needs*/) const {
  const std::lock_guard lock(mutex_);
  return places_ < options_.most_jobs;
}

std::unique_ptr<trial::Place> VirtualCluster::place(const trial::TrialTask& task) {
  const std::lock_guard lock(mutex_);
  ++places_;
  is_idle_ = false;
  return std::make_unique<JobPlace>(*this, task);
}

trial::ProcessResult VirtualCluster::run(const trial::TrialTask& task, const trial::ProcessSpec& spec,
                                         std::string& where) {
  std::unique_lock lock(mutex_);
  if (task.adopted && jobs_.count(task.number) == 0) {  // the earlier tuner had not submitted it again
    trial::ProcessResult none;
    none.lost = "no job of this trial was submitted";
    return none;
  }
  if (!task.adopted) {
    assert(jobs_.count(task.number) == 0 && "a trial has one job at a time");
    Job& submitted = jobs_[task.number];
    submitted.nodes = std::max(task.needs.nodes, 1);
    submitted.seconds = std::stod(spec.argv.back());
    submitted.timeout_s = spec.timeout_s;
    queue_.push_back(task.number);
    ++counts_.submitted;
    begin_waiting_jobs();
  }
  Job& job = jobs_.at(task.number);
  counts_.most_pending = std::max(counts_.most_pending, static_cast<int>(jobs_.size()));
  counts_.most_waiting = std::max(counts_.most_waiting, static_cast<int>(queue_.size()));
  if (!job.result && is_tuner_there_) {
    job.is_awaited = true;
    ++awaited_;
    advance();
    job.changed.wait(lock, [&] { return job.result.has_value() || !is_tuner_there_; });
  }
  where = job.where;
  if (!job.result) {  // the tuner is being killed
    trial::ProcessResult stopped;
    stopped.stopped = true;
    return stopped;
  }
  trial::ProcessResult result = *job.result;
  jobs_.erase(task.number);
  return result;
}

void VirtualCluster::nothing_to_begin() {
  const std::lock_guard lock(mutex_);
  is_idle_ = true;
  advance();
}

void VirtualCluster::tuner_dies() {
  const std::lock_guard lock(mutex_);
  is_tuner_there_ = false;
  for (auto& [trial, job] : jobs_) {
    job.is_awaited = false;
    job.changed.notify_all();
  }
  awaited_ = 0;
}

void VirtualCluster::tuner_starts_after(double seconds) {
  const std::lock_guard lock(mutex_);
  const double until_s = clock_.virtual_s() + seconds;
  while (!events_.empty() && events_.top().at_s <= until_s) {
    const Event event = events_.top();
    events_.pop();
    clock_.move_to_s(std::max(event.at_s, clock_.virtual_s()));
    happen(event);
  }
  clock_.move_to_s(until_s);
  is_tuner_there_ = true;
}

ClusterCounts VirtualCluster::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::map<int, int> VirtualCluster::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

void VirtualCluster::advance() {
  while (is_tuner_there_ && places_ > 0 && awaited_ == places_ && (places_ >= options_.most_jobs || is_idle_)) {
    const Event event = events_.top();  // there is always a node failure in the queue
    events_.pop();
    clock_.move_to_s(std::max(event.at_s, clock_.virtual_s()));
    happen(event);
  }
}

void VirtualCluster::happen(const Event& event) {
  if (event.kind == Event::Kind::kRepair) {
    down_.erase(event.number);
    free_nodes_.insert(event.number);
    return begin_waiting_jobs();
  }
  if (event.kind == Event::Kind::kNodeFailure) {
    schedule(exponential(options_.faults.node_hours * kHourS / options_.nodes), event.kind, 0);
    fail_node(static_cast<int>(rng_.uniform() * options_.nodes));
    return begin_waiting_jobs();
  }
  if (event.kind == Event::Kind::kRackFailure) {
    schedule(exponential(options_.faults.rack_hours * kHourS), event.kind, 0);
    const int racks = options_.nodes / options_.nodes_per_rack;
    const int first = static_cast<int>(rng_.uniform() * racks) * options_.nodes_per_rack;
    for (int node = first; node < first + options_.nodes_per_rack; ++node) fail_node(node);
    return begin_waiting_jobs();
  }
  const auto found = jobs_.find(event.number);
  if (found == jobs_.end() || found->second.start != event.start || found->second.result) return;
  if (event.kind == Event::Kind::kEnd) {
    end(event.number, found->second);
  } else if (event.kind == Event::Kind::kLateResult) {
    give(found->second, {});
  } else {
    if (!found->second.on.empty()) ++counts_.preempted;
    break_off(event.number, found->second, "preempted");
  }
  begin_waiting_jobs();
}

// Jobs begin in the order of submission: one for which there is no room holds back the others.
void VirtualCluster::begin_waiting_jobs() {
  while (!queue_.empty()) {
    Job& job = jobs_.at(queue_.front());
    if (static_cast<int>(free_nodes_.size()) < job.nodes) return;
    const int trial = queue_.front();
    queue_.pop_front();
    begin(trial, job);
  }
}

void VirtualCluster::begin(int trial, Job& job) {
  job.start = ++starts_;
  for (int i = 0; i < job.nodes; ++i) {
    job.on.push_back(*free_nodes_.begin());
    user_of_[job.on.back()] = trial;
    free_nodes_.erase(free_nodes_.begin());
  }
  job.where = fmt::format("n{}{}, job {}", job.on.front(), job.nodes > 1 ? "+" : "", job.start);
  const double takes_s = std::min(job.seconds, job.timeout_s);
  schedule(takes_s, Event::Kind::kEnd, trial, job.start);
  if (rng_.uniform() < options_.faults.preempted) {
    schedule(rng_.uniform() * takes_s, Event::Kind::kPreemption, trial, job.start);
  }
}

void VirtualCluster::end(int trial, Job& job) {
  free_nodes_of(job);
  ++ends_[trial];
  trial::ProcessResult result;
  result.timed_out = job.seconds > job.timeout_s;
  if (result.timed_out) ++counts_.timed_out;
  if (result.timed_out || rng_.uniform() >= options_.faults.late) return give(job, result);
  ++counts_.late;
  schedule(exponential(options_.faults.late_s), Event::Kind::kLateResult, trial, job.start);
}

void VirtualCluster::fail_node(int node) {
  if (!down_.insert(node).second) return;
  ++counts_.nodes_failed;
  schedule(options_.faults.repair_s, Event::Kind::kRepair, node);
  const auto user = user_of_.find(node);
  if (user != user_of_.end()) {
    break_off(user->second, jobs_.at(user->second), fmt::format("node n{} failed", node));
  }
  free_nodes_.erase(node);
}

void VirtualCluster::break_off(int trial, Job& job, const std::string& why) {
  if (job.on.empty()) return;  // its program has already ended, and its result will appear
  free_nodes_of(job);
  if (rng_.uniform() < options_.faults.requeued) {
    ++counts_.requeued;
    job.start = 0;
    job.where = "waits again";
    queue_.push_back(trial);
    return;
  }
  ++counts_.lost;
  trial::ProcessResult lost;
  lost.lost = why;
  give(job, lost);
}

void VirtualCluster::give(Job& job, trial::ProcessResult result) {
  job.result = std::move(result);
  if (!is_tuner_there_) ++counts_.ended_unseen;
  if (job.is_awaited) --awaited_;
  job.is_awaited = false;
  job.changed.notify_all();
}

void VirtualCluster::free_nodes_of(Job& job) {
  for (const int node : job.on) {
    user_of_.erase(node);
    if (down_.count(node) == 0) free_nodes_.insert(node);
  }
  job.on.clear();
}

void VirtualCluster::schedule(double in_s, Event::Kind kind, int number, std::uint64_t start) {
  events_.push({clock_.virtual_s() + in_s, ++sequence_, kind, number, start});
}

namespace {

class TimedRunner final : public trial::Runner {
 public:
  TimedRunner(trial::Runner& runner, std::shared_ptr<std::mutex> mutex, const Clock& clock, double timeout_s)
      : runner_(runner), mutex_(std::move(mutex)), clock_(clock), timeout_s_(timeout_s) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    trial::Outcome outcome;
    {
      const std::lock_guard lock(*mutex_);
      outcome = runner_.run(configuration, context);
    }
    double seconds = kStartS;
    if (const auto* measured = std::get_if<trial::Measured>(&outcome)) {
      const auto step_s = measured->metrics.find("step_time_s");
      seconds += kSteps * (step_s == measured->metrics.end() ? 1.0 : step_s->second);
    }
    trial::ProcessSpec spec;
    spec.argv = {"train", fmt::format("{}", seconds)};
    spec.timeout_s = timeout_s_;
    const trial::ProcessResult result = context.place.run(spec, clock_);
    if (result.stopped) return trial::Failed{trial::FailureReason::kInterrupted, 0, ""};
    if (!result.lost.empty()) return trial::Failed{trial::FailureReason::kLost, 1, result.lost};
    if (result.timed_out) return trial::Failed{trial::FailureReason::kTimeout, 1, ""};
    return outcome;
  }

 private:
  trial::Runner& runner_;
  const std::shared_ptr<std::mutex> mutex_;
  const Clock& clock_;
  const double timeout_s_;
};

}  // namespace

trial::RunnerFactory make_timed_runners(trial::Runner& runner, const Clock& clock, double timeout_s) {
  const auto mutex = std::make_shared<std::mutex>();
  return [&runner, mutex, &clock, timeout_s] { return std::make_unique<TimedRunner>(runner, mutex, clock, timeout_s); };
}

std::vector<std::string> what_is_wrong(const search::Candidates& candidates, const search::History& history,
                                       const VirtualCluster& cluster) {
  std::vector<std::string> wrong;
  const std::map<int, int> ends = cluster.ends();
  std::map<std::string, int> asked;
  for (const journal::Trial& trial : history) {
    const auto found = ends.find(trial.number);
    const int times = found == ends.end() ? 0 : found->second;
    const std::string name = fmt::format("trial {}", trial.number);
    if (!trial.outcome) {
      wrong.push_back(name + " was never closed");
      continue;
    }
    const auto* failed = std::get_if<trial::Failed>(&*trial.outcome);
    const bool is_lost = failed != nullptr && failed->reason == trial::FailureReason::kLost;
    if (times != (is_lost ? 0 : 1)) wrong.push_back(fmt::format("{} came to its end {} times", name, times));
    if (trial.proposal.repeat_of) continue;
    const auto [other, is_new] = asked.emplace(candidates.key(trial.proposal.configuration), trial.number);
    if (!is_new) wrong.push_back(fmt::format("{} is trial {} again", name, other->second));
  }
  for (const auto& [trial, times] : ends) {
    if (trial >= static_cast<int>(history.size())) wrong.push_back(fmt::format("trial {} is not recorded", trial));
  }
  return wrong;
}

void Watcher::waiting(const journal::Trial& /*trial*/) { cluster_.nothing_to_begin(); }

void Watcher::trial_begins(const journal::Trial& trial, const search::History& /*history*/) {
  suggest_s.push_back(trial.proposal.suggest_s);
}

void Watcher::trial_ended(const journal::Trial& /*trial*/, const search::History& /*history*/) {
  if (--left_ != 0) return;
  cluster_.tuner_dies();
  throw Killed();
}

run::RunResult tune_with_a_death(const run::Prepared& prepared, trial::Runner& runner,
                                 const std::filesystem::path& directory, run::RunOptions options,
                                 VirtualCluster& cluster, const Clock& clock, Watcher& watcher) {
  constexpr double kTimeoutS = 3600.0;
  constexpr double kAwayS = 300.0;
  options.executor = &cluster;
  options.sizes =
      executor::TrialSizes(executor::SlurmSpec(), prepared.session.cluster, prepared.session.space, cluster, kTimeoutS);
  const std::atomic<bool> stop{false};
  const auto run = [&] {
    return run::run_session(prepared.session, prepared.candidates, make_timed_runners(runner, clock, kTimeoutS),
                            directory, options, clock, watcher, stop);
  };
  try {
    return run();
  } catch (const Killed&) {
    cluster.tuner_starts_after(kAwayS);
    return run();
  }
}

double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  constexpr double kKilobytesPerMb = 1000.0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(line.find(':') + 1)) * 1.024 / kKilobytesPerMb;
  }
  return 0.0;
}

}  // namespace krigtune::scale_out
