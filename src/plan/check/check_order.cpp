// Happens-before by vector clocks, implemented a second time, so that errors of the builder and the planner are not
// repeated here.
//
// Within a buffer, every two accesses to the same elements must be ordered if one of them writes. If two buffers share
// bytes, all accesses to one must come before all accesses to the other, so that neither reads the other's contents.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "plan/check/checks.h"
#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

class Order {
 public:
  explicit Order(const StepPlan& plan) {
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      const Operation& operation = plan.operations[i];
      Clock clock{};
      const auto join = [&](std::size_t other) {
        for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], reached_[other][s]);
      };
      const auto stream = static_cast<std::size_t>(operation.stream);
      if (last_[stream] > 0) join(last_[stream] - 1);
      for (const OpId other : operation.waits) join(static_cast<std::size_t>(other));
      last_[stream] = i + 1;
      clock[stream] = i + 1;
      reached_.push_back(clock);
      stream_.push_back(stream);
    }
  }

  /// Returns whether operation `a` is done before `b` starts.
  bool before(std::size_t a, std::size_t b) const { return a != b && reached_[b][stream_[a]] > a; }

 private:
  using Clock =
      std::array<std::size_t, schedule::kStreamCount>;  // by stream: one more than its last operation that is done

  std::array<std::size_t, schedule::kStreamCount> last_{};
  std::vector<Clock> reached_;  // including the operation itself
  std::vector<std::size_t> stream_;
};

struct Use {
  std::size_t operation;
  std::int64_t begin, end;  // elements, of all ranks
  bool writes;
};

class OrderCheck {
 public:
  OrderCheck(const StepPlan& plan, PlanFindings& lines)
      : plan_(plan), findings_(plan, "order", lines), order_(plan), uses_(plan.buffers.size()) {
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      const Operation& operation = plan.operations[i];
      for (const Operand& operand : operation.operands) {
        const Range& range = operand.range;
        const std::int64_t last = range.begin_elems + (plan.group_ranks(operation.group) - 1) * range.rank_stride_elems;
        uses_[static_cast<std::size_t>(range.buffer)].push_back({i, std::min(range.begin_elems, last),
                                                                 std::max(range.begin_elems, last) + range.elems,
                                                                 operand.access != Access::kRead});
      }
    }
  }

  void run() {
    for (std::size_t b = 0; b < uses_.size(); ++b) check_buffer(b);
    for (const schedule::Place place : {schedule::Place::kDevice, schedule::Place::kHost}) check_shared_bytes(place);
    check_windows(plan_.windows.reductions, schedule::Stream::kReduce, "reductions");
    check_windows(plan_.windows.gathers, schedule::Stream::kGather, "gathers");
    if (plan_.windows.gathered_elems >= 0) check_gathered();
  }

 private:
  void check_buffer(std::size_t b) {
    const std::vector<Use>& uses = uses_[b];
    for (std::size_t w = 0; w < uses.size(); ++w) {
      if (!uses[w].writes) continue;
      for (std::size_t u = 0; u < uses.size(); ++u) {
        const bool meet = uses[u].begin < uses[w].end && uses[w].begin < uses[u].end;
        if (!meet || uses[u].operation == uses[w].operation || (uses[u].writes && u > w)) continue;
        const std::size_t early = std::min(uses[u].operation, uses[w].operation);
        const std::size_t late = std::max(uses[u].operation, uses[w].operation);
        if (!order_.before(early, late)) {
          findings_.add(late, static_cast<BufferId>(b), fmt::format("races with operation {}", early));
        }
      }
    }
  }

  bool all_before(std::size_t a, std::size_t b) const {
    return std::all_of(uses_[a].begin(), uses_[a].end(), [&](const Use& x) {
      return std::all_of(uses_[b].begin(), uses_[b].end(),
                         [&](const Use& y) { return order_.before(x.operation, y.operation); });
    });
  }

  void check_shared_bytes(schedule::Place place) {
    std::vector<std::size_t> by_offset;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].place == place && plan_.buffers[b].elems > 0) by_offset.push_back(b);
    }
    std::sort(by_offset.begin(), by_offset.end(), [&](std::size_t a, std::size_t b) {
      return plan_.buffers[a].offset_bytes < plan_.buffers[b].offset_bytes;
    });
    for (std::size_t i = 0; i < by_offset.size(); ++i) {
      const Buffer& lower = plan_.buffers[by_offset[i]];
      for (std::size_t j = i + 1; j < by_offset.size(); ++j) {
        const Buffer& upper = plan_.buffers[by_offset[j]];
        if (upper.offset_bytes >= lower.offset_bytes + lower.bytes()) break;
        const bool apart = !lower.persistent && !upper.persistent &&
                           (all_before(by_offset[i], by_offset[j]) || all_before(by_offset[j], by_offset[i]));
        if (!apart) {
          findings_.add(fmt::format("buffers {} '{}' and {} '{}' share bytes and are in use together", by_offset[i],
                                    lower.name, by_offset[j], upper.name));
        }
      }
    }
  }

  // Checks that at most `most` collectives of the stream are still in flight when computing continues.
  void check_windows(std::int64_t most, schedule::Stream stream, const char* what) {
    if (most < 0) return;
    std::vector<std::size_t> issued;
    std::size_t done = 0;
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      if (operation.stream == stream && is_collective(operation.kind) && operation.group == schedule::Group::kData &&
          operation.phase != schedule::Phase::kOptimizer) {
        issued.push_back(i);
      }
      if (operation.stream != schedule::Stream::kCompute || operation.phase == schedule::Phase::kOptimizer) continue;
      while (done < issued.size() && order_.before(issued[done], i)) ++done;
      if (static_cast<std::int64_t>(issued.size() - done) > most) {
        findings_.add(i, fmt::format("runs beside {} {}, of at most {}", issued.size() - done, what, most));
      }
    }
  }

  // Checks how many gathered parameters may exist when an operation of the compute stream runs.
  void check_gathered() {
    std::map<std::size_t, std::int64_t> live;
    std::vector<std::vector<std::size_t>> first_used_by(plan_.operations.size());
    for (std::size_t b = 0; b < uses_.size(); ++b) {
      const bool counts = plan_.buffers[b].term == schedule::Term::kGatheredParameters && !uses_[b].empty();
      if (counts) first_used_by[uses_[b].front().operation].push_back(b);
    }
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      for (const std::size_t b : first_used_by[i]) live[b] = plan_.buffers[b].elems;
      if (plan_.operations[i].stream != schedule::Stream::kCompute) continue;
      std::int64_t elems = 0;
      for (auto at = live.begin(); at != live.end();) {
        const bool is_over = std::all_of(uses_[at->first].begin(), uses_[at->first].end(),
                                         [&](const Use& use) { return order_.before(use.operation, i); });
        if (!is_over) elems += at->second;
        at = is_over ? live.erase(at) : std::next(at);
      }
      if (elems > plan_.windows.gathered_elems) {
        findings_.add(
            i, fmt::format("runs beside {} gathered parameters, of at most {}", elems, plan_.windows.gathered_elems));
      }
    }
  }

  const StepPlan& plan_;
  Findings findings_;
  Order order_;
  std::vector<std::vector<Use>> uses_;  // by buffer, in order of issue
};

}  // namespace

void check_order(const StepPlan& plan, PlanFindings& lines) { OrderCheck(plan, lines).run(); }

// Model states of one rank, in bytes, by Rajbhandari et al. 2020, section 5: with e bytes an element, Psi parameters of
// which W stay whole in stage 3, N ranks, and n moments of b bytes, with a copy of c bytes of M of them; frozen ones
// count as parameters only
//
//   parameters       e Psi               stage 3: e ((Psi - W) / N + W)
//   gradients        e Psi               stages 2 and 3: e Psi / N; an offloaded optimizer's lie on the host, in stages
//                                        0 and 1 on both
//   optimizer state  (b n Psi + c M) / N in stages 1 to 3, N = 1 in stage 0
namespace {

using Bytes2 = std::array<std::int64_t, schedule::kPlaceCount>;

std::size_t at(schedule::Place place) { return static_cast<std::size_t>(place); }

class Memory {
 public:
  Memory(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "memory", lines) {}

  void run() {
    Bytes2 ends{};
    for (const Buffer& buffer : plan_.buffers) {
      ends[at(buffer.place)] = std::max(ends[at(buffer.place)], buffer.offset_bytes + buffer.bytes());
    }
    expect("arena of the device", plan_.arena_bytes, ends[at(schedule::Place::kDevice)]);
    expect("arena of the host", plan_.host_arena_bytes, ends[at(schedule::Place::kHost)]);
    if (plan_.parameters.empty()) return;
    find_optimizer();
    const Bytes2 parameters = expected_parameters();
    const Bytes2 gradients = expected_gradients();
    const Bytes2 state = expected_state();
    for (const schedule::Place place : {schedule::Place::kDevice, schedule::Place::kHost}) {
      const char* name = place == schedule::Place::kDevice ? "device" : "host";
      const auto check = [&](schedule::Term term, const Bytes2& bytes) {
        expect(fmt::format("{} on the {}", schedule::to_string(term), name), kept(term, place), bytes[at(place)]);
      };
      check(schedule::Term::kParameters, parameters);
      check(schedule::Term::kGradients, gradients);
      check(schedule::Term::kOptimizerState, state);
    }
  }

 private:
  void expect(const std::string& what, std::int64_t is, std::int64_t should_be) {
    if (is != should_be) findings_.add(fmt::format("{}: {} bytes are planned, {} are needed", what, is, should_be));
  }

  std::int64_t kept(schedule::Term term, schedule::Place place) const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.persistent && buffer.term == term && buffer.place == place) bytes += buffer.bytes();
    }
    return bytes;
  }

  void find_optimizer() {
    for (const Operation& operation : plan_.operations) {
      orthogonalizes_ = orthogonalizes_ || operation.kind == schedule::OpKind::kOrthogonalize;
      if (!is_update(operation.kind)) continue;
      if (operation.stream == schedule::Stream::kHost) optimizer_ = schedule::Place::kHost;
      if (operation.kind == schedule::OpKind::kSgdPlain) {  // nothing beside the value; or the last step of Muon
        master_bytes_ = bytes_of(operation, 0);
        continue;
      }
      moments_ = static_cast<std::int64_t>(traits_of(operation.kind).group.size()) - 2;
      master_bytes_ = bytes_of(operation, 0);
      for (std::size_t moment = 0; moment < moment_bytes_.size(); ++moment) {
        if (static_cast<std::int64_t>(moment) < moments_) moment_bytes_.at(moment) = bytes_of(operation, 2 + moment);
      }
    }
  }

  // Of a value of an operand.
  std::int64_t bytes_of(const Operation& operation, std::size_t operand) const {
    const BufferId buffer = operation.operands[operand].range.buffer;
    return schedule::size_bytes(plan_.buffers[static_cast<std::size_t>(buffer)].type);
  }

  // Elements that have a second moment.
  std::int64_t with_second() const {
    std::int64_t elems = psi();
    for (const schedule::ParameterTensor& tensor : plan_.tensors)
      elems -= orthogonalizes_ && tensor.columns > 0 ? tensor.padded_elems : 0;
    return elems;
  }

  std::int64_t psi() const { return trained_elems(plan_); }
  std::int64_t share(std::int64_t from_stage) const { return plan_.zero_stage >= from_stage ? plan_.ranks : 1; }
  std::int64_t padded(const TensorHome& home) const {
    return plan_.tensors[static_cast<std::size_t>(home.tensor)].padded_elems;
  }
  std::int64_t type_bytes() const {
    return schedule::size_bytes(buffer_of(plan_, plan_.parameters.front().range).type);
  }

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
    if (optimizer_ == schedule::Place::kHost) bytes[at(schedule::Place::kHost)] = psi() / share(1) * type_bytes();
    if (optimizer_ == schedule::Place::kDevice || plan_.zero_stage < 2) {
      bytes[at(schedule::Place::kDevice)] = psi() / share(2) * type_bytes();
    }
    return bytes;
  }

  Bytes2 expected_state() const {
    std::int64_t mastered = 0;
    for (const TensorHome& home : plan_.copies) mastered += padded(home);
    Bytes2 bytes{};
    bytes[at(optimizer_)] =
        (moment_bytes_[0] * psi() + moment_bytes_[1] * with_second() + master_bytes_ * mastered) / share(1);
    return bytes;
  }

  const StepPlan& plan_;
  Findings findings_;
  std::int64_t moments_ = 0;
  std::array<std::int64_t, 2> moment_bytes_{};  ///< of a value, as the update has them
  std::int64_t master_bytes_ = 0;
  bool orthogonalizes_ = false;  ///< matrices have no second moment
  schedule::Place optimizer_ = schedule::Place::kDevice;
};

}  // namespace

void check_memory(const StepPlan& plan, PlanFindings& lines) { Memory(plan, lines).run(); }

}  // namespace krigtune::plan
