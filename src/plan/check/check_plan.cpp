#include "plan/check/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/check/checks.h"
#include "plan/check/symbolic_run.h"
#include "plan/op_traits.h"

namespace krigtune::plan {

void Findings::add(const std::string& what) {
  constexpr int kMost = 10;
  if (count_++ < kMost) lines_.push_back(fmt::format("{}: {}", check_, what));
}

void Findings::add(std::size_t operation, const std::string& what) {
  const Operation& at = plan_.operations[operation];
  const std::string block = at.layer >= 0 ? fmt::format(" of block {}", at.layer) : "";
  add(fmt::format("operation {} ({}, {}{}, micro-step {}) {}", operation, to_string(at.kind),
                  schedule::to_string(at.phase), block, at.micro_step, what));
}

void Findings::add(std::size_t operation, BufferId buffer, const std::string& what) {
  const auto id = static_cast<std::size_t>(buffer);
  add(operation, fmt::format("{}: buffer {} '{}'", what, buffer, plan_.buffers[id].name));
}

namespace {

struct PlanCheck {
  const char* name;
  const char* proves;
  void (*run)(const StepPlan& plan, PlanFindings& lines);
};

void structure_into(const StepPlan& plan, PlanFindings& lines) { lines = check_structure(plan); }

constexpr std::array kPlanChecks = {
    PlanCheck{
        "structure",
        "ranges lie in their buffers and buffers in their arenas; an operation waits for earlier ones only, so no "
        "stream waits forever",
        structure_into},
    PlanCheck{"operands", "each operation reads and writes ranges of the size, and in the memory, that its kind takes",
              check_operands},
    PlanCheck{"order",
              "no races; buffers that share memory are never in use together; no more communication or gathered "
              "parameters in flight than allowed",
              check_order},
    PlanCheck{
        "collectives",
        "the same on all ranks, one data type and whole shards each; bytes on the wire are right for each, and in "
        "sum for the ZeRO stage (of stage 3, gradients only)",
        check_collectives},
    PlanCheck{"memory",
              "parameters, gradients and optimizer state take the bytes of the ZeRO stage; arenas end where their last "
              "buffer does",
              check_memory},
    PlanCheck{
        "data flow",
        "two steps, run with symbols for numbers, read nothing unwritten or stale; gradients are those of the "
        "loss, summed over micro-steps and ranks once; each parameter is updated once and is everywhere afterwards",
        check_data_flow},
};

}  // namespace

std::vector<PlanCheckResult> run_plan_checks(const StepPlan& plan) {
  std::vector<PlanCheckResult> results;
  bool goes_on = true;
  for (const PlanCheck& check : kPlanChecks) {
    PlanCheckResult& result = results.emplace_back(PlanCheckResult{check.name, check.proves, goes_on});
    if (goes_on) check.run(plan, result.findings);
    goes_on = goes_on && result.findings.empty();
  }
  return results;
}

PlanFindings findings_of(const std::vector<PlanCheckResult>& results) {
  PlanFindings lines;
  for (const PlanCheckResult& result : results) {
    lines.insert(lines.end(), result.findings.begin(), result.findings.end());
  }
  return lines;
}

PlanFindings check_plan(const StepPlan& plan) { return findings_of(run_plan_checks(plan)); }

// Every wait and every predecessor in a stream comes earlier in the order of issue, which is the same on all ranks. So
// the operations of all ranks, with a collective counted as one, can run in that order without deadlock.
namespace {

class Structure {
 public:
  Structure(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "structure", lines) {}

  void run() {
    if (plan_.ranks < 1 || plan_.tensor_ranks < 1) return findings_.add("a plan has at least one rank");
    for (const Buffer& buffer : plan_.buffers) check(buffer);
    check_kept(plan_.loss, "the loss");
    if (plan_.control >= 0) check_kept(plan_.control, "the control");
    for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
      for (const TensorHome& home : *homes) check(home);
    }
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) check(i);
  }

 private:
  void check(const Buffer& buffer) {
    const std::int64_t arena = buffer.place == schedule::Place::kDevice ? plan_.arena_bytes : plan_.host_arena_bytes;
    const bool is_aligned = buffer.offset_bytes >= 0 && buffer.offset_bytes % schedule::kAlignmentBytes == 0;
    if (!is_aligned || buffer.elems < 0 || buffer.offset_bytes + buffer.bytes() > arena) {
      findings_.add(fmt::format("buffer '{}' does not lie in the arena on a multiple of {} bytes", buffer.name,
                                schedule::kAlignmentBytes));
    }
  }

  void check_kept(BufferId id, const char* what) {
    if (!exists(id) || !plan_.buffers[static_cast<std::size_t>(id)].persistent) {
      findings_.add(fmt::format("{} must lie in a persistent buffer", what));
    }
  }

  void check(const TensorHome& home) {
    check_kept(home.range.buffer, "every parameter");
    const bool names_tensor = home.tensor >= 0 && static_cast<std::size_t>(home.tensor) < plan_.tensors.size();
    if (!names_tensor || !exists(home.range.buffer) || !is_inside(home.range, plan_.ranks)) {
      findings_.add(fmt::format("the home of tensor {} leaves its buffer", home.tensor));
    }
  }

  void check(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    for (const OpId other : operation.waits) {
      if (other < 0 || static_cast<std::size_t>(other) >= i) {
        findings_.add(i, fmt::format("waits for operation {}, which is not before it", other));
      }
    }
    const std::size_t count = operation.operands.size();
    if (!traits_of(operation.kind).takes(count))
      return findings_.add(i, fmt::format("does not take {} operands", count));
    for (std::size_t k = 0; k < count; ++k) {
      const Operand& operand = operation.operands[k];
      if (!exists(operand.range.buffer)) return findings_.add(i, "names a buffer that does not exist");
      if (!is_inside(operand.range, plan_.group_ranks(operation.group))) {
        findings_.add(i, operand.range.buffer, fmt::format("leaves with operand {} its buffer", k));
      }
    }
    check_shards(i);
  }

  void check_shards(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const bool gathers = operation.kind == schedule::OpKind::kAllGather;
    if (!gathers && operation.kind != schedule::OpKind::kReduceScatter) return;
    const std::int64_t ranks = plan_.group_ranks(operation.group);
    for (std::size_t k = gathers ? 1 : 0; k < operation.operands.size(); k += gathers ? 2 : 1) {
      const Range& whole = operation.operands[k].range;
      if (whole.elems % ranks != 0) findings_.add(i, whole.buffer, "has uneven shards");
      if (gathers && operation.operands[k - 1].range.elems != whole.elems / ranks) {
        findings_.add(i, whole.buffer, "has a shard of another size than 1/N");
      }
    }
  }

  bool is_inside(const Range& range, std::int64_t ranks) const {
    const std::int64_t elems = buffer_of(plan_, range).elems;
    const std::int64_t last = range.begin_elems + (ranks - 1) * range.rank_stride_elems;
    return range.elems > 0 && std::min(range.begin_elems, last) >= 0 &&
           std::max(range.begin_elems, last) + range.elems <= elems;
  }

  bool exists(BufferId id) const { return id >= 0 && static_cast<std::size_t>(id) < plan_.buffers.size(); }

  const StepPlan& plan_;
  Findings findings_;
};

}  // namespace

PlanFindings check_structure(const StepPlan& plan) {
  PlanFindings lines;
  Structure(plan, lines).run();
  return lines;
}

// Checks the requirements of each kind, operand by operand: access, size and place.
namespace {

class Operands {
 public:
  Operands(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "operands", lines) {}

  void run() {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      const OpTraits& traits = traits_of(operation.kind);
      const std::size_t count = operation.operands.size();
      for (std::size_t k = 0; k < count; ++k) {
        const Operand& operand = operation.operands[k];
        const OperandTraits& expected = traits.operand(k, count);
        if (!allows(expected.role, operand.access)) {
          findings_.add(i, operand.range.buffer, fmt::format("does not access operand {} like this", k));
        }
        if (expected.elems != nullptr && expected.elems(operation.shape) != operand.range.elems) {
          findings_.add(i, operand.range.buffer, fmt::format("has another shape than operand {}", k));
        }
        check_place(i, operand.range.buffer);
      }
      check_pairs(i);
    }
  }

 private:
  // Sums and copies element by element.
  void check_pairs(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const OpTraits& traits = traits_of(operation.kind);
    if (!traits.is_list() || is_collective(operation.kind)) return;
    const auto elems = [&](std::size_t k) { return operation.operands[k].range.elems; };
    const std::size_t stride = traits.group.size();
    for (std::size_t k = traits.operands.size(); k + stride <= operation.operands.size(); k += stride) {
      for (std::size_t other = k + 1; other < k + stride; ++other) {
        if (elems(other) != elems(k)) {
          findings_.add(i, operation.operands[other].range.buffer, "pairs ranges of different length");
        }
      }
    }
  }

  // Only copies access both memories.
  void check_place(std::size_t i, BufferId buffer) {
    const Operation& operation = plan_.operations[i];
    if (operation.kind == schedule::OpKind::kCopy && operation.stream == schedule::Stream::kCopy) return;
    const schedule::Place own =
        operation.stream == schedule::Stream::kHost ? schedule::Place::kHost : schedule::Place::kDevice;
    if (plan_.buffers[static_cast<std::size_t>(buffer)].place != own) {
      findings_.add(i, buffer, "works on the other memory's");
    }
  }

  const StepPlan& plan_;
  Findings findings_;
};

}  // namespace

void check_operands(const StepPlan& plan, PlanFindings& lines) { Operands(plan, lines).run(); }

// Plans are the same for all ranks, and each stream has its own communicator for each group, so every communicator has
// the same sequence on all ranks. Each collective and the bytes remain to be checked. (Whole shards are part of the
// structure, above.)
//
//   one rank of N sends (N - 1) / N of the whole in a reduce-scatter or an all-gather, twice that in an all-reduce
//
// Per step, with e bytes an element of Psi trained parameters and k micro-steps (Rajbhandari et al. 2020, section 7;
// DeepSpeed: stage_1_and_2.py all-reduces), all times (N - 1) / N:
//
//   stage 0: 2 e Psi    1: e Psi + e Psi    2: k e Psi + e Psi    3: k e Psi + gathers;  deepspeed 1, 2: 2 e Psi for e
//   Psi
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
  std::int64_t bytes(const Range& range) const {
    return range.elems * schedule::size_bytes(buffer_of(plan_, range).type);
  }

  void check(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const std::int64_t ranks = plan_.group_ranks(operation.group);
    const bool gathers = operation.kind == schedule::OpKind::kAllGather;
    const schedule::DType type = buffer_of(plan_, operation.operands.front().range).type;
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
      if (!is_collective(operation.kind) || operation.group != schedule::Group::kData || is_scalar(operation)) continue;
      (operation.kind == schedule::OpKind::kAllGather ? gathered : reduced) += operation.wire_bytes;
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

  // Gradients have the type of the parameters used in the computation.
  Expected wire_bytes_expected() const {
    if (plan_.parameters.empty()) return {};
    const std::int64_t size = schedule::size_bytes(buffer_of(plan_, plan_.parameters.front().range).type);
    const std::int64_t once = trained_elems(plan_) * size * (plan_.ranks - 1) / plan_.ranks;
    const bool all_reduces =
        plan_.zero_stage == 0 || (plan_.dialect == workload::Dialect::kDeepSpeed && plan_.zero_stage < 3);
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

// Executes two steps: the first starts with the initial values, the second with the results of the first. This reveals
// values that a step needs from an earlier one but does not get, and values that it must not take over.

void check_data_flow(const StepPlan& plan, PlanFindings& lines) {
  Findings findings(plan, "data flow", lines);
  SymbolicRun run(plan, findings);
  run.step();
  run.step();
  run.check_uses();
}

}  // namespace krigtune::plan
