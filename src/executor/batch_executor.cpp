#include "executor/batch_executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "executor/job_run.h"

namespace krigtune::executor {
namespace {

class BatchPlace final : public trial::Place {
 public:
  BatchPlace(std::shared_ptr<JobRoom> room, trial::TrialTask task)
      : room_(std::move(room)), task_(std::move(task)), slot_(room_->take_slot()) {}
  ~BatchPlace() override { room_->give_back(slot_); }
  BatchPlace(const BatchPlace&) = delete;
  BatchPlace& operator=(const BatchPlace&) = delete;

  trial::PlaceFacts facts() const override {
    return {.slot = slot_, .gpus = {}, .port = rendezvous_port(task_), .is_elsewhere = true};
  }

  trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock& clock) override {
    JobRun run(*room_, task_, spec, rendezvous_port(task_), clock, [this](const std::string& where) {
      const std::lock_guard lock(mutex_);
      where_ = where;
    });
    trial::ProcessResult result = run.until_it_ends();
    account_.ran_s = account_.ran_s.value_or(0.0) + result.wall_s;
    account_.was_begun = run.was_begun();
    return result;
  }

  trial::PlaceAccount account() const override { return account_; }

  std::string where() const override {
    const std::lock_guard lock(mutex_);
    return where_;
  }

 private:
  std::shared_ptr<JobRoom> room_;
  const trial::TrialTask task_;
  const int slot_;
  mutable std::mutex mutex_;  // guards where_
  std::string where_;
  trial::PlaceAccount account_;
};

class BatchExecutor final : public trial::Executor {
 public:
  BatchExecutor(std::unique_ptr<BatchSystem> system, const BatchOptions& options, const Clock& clock)
      : room_(std::make_shared<JobRoom>(std::move(system), options, clock)) {}

  int capacity() const override { return room_->options.max_queued; }
  bool has_room(const trial::TrialNeeds& needs) const override {
    room_->refuse_impossible(needs);
    return room_->taken() < capacity();
  }
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override {
    return std::make_unique<BatchPlace>(room_, task);
  }
  bool survives() const override { return true; }

 private:
  std::shared_ptr<JobRoom> room_;
};

}  // namespace

std::unique_ptr<trial::Executor> make_batch_executor(std::unique_ptr<BatchSystem> system, const BatchOptions& options,
                                                     const Clock& clock) {
  return std::make_unique<BatchExecutor>(std::move(system), options, clock);
}

int rendezvous_port(const trial::TrialTask& task) {
  constexpr int kFirst = 20000;
  constexpr std::uint64_t kPorts = 12000;
  Fnv1a64 hash;
  const std::string run = task.directory.parent_path().string();
  hash.add(run.data(), run.size());
  return kFirst + static_cast<int>((hash.value() + static_cast<std::uint64_t>(task.number)) % kPorts);
}

std::string job_name(const trial::TrialTask& task) {
  std::error_code error;
  std::filesystem::path run = std::filesystem::weakly_canonical(task.directory.parent_path(), error);
  if (error) run = std::filesystem::absolute(task.directory.parent_path());
  const std::string text = run.string();
  Fnv1a64 hash;
  hash.add(text.data(), text.size());
  constexpr std::size_t kDigits = 12;
  return fmt::format("krigtune-{}-{:04}", hash.hex().substr(0, kDigits), task.number);
}

int JobRoom::taken() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(slots_.size());
}

int JobRoom::take_slot() {
  const std::lock_guard lock(mutex_);
  int slot = 0;
  while (slots_.count(slot) != 0) ++slot;
  slots_.insert(slot);
  return slot;
}

void JobRoom::give_back(int slot) {
  const std::lock_guard lock(mutex_);
  slots_.erase(slot);
}

void JobRoom::refuse_impossible(const trial::TrialNeeds& needs) {
  const std::vector<double> key = {static_cast<double>(needs.ranks), static_cast<double>(needs.nodes),
                                   static_cast<double>(needs.gpus_per_node), needs.timeout_s};
  const std::lock_guard lock(mutex_);
  auto known = objections_.find(key);
  if (known == objections_.end()) {
    trial::ProcessSpec spec;
    spec.timeout_s = needs.timeout_s;
    known = objections_.emplace(key, system->objection(needs, full_limit_s(spec))).first;
  }
  if (!known->second.empty()) throw UserError(known->second);
}

void JobRoom::note_duration(double wall_s) {
  const std::lock_guard lock(mutex_);
  durations_.push_back(wall_s);
}

double JobRoom::full_limit_s(const trial::ProcessSpec& spec) const {
  // krigtune ends a trial at its timeout; the scheduler's limit matters only if krigtune is gone. The margin covers
  // Slurm's rounding to minutes and the time that the script needs besides the program.
  constexpr double kMarginS = 120.0;
  return spec.timeout_s + spec.grace_s + kMarginS;
}

double JobRoom::likely_limit_s(const trial::ProcessSpec& spec) const {
  constexpr std::size_t kEnough = 3;
  constexpr double kRoom = 3.0;
  constexpr double kMarginS = 120.0;
  const std::lock_guard lock(mutex_);
  if (!options.learns_time || durations_.size() < kEnough) return full_limit_s(spec);
  const double longest_s = *std::max_element(durations_.begin(), durations_.end());
  return std::min(full_limit_s(spec), kRoom * longest_s + kMarginS);
}

void JobRoom::note_failed_nodes(const std::string& nodes) {
  if (nodes.empty()) return;
  const std::lock_guard lock(mutex_);
  if (std::find(failed_nodes_.begin(), failed_nodes_.end(), nodes) == failed_nodes_.end())
    failed_nodes_.push_back(nodes);
}

std::vector<std::string> JobRoom::failed_nodes() const {
  const std::lock_guard lock(mutex_);
  return failed_nodes_;
}

void JobRoom::tell_of_silence(double silent_s) {
  constexpr double kWorthTellingS = 20.0;
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    tell = silent_s >= kWorthTellingS && !told_of_silence_;
    told_of_silence_ = silent_s > 0.0 && (told_of_silence_ || tell);
  }
  if (tell) {
    options.say(fmt::format("{} has not answered for {:.0f} s; jobs continue, and their results are still read",
                            system->name(), silent_s));
  }
}

void JobRoom::forget_failed_nodes() {
  const std::lock_guard lock(mutex_);
  failed_nodes_.clear();
}

}  // namespace krigtune::executor
