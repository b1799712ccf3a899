#include "executor/job_watch.h"

#include <algorithm>

namespace krigtune::executor {

void JobWatch::add(const std::string& name, const std::string& id) {
  const std::lock_guard lock(mutex_);
  entries_[name] = {id, 0, {}};
}

void JobWatch::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  entries_.erase(name);
}

// Returns what to ask about now; nothing if it is too early or another thread is asking.
std::vector<BatchSystem::Asked> JobWatch::due(double now_s) {
  std::vector<BatchSystem::Asked> asked;
  if (is_asking_ || (has_asked_ && now_s < next_s_)) return asked;
  for (const auto& [name, entry] : entries_) asked.push_back({name, entry.id});
  is_asking_ = !asked.empty();
  return asked;
}

void JobWatch::note(const std::vector<BatchSystem::Asked>& asked, const std::optional<std::vector<JobState>>& answer) {
  const double now_s = clock_.now_s();
  is_asking_ = false;
  has_asked_ = true;
  if (!answer) {
    // Asking often does not help a controller that restarts.
    constexpr int kMostDoublings = 3;
    if (failures_ == 0) silent_since_s_ = now_s;
    next_s_ = now_s + poll_s_ * (1 << std::min(failures_, kMostDoublings));
    ++failures_;
    return;
  }
  failures_ = 0;
  next_s_ = now_s + poll_s_;
  for (const BatchSystem::Asked& one : asked) {
    const auto entry = entries_.find(one.name);
    // Another job of that name was begun while the question was on its way.
    if (entry == entries_.end() || entry->second.id != one.id) continue;
    ++entry->second.answers;
    entry->second.jobs.clear();
    for (const JobState& job : *answer) {
      if (job.name == one.name) entry->second.jobs.push_back(job);
    }
  }
}

JobWatch::Seen JobWatch::look(const std::string& name) {
  std::unique_lock lock(mutex_);
  if (const std::vector<BatchSystem::Asked> asked = due(clock_.now_s()); !asked.empty()) {
    lock.unlock();
    const std::optional<std::vector<JobState>> answer = system_.jobs(asked);
    lock.lock();
    note(asked, answer);
  }
  Seen seen;
  const auto entry = entries_.find(name);
  if (entry != entries_.end()) {
    seen.answers = entry->second.answers;
    seen.jobs = entry->second.jobs;
  }
  if (failures_ > 0) seen.silent_s = std::max(clock_.now_s() - silent_since_s_, 1e-9);
  return seen;
}

}  // namespace krigtune::executor
