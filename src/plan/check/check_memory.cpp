// Model states of one rank, in bytes, by Rajbhandari et al. 2020, section 5: with e bytes an element, Psi parameters of
// which W stay whole in stage 3, N ranks, and n moments of 4 bytes
//
//   parameters       e Psi               stage 3: e ((Psi - W) / N + W)
//   gradients        e Psi               stages 2 and 3: e Psi / N; an offloaded optimizer's lie on the host, in stages
//                                        0 and 1 on both
//   optimizer state  (4 n Psi + 4 M) / N in stages 1 to 3, N = 1 in stage 0; M: parameters with an fp32 master
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "check/checks.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

using Bytes2 = std::array<std::int64_t, kPlaceCount>;

std::size_t at(Place place) { return static_cast<std::size_t>(place); }

class Memory {
 public:
  Memory(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "memory", lines) {}

  void run() {
    Bytes2 ends{};
    for (const Buffer& buffer : plan_.buffers) {
      ends[at(buffer.place)] = std::max(ends[at(buffer.place)], buffer.offset_bytes + buffer.bytes());
    }
    expect("arena of the device", plan_.arena_bytes, ends[at(Place::kDevice)]);
    expect("arena of the host", plan_.host_arena_bytes, ends[at(Place::kHost)]);
    if (plan_.parameters.empty()) return;
    find_optimizer();
    const Bytes2 parameters = expected_parameters();
    const Bytes2 gradients = expected_gradients();
    const Bytes2 state = expected_state();
    for (const Place place : {Place::kDevice, Place::kHost}) {
      const char* name = place == Place::kDevice ? "device" : "host";
      const auto check = [&](Term term, const Bytes2& bytes) {
        expect(fmt::format("{} on the {}", to_string(term), name), kept(term, place), bytes[at(place)]);
      };
      check(Term::kParameters, parameters);
      check(Term::kGradients, gradients);
      check(Term::kOptimizerState, state);
    }
  }

 private:
  void expect(const std::string& what, std::int64_t is, std::int64_t should_be) {
    if (is != should_be) findings_.add(fmt::format("{}: {} bytes are planned, {} are needed", what, is, should_be));
  }

  std::int64_t kept(Term term, Place place) const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.persistent && buffer.term == term && buffer.place == place) bytes += buffer.bytes();
    }
    return bytes;
  }

  void find_optimizer() {
    for (const Operation& operation : plan_.operations) {
      if (!is_update(operation.kind)) continue;
      moments_ = static_cast<std::int64_t>(traits_of(operation.kind).group.size()) - 2;
      if (operation.stream == Stream::kHost) optimizer_ = Place::kHost;
    }
  }

  std::int64_t psi() const { return plan_.padded_parameter_elems; }
  std::int64_t share(std::int64_t from_stage) const { return plan_.zero_stage >= from_stage ? plan_.ranks : 1; }
  std::int64_t padded(const TensorHome& home) const {
    return plan_.tensors[static_cast<std::size_t>(home.tensor)].padded_elems;
  }
  std::int64_t type_bytes() const { return size_bytes(buffer_of(plan_, plan_.parameters.front().range).type); }

  Bytes2 expected_parameters() const {
    Bytes2 bytes{};
    for (const TensorHome& home : plan_.parameters) {
      const std::int64_t parts = home.sharded ? plan_.ranks : 1;
      bytes[at(buffer_of(plan_, home.range).place)] += padded(home) / parts * type_bytes();
    }
    return bytes;
  }

  Bytes2 expected_gradients() const {
    Bytes2 bytes{};
    if (optimizer_ == Place::kHost) bytes[at(Place::kHost)] = psi() / share(1) * type_bytes();
    if (optimizer_ == Place::kDevice || plan_.zero_stage < 2) {
      bytes[at(Place::kDevice)] = psi() / share(2) * type_bytes();
    }
    return bytes;
  }

  Bytes2 expected_state() const {
    constexpr std::int64_t kSingle = 4;
    std::int64_t mastered = 0;
    for (const TensorHome& home : plan_.copies) mastered += padded(home);
    Bytes2 bytes{};
    bytes[at(optimizer_)] = kSingle * (moments_ * psi() + mastered) / share(1);
    return bytes;
  }

  const StepPlan& plan_;
  Findings findings_;
  std::int64_t moments_ = 0;
  Place optimizer_ = Place::kDevice;
};

}  // namespace

void check_memory(const StepPlan& plan, PlanFindings& lines) { Memory(plan, lines).run(); }

}  // namespace krigtune
