// The alpha-beta model (Hockney 1994): a collective of which this rank sends S bytes takes alpha + S / beta from the
// moment at which the data of all ranks were ready. Copying within this machine counts towards that time.
#include "host/emulated_link.h"

#include <algorithm>

namespace krigtune {
namespace {

class EmulatedCommunicator final : public Communicator {
 public:
  EmulatedCommunicator(Communicator& base, EmulatedLink& link, const Clock& clock)
      : base_(base), link_(link), clock_(clock) {}

  double all_reduce(const Collective& collective) override { return hold(base_.all_reduce(collective), collective); }
  double all_reduce_max(const Collective& collective) override {
    return hold(base_.all_reduce_max(collective), collective);
  }
  double reduce_scatter(const Collective& collective) override {
    return hold(base_.reduce_scatter(collective), collective);
  }
  double all_gather(const Collective& collective) override { return hold(base_.all_gather(collective), collective); }

 private:
  double hold(double ready_s, const Collective& collective) {
    clock_.sleep_until_s(link_.reserve_until_s(ready_s, collective.wire_bytes));
    return ready_s;
  }

  Communicator& base_;
  EmulatedLink& link_;
  const Clock& clock_;
};

}  // namespace

double EmulatedLink::reserve_until_s(double ready_s, std::int64_t bytes) {
  if (bytes == 0) return ready_s;
  const std::lock_guard lock(mutex_);
  free_from_s_ =
      std::max(free_from_s_, ready_s) + network_.latency_s + static_cast<double>(bytes) / network_.bytes_per_s;
  return free_from_s_;
}

std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link, const Clock& clock) {
  return std::make_unique<EmulatedCommunicator>(base, link, clock);
}

}  // namespace krigtune
