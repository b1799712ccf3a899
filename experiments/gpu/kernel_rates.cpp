// Kernels that are bound by memory: of each kind the operation that moves most, of plans that have all of them between
// them.
#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>

#include "plan/op_traits.h"
#include "rates.h"

namespace krigtune::cuda {
namespace {

/// Plans that have every operation bound by memory between them.
std::vector<plan::StepPlan> plans_with_all_kernels(const Scale& scale) {
  const std::int64_t micro_batch = scale.small ? 1 : 16;
  const workload::Workload gpt = one_layer(scale);
  workload::Workload llama = gpt;
  llama.optimizer = workload::OptimizerKind::kSgd;
  llama.model.positions = workload::Positions::kRotary;
  llama.model.norm = workload::Norm::kRmsNorm;
  llama.model.qk_norm = workload::QkNorm::kHead;
  llama.model.gated_mlp = true;
  llama.model.tied_embeddings = false;
  workload::Workload clipped = gpt;
  clipped.model.dropout = 0.1;
  clipped.gradient_clipping = 1.0;
  workload::Workload split = gpt;
  split.model.heads = scale.small ? 2 : 20;  // which two ranks share
  split.model.kv_heads = split.model.heads;
  return {plan_of(gpt, {.micro_batch = micro_batch}), plan_of(llama, {.micro_batch = micro_batch}),
          plan_of(clipped, {.micro_batch = micro_batch, .micro_steps = 2, .zero_stage = 2, .data_ranks = 2}),
          plan_of(split, {.micro_batch = micro_batch, .tensor_ranks = 2})};
}

// Whoever adds an operation adds a plan that has it, or finds here that none has.
void expect_all_kernels(const std::set<schedule::OpKind>& timed) {
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    const auto kind = static_cast<schedule::OpKind>(k);
    // Of these a step has one or none, of a few elements.
    const bool is_small =
        kind == schedule::OpKind::kLoadBatch || kind == schedule::OpKind::kZero || kind == schedule::OpKind::kLossScale;
    if (plan::traits_of(kind).predicted_only || plan::is_collective(kind) || plan::is_product(kind) || is_small ||
        timed.count(kind) > 0)
      continue;
    throw std::logic_error(
        fmt::format("kernels.csv has no {}: no plan of kernel_rates.cpp has one", plan::to_string(kind)));
  }
}

std::int64_t bytes_of(const plan::Operation& operation) { return operation.bytes_read + operation.bytes_written; }

bool is_bound_by_memory(const plan::Operation& operation, const Scale& scale) {
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20U;
  return !plan::is_collective(operation.kind) && !plan::is_product(operation.kind) &&
         operation.stream != schedule::Stream::kHost && (scale.small || bytes_of(operation) >= kLeastBytes);
}

/// Of each kind that is not in `seen` the operation that moves most.
std::map<schedule::OpKind, const plan::Operation*> largest_of_each_kind(const plan::StepPlan& plan,
                                                                        const std::set<schedule::OpKind>& seen,
                                                                        const Scale& scale) {
  std::map<schedule::OpKind, const plan::Operation*> largest;
  for (const plan::Operation& operation : plan.operations) {
    if (!is_bound_by_memory(operation, scale) || seen.count(operation.kind) > 0) continue;
    const plan::Operation*& best = largest[operation.kind];
    if (best == nullptr || bytes_of(operation) > bytes_of(*best)) best = &operation;
  }
  return largest;
}

class KernelTable {
 public:
  KernelTable(const std::filesystem::path& folder, double copy_bytes_per_s)
      : table_(folder / "kernels.csv",
               {"kernel", "rows", "inner", "outer", "bytes", "time_us", "bytes_per_s", "of_copy"}),
        copy_bytes_per_s_(copy_bytes_per_s) {}
  void add(const std::string& kernel, const plan::Shape& s, std::int64_t bytes, double time_s) {
    const double bytes_per_s = static_cast<double>(bytes) / time_s;
    table_.add({kernel, fmt::to_string(s.rows), fmt::to_string(s.inner), fmt::to_string(s.outer), fmt::to_string(bytes),
                number(kMicroseconds * time_s), number(bytes_per_s),
                fmt::format("{:.3f}", bytes_per_s / copy_bytes_per_s_)});
  }
  void write() const { table_.write(); }

 private:
  Table table_;
  double copy_bytes_per_s_;
};

/// What the second of a pair would read of what the first has written, which is then in registers.
std::int64_t bytes_between(const plan::StepPlan& plan, const plan::Operation& first, const plan::Operation& second) {
  std::int64_t bytes = 0;
  for (const plan::Operand& read : second.operands) {
    if (read.access != plan::Access::kRead) continue;
    for (const plan::Operand& written : first.operands) {
      const bool is_same = read.range.buffer == written.range.buffer &&
                           read.range.begin_elems == written.range.begin_elems && written.access != plan::Access::kRead;
      const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(read.range.buffer)];
      if (is_same) bytes += read.range.elems * schedule::size_bytes(buffer.type);
    }
  }
  return bytes;
}

/// The first of each pair of operations without products that the executor makes one kernel of.
void time_pairs(const plan::StepPlan& plan, std::set<std::string>& seen, OperationTimer& timer, KernelTable& table) {
  for (std::size_t i = 0; i + 1 < plan.operations.size(); ++i) {
    const plan::Operation& first = plan.operations[i];
    const plan::Operation& second = plan.operations[i + 1];
    if (first.stream != second.stream || plan::is_product(first.kind) || !timer.are_one(first, second)) continue;
    const std::string name = std::string(plan::to_string(first.kind)) + " and " + plan::to_string(second.kind);
    if (!seen.insert(name).second) continue;
    table.add(name, second.shape, bytes_of(first) + bytes_of(second) - bytes_between(plan, first, second),
              timer.time_s(first, &second));
  }
}

}  // namespace

void time_kernels(const std::filesystem::path& folder, const Scale& scale) {
  const std::int64_t copied = std::int64_t{1} << (scale.small ? 20U : 30U);
  const double copy_bytes_per_s = copied_bytes_per_s(copied, scale.effort);
  KernelTable table(folder, copy_bytes_per_s);
  table.add("copy by cudaMemcpyAsync", {}, 2 * copied, static_cast<double>(2 * copied) / copy_bytes_per_s);
  std::set<schedule::OpKind> seen;
  std::set<std::string> seen_pairs;
  for (const plan::StepPlan& plan : plans_with_all_kernels(scale)) {
    OperationTimer timer(plan, scale.effort);
    const auto largest = largest_of_each_kind(plan, seen, scale);
    for (const auto& [kind, operation] : largest) {
      seen.insert(kind);
      table.add(plan::to_string(kind), operation->shape, bytes_of(*operation), timer.time_s(*operation));
    }
    time_pairs(plan, seen_pairs, timer, table);
  }
  if (scale.small) expect_all_kernels(seen);  // otherwise what moves little is left out
  table.write();
}

}  // namespace krigtune::cuda
