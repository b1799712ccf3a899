#include "host/abortable.h"

namespace krigtune {

double AbortableBarrier::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  if (aborted_) throw Aborted();
  const long mine = generation_;
  if (++arrived_ == threads_) {
    arrived_ = 0;
    ++generation_;
    completed_at_s_ = clock_.now_s();
    changed_.notify_all();
    return completed_at_s_;
  }
  changed_.wait(lock, [&] { return generation_ != mine || aborted_; });
  if (generation_ == mine) throw Aborted();
  // Nobody can complete the next generation before this thread has arrived again: the time is still ours.
  return completed_at_s_;
}

void AbortableBarrier::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace krigtune
