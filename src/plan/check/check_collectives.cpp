// Plans are the same for all ranks and each stream has a communicator of its own for each group, so every communicator
// sees the same sequence on all ranks. What remains to be checked: each collective for itself, and the bytes. (Whole
// shards: check_structure.cpp.)
//
//   one rank of N sends (N - 1) / N of the whole in a reduce-scatter or an all-gather, twice that in an all-reduce
//
// Per step, with e bytes an element of Psi parameters and k micro-steps (Rajbhandari et al. 2020, section 7; DeepSpeed:
// stage_1_and_2.py all-reduces), all times (N - 1) / N:
//
//   stage 0: 2 e Psi    1: e Psi + e Psi    2: k e Psi + e Psi    3: k e Psi + gathers;  deepspeed 1, 2: 2 e Psi for e
//   Psi
#include <fmt/format.h>

#include "check/checks.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

class Collectives {
 public:
  Collectives(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "collectives", lines) {}

  void run() {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      if (is_collective(operation.kind)) {
        check(i);
      } else if (operation.wire_bytes != 0) {
        findings_.add(i, "sends bytes");
      }
    }
    check_sums();
  }

 private:
  std::int64_t bytes(const Range& range) const { return range.elems * size_bytes(buffer_of(plan_, range).type); }

  void check(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const std::int64_t ranks = plan_.group_ranks(operation.group);
    const bool gathers = operation.kind == OpKind::kAllGather;
    const DType type = buffer_of(plan_, operation.operands.front().range).type;
    std::int64_t whole_bytes = 0;
    for (std::size_t k = 0; k < operation.operands.size(); ++k) {
      const Range& range = operation.operands[k].range;
      if (buffer_of(plan_, range).type != type) findings_.add(i, range.buffer, "mixes types");
      const bool is_whole = !gathers || k % 2 == 1;
      if (!is_whole) continue;
      whole_bytes += bytes(range);
      if (range.rank_stride_elems != 0) findings_.add(i, range.buffer, "has a whole that moves with the rank");
      if (gathers) check_shard(i, operation.operands[k - 1].range, range);
    }
    const std::int64_t sent = traits_of(operation.kind).wire_passes * whole_bytes * (ranks - 1) / ranks;
    if (operation.wire_bytes != sent) {
      findings_.add(i, fmt::format("states {} bytes sent, its ranges say {}", operation.wire_bytes, sent));
    }
  }

  void check_shard(std::size_t i, const Range& shard, const Range& whole) {
    const std::int64_t part = whole.elems / plan_.group_ranks(plan_.operations[i].group);
    if (shard.buffer != whole.buffer) return;
    const bool in_place = shard.begin_elems == whole.begin_elems && shard.rank_stride_elems == part;
    if (!in_place) findings_.add(i, shard.buffer, "has a shard that is not its part of the whole");
  }

  void check_sums() {
    const Expected expected = wire_bytes_expected();
    std::int64_t reduced = 0;
    std::int64_t gathered = 0;
    for (const Operation& operation : plan_.operations) {
      if (!is_collective(operation.kind) || operation.group != Group::kData || is_scalar(operation)) continue;
      (operation.kind == OpKind::kAllGather ? gathered : reduced) += operation.wire_bytes;
    }
    if (reduced != expected.reduced) {
      findings_.add(fmt::format("a step sends {} bytes to reduce gradients, stage {} needs {}", reduced,
                                plan_.zero_stage, expected.reduced));
    }
    if (plan_.zero_stage < 3 && gathered != expected.gathered) {
      findings_.add(fmt::format("a step sends {} bytes to gather parameters, stage {} needs {}", gathered,
                                plan_.zero_stage, expected.gathered));
    }
  }

  struct Expected {
    std::int64_t reduced = 0, gathered = 0;
  };

  // Gradients have the type of the parameters that are computed with.
  Expected wire_bytes_expected() const {
    if (plan_.parameters.empty()) return {};
    const std::int64_t size = size_bytes(buffer_of(plan_, plan_.parameters.front().range).type);
    const std::int64_t once = plan_.padded_parameter_elems * size * (plan_.ranks - 1) / plan_.ranks;
    const bool all_reduces = plan_.zero_stage == 0 || (plan_.dialect == Dialect::kDeepSpeed && plan_.zero_stage < 3);
    const std::int64_t times = plan_.zero_stage >= 2 ? plan_.micro_steps : 1;
    return {(all_reduces ? 2 : 1) * times * once, plan_.zero_stage == 0 ? 0 : once};
  }

  static bool is_scalar(const Operation& operation) {
    return operation.operands.size() == 1 && operation.operands.front().range.elems == 1;
  }

  const StepPlan& plan_;
  Findings findings_;
};

}  // namespace

void check_collectives(const StepPlan& plan, PlanFindings& lines) { Collectives(plan, lines).run(); }

}  // namespace krigtune
