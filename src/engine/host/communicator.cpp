#include "engine/host/communicator.h"

#include <algorithm>
namespace krigtune::engine {

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
  // No thread can complete the next generation before this one has arrived again, so the time still belongs to this
  // one.
  return completed_at_s_;
}

void AbortableBarrier::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

// A collective takes the time that plan/collective_time.h gives, from the moment at which the data of all ranks were
// ready. Copying within this machine counts towards that time.
namespace {

class EmulatedCommunicator final : public Communicator {
 public:
  EmulatedCommunicator(Communicator& base, EmulatedLink& link, const workload::EmulatedNetwork& network,
                       const plan::GroupSpan& span, const Clock& clock)
      : base_(base), link_(link), network_(network), span_(span), clock_(clock) {}

  double all_reduce(const Collective& collective) override {
    return hold(base_.all_reduce(collective), schedule::OpKind::kAllReduce, collective);
  }
  double all_reduce_max(const Collective& collective) override {
    return hold(base_.all_reduce_max(collective), schedule::OpKind::kAllReduceMax, collective);
  }
  double reduce_scatter(const Collective& collective) override {
    return hold(base_.reduce_scatter(collective), schedule::OpKind::kReduceScatter, collective);
  }
  double all_gather(const Collective& collective) override {
    return hold(base_.all_gather(collective), schedule::OpKind::kAllGather, collective);
  }

 private:
  double hold(double ready_s, schedule::OpKind kind, const Collective& collective) {
    const double length_s = plan::collective_time_s(network_, kind, span_, collective.wire_bytes);
    clock_.sleep_until_s(link_.reserve_until_s(ready_s, length_s));
    return ready_s;
  }

  Communicator& base_;
  EmulatedLink& link_;
  const workload::EmulatedNetwork& network_;
  plan::GroupSpan span_;
  const Clock& clock_;
};

}  // namespace

double EmulatedLink::reserve_until_s(double ready_s, double length_s) {
  if (length_s == 0.0) return ready_s;
  const std::lock_guard lock(mutex_);
  free_from_s_ = std::max(free_from_s_, ready_s) + length_s;
  return free_from_s_;
}

std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link,
                                            const workload::EmulatedNetwork& network, const plan::GroupSpan& span,
                                            const Clock& clock) {
  return std::make_unique<EmulatedCommunicator>(base, link, network, span, clock);
}

}  // namespace krigtune::engine
