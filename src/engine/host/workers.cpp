#include "host/workers.h"

#include <utility>

namespace krigtune {

Workers::Workers(std::vector<std::function<void()>> jobs, std::function<void()> on_failure)
    : on_failure_(std::move(on_failure)), jobs_(std::move(jobs)) {
  for (const auto& job : jobs_) threads_.emplace_back([this, &job] { work(job); });
}

Workers::~Workers() {
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run_round() {
  busy_.store(static_cast<std::int32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::int32_t busy = busy_.load(std::memory_order_acquire); busy > 0;
       busy = busy_.load(std::memory_order_acquire)) {
    busy_.wait(busy, std::memory_order_acquire);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void Workers::work(const std::function<void()>& job) {
  std::int32_t seen = 0;
  while (true) {
    round_.wait(seen, std::memory_order_acquire);
    seen = round_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    try {
      job();
    } catch (...) {
      record_failure();
    }
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

// Later failures are consequences of the first one.
void Workers::record_failure() {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::current_exception();
  }
  on_failure_();
}

}  // namespace krigtune
