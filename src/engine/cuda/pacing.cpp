// Measures the error of an emulated network. A collective is held until the time that the network would need has passed
// since its start, less the time of launching kernels (EmulatedDeviceLink). It takes longer if the copies that replace
// it do, which makes the GPU unsuitable for the link, and is recognised by timing copies that are not held.
#include "engine/cuda/pacing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/statistics.h"
#include "engine/cuda/runtime/check.h"
#include "plan/collective_time.h"
#include "plan/op_traits.h"

namespace krigtune::cuda {
namespace {

constexpr double kWarnedOff = 0.05;
constexpr double kRefusedOff = 0.2;
constexpr double kLongS = 0.25;  // longer collectives are timed only if there is no shorter one

struct Chosen {
  const plan::Operation* operation = nullptr;
  double stated_s = 0.0;
};

// Of two short collectives the larger one is better, otherwise the shorter one.
bool is_better(const Chosen& one, const Chosen& other) {
  if (one.stated_s > kLongS || other.stated_s > kLongS) return one.stated_s < other.stated_s;
  return one.stated_s > other.stated_s;
}

std::vector<Chosen> chosen_collectives(const plan::StepPlan& plan, const workload::EmulatedNetwork& network,
                                       std::int64_t ranks_per_node) {
  std::map<std::pair<schedule::OpKind, schedule::Group>, Chosen> by_kind;
  for (const plan::Operation& operation : plan.operations) {
    // An emulated maximum moves nothing.
    if (!plan::is_collective(operation.kind) || operation.kind == schedule::OpKind::kAllReduceMax) continue;
    const plan::GroupSpan span = plan::group_span(plan, operation.group, 0, ranks_per_node);
    const Chosen one{&operation, plan::collective_time_s(network, operation.kind, span, operation.wire_bytes)};
    if (one.stated_s <= 0.0) continue;
    Chosen& best = by_kind[{operation.kind, operation.group}];
    if (best.operation == nullptr || is_better(one, best)) best = one;
  }
  std::vector<Chosen> chosen;
  for (const auto& [kind, one] : by_kind) chosen.push_back(one);
  return chosen;
}

/// Times one collective repeatedly on a stream of its own.
class Stopwatch {
 public:
  Stopwatch(const plan::Operation& operation, std::vector<engine::OperandView> operands,
            DeviceCommunicator& communicator, const EmulatedDeviceLink& link)
      : operation_(operation), operands_(std::move(operands)), communicator_(communicator), link_(link) {}

  double median_s(int repeats) const {
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) seconds.push_back(once_s());
    return median(seconds);
  }
  double once_s() const {
    link_.occupy(stream_.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span_.begin.get(), stream_.get()));
    communicator_.start(operation_, operands_, stream_.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span_.end.get(), stream_.get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    return span_.elapsed_s();
  }

 private:
  const plan::Operation& operation_;
  std::vector<engine::OperandView> operands_;
  DeviceCommunicator& communicator_;
  const EmulatedDeviceLink& link_;
  StreamHandle stream_ = make_stream(true);
  Span span_;
};

double off(const engine::PacedCollective& paced) { return paced.held_s / paced.stated_s - 1.0; }

std::string what_of(const engine::PacedCollective& paced) {
  const std::string kind = plan::to_string(paced.kind);
  return fmt::format("{} {} in which a rank sends {}", kind.starts_with('a') ? "an" : "a", kind,
                     to_string(Bytes{paced.wire_bytes}));
}

}  // namespace

std::vector<engine::PacedCollective> measure_pacing(const plan::StepPlan& plan, const DeviceMemory& memory,
                                                    const workload::EmulatedNetwork& network,
                                                    std::int64_t ranks_per_node,
                                                    const DeviceCommunicators& communicators,
                                                    EmulatedDeviceLink& link) {
  std::vector<engine::PacedCollective> all;
  for (const Chosen& chosen : chosen_collectives(plan, network, ranks_per_node)) {
    const plan::Operation& operation = *chosen.operation;
    const Stopwatch stopwatch(operation, operands_of(plan, memory, operation, 0),
                              *communicators[static_cast<std::size_t>(operation.group)], link);
    engine::PacedCollective paced{operation.kind, operation.wire_bytes, chosen.stated_s};
    const int repeats = chosen.stated_s > kLongS ? 1 : 3;
    link.set_held(false);
    stopwatch.once_s();  // loads the kernels
    paced.copies_s = stopwatch.median_s(repeats);
    link.set_held(true);
    paced.held_s = stopwatch.median_s(repeats);
    all.push_back(paced);
  }
  return all;
}

void require_pacing(const std::vector<engine::PacedCollective>& paced, const workload::EmulatedNetwork& network) {
  constexpr double kShortS = 20e-6;  // launching the kernels is a noticeable part of less
  constexpr double kMilliseconds = 1e3;
  for (const engine::PacedCollective& one : paced) {
    if (off(one) <= kRefusedOff || one.copies_s <= std::max(one.stated_s, kShortS)) continue;
    throw UserError(
        fmt::format("\"emulate_network\": this GPU cannot imitate '{}': {} needs {:.3g} ms there, and the copies in "
                    "this GPU's memory in its place {:.3g} ms",
                    network.name, what_of(one), one.stated_s * kMilliseconds, one.copies_s * kMilliseconds),
        "state a slower link, or train on GPUs that have this one");
  }
}

std::string pacing_warning(const std::vector<engine::PacedCollective>& paced) {
  constexpr double kMicroseconds = 1e6;
  constexpr double kPercent = 100.0;
  const auto worst = std::max_element(paced.begin(), paced.end(), [](const auto& one, const auto& other) {
    return std::abs(off(one)) < std::abs(off(other));
  });
  if (worst == paced.end() || std::abs(off(*worst)) <= kWarnedOff) return "";
  return fmt::format(
      "the emulated network is off by up to {:+.0f} %: {} takes {:.1f} us where it is stated to take {:.1f}; step "
      "times "
      "include that (emulate a slower link, or larger messages)",
      off(*worst) * kPercent, what_of(*worst), worst->held_s * kMicroseconds, worst->stated_s * kMicroseconds);
}

}  // namespace krigtune::cuda
