// Forward and backward of a GPT with hidden 512 on one rank, operation by operation through the kernels. In the same
// run, the matrix products of its linear layers alone, with the same shapes, by the fastest vector unit of this
// machine:
//
//   ratio = (flops of linear layers and attention / time of all operations) / (flops of the products / their time)
//
// Times are the minimum over all iterations of each operation and each product, so the influence of a neighbour on the
// same core is excluded from both. "share ..." is the fraction of the time in operations of a kind.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "engine/host/bound_plan.h"
#include "engine/host/kernels/kernel_unit.h"
#include "krigtune/rng.h"
#include "plan/op_traits.h"
#include "small_model.h"

namespace krigtune {
namespace {

plan::StepPlan plan_of_hidden_512() {
  workload::Workload workload;
  workload.model = {
      .layers = 4, .hidden = 512, .heads = 8, .kv_heads = 8, .ffn_hidden = 2048, .vocab = 2048, .seq_len = 256};
  constexpr std::int64_t kBuckets = 1 << 30;
  return plan::build_plan(workload, cpu_ranks(1), configuration(0, 4, 1, kBuckets, kBuckets, false));
}

void fill(const plan::StepPlan& plan, const engine::RankMemory& memory) {
  for (const plan::Buffer& buffer : plan.buffers) {
    std::fill_n(memory.at(buffer), static_cast<std::size_t>(buffer.bytes()), std::byte{0});
  }
  Rng rng(1, 0);
  for (const plan::TensorHome& home : plan.parameters) {
    const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(home.range.buffer)];
    auto* values = reinterpret_cast<float*>(memory.at(buffer)) + home.range.begin_elems;
    const bool gain = plan.tensors[static_cast<std::size_t>(home.tensor)].initial_mean != 0.0;
    for (std::int64_t i = 0; i < home.range.elems; ++i)
      values[i] = gain ? 1.0F : 0.02F * static_cast<float>(rng.normal());
  }
}

/// Something that is repeated, and the shortest time that it took.
struct Timed {
  double flops = 0.0;
  double least_s = std::numeric_limits<double>::infinity();

  template <class Do>
  void run(const Clock& clock, Do act) {
    const double from_s = clock.now_s();
    act();
    least_s = std::min(least_s, clock.now_s() - from_s);
  }
};

double total_s(const std::vector<Timed>& all) {
  double sum_s = 0.0;
  for (const Timed& timed : all) sum_s += timed.least_s;
  return sum_s;
}

double total_flops(const std::vector<Timed>& all) {
  double sum = 0.0;
  for (const Timed& timed : all) sum += timed.flops;
  return sum;
}

/// Forward and backward of one rank.
class Model {
 public:
  Model() : plan_(plan_of_hidden_512()), memory_(plan_, false), bound_(engine::bind_plan(plan_, memory_, {0, 0})) {
    fill(plan_, memory_);
    for (const engine::BoundOperation& operation : bound_[schedule::index_of(schedule::Stream::kCompute)]) {
      const schedule::Phase phase = operation.operation->phase;
      if (operation.kernel == nullptr || phase == schedule::Phase::kOptimizer) continue;
      operations_.push_back(&operation);
      times_.push_back({plan::is_product(operation.operation->kind) ? operation.operation->flops : 0.0});
      scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(engine::call_scratch_elems(operation))));
    }
  }

  void run(const Clock& clock) {
    const engine::StepContext context;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      times_[i].run(clock, [&] { engine::call_kernel(*operations_[i], context, scratch_.data()); });
    }
  }

  const std::vector<const engine::BoundOperation*>& operations() const { return operations_; }
  const std::vector<Timed>& times() const { return times_; }

 private:
  plan::StepPlan plan_;
  engine::RankMemory memory_;
  engine::BoundPlan bound_;
  std::vector<const engine::BoundOperation*> operations_;
  std::vector<Timed> times_;
  std::vector<float> scratch_;
};

engine::Product<float> product_of(const plan::Operation& operation, float* a, float* b, float* c) {
  const plan::Shape& s = operation.shape;
  if (operation.kind == schedule::OpKind::kLinearForward) {
    return {engine::dense<const float>(a, s.rows, s.inner), engine::dense<const float>(b, s.outer, s.inner),
            engine::dense(c, s.rows, s.outer), false, true};
  }
  if (operation.kind == schedule::OpKind::kLinearBackwardInput) {
    return {engine::dense<const float>(a, s.rows, s.outer), engine::dense<const float>(b, s.outer, s.inner),
            engine::dense(c, s.rows, s.inner)};
  }
  return {engine::dense<const float>(a, s.rows, s.outer), engine::dense<const float>(b, s.rows, s.inner),
          engine::dense(c, s.outer, s.inner), true};
}

/// The products of the linear layers alone, on one vector unit.
class Products {
 public:
  Products(const engine::KernelUnit& unit, const Model& model) : unit_(unit), scratch_(engine::kGemmScratchElems) {
    std::size_t most = 0;
    for (const engine::BoundOperation* bound : model.operations()) {
      const plan::Operation& operation = *bound->operation;
      if (!plan::is_matrix_product(operation.kind)) continue;
      operations_.push_back(&operation);
      times_.push_back({operation.flops});
      for (const engine::OperandView& view : bound->operands)
        most = std::max(most, static_cast<std::size_t>(view.elems));
    }
    Rng rng(2, 0);
    for (auto* matrix : {&a_, &b_, &c_}) {
      matrix->resize(most);
      for (float& value : *matrix) value = static_cast<float>(rng.uniform() - 0.5);
    }
  }

  void run(const Clock& clock) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const engine::Product<float> product = product_of(*operations_[i], a_.data(), b_.data(), c_.data());
      times_[i].run(clock, [&] { unit_.multiply_floats(product, scratch_.data()); });
    }
  }

  double flops_per_s() const { return total_flops(times_) / total_s(times_); }

 private:
  const engine::KernelUnit& unit_;
  std::vector<const plan::Operation*> operations_;
  std::vector<Timed> times_;
  std::vector<float> a_, b_, c_, scratch_;
};

void forward_and_backward(benchmark::State& state) {
  const SystemClock clock;
  Model model;
  std::vector<Products> products;
  for (const engine::KernelUnit* unit : engine::available_kernel_units()) products.emplace_back(*unit, model);
  for (auto _ : state) {
    model.run(clock);
    for (Products& of_unit : products) of_unit.run(clock);
  }
  double gemm_rate = 0.0;
  for (const Products& of_unit : products) gemm_rate = std::max(gemm_rate, of_unit.flops_per_s());
  const double model_rate = total_flops(model.times()) / total_s(model.times());
  state.counters["GEMM GFLOP/s"] = 1e-9 * gemm_rate;
  state.counters["model GFLOP/s"] = 1e-9 * model_rate;
  state.counters["ratio"] = model_rate / gemm_rate;
  std::map<std::string, double> by_kind_s;
  for (std::size_t i = 0; i < model.times().size(); ++i) {
    by_kind_s[plan::to_string(model.operations()[i]->operation->kind)] += model.times()[i].least_s;
  }
  for (const auto& [kind, time_s] : by_kind_s) state.counters["share " + kind] = time_s / total_s(model.times());
}
BENCHMARK(forward_and_backward)->Unit(benchmark::kMillisecond)->Iterations(5);

}  // namespace
}  // namespace krigtune

BENCHMARK_MAIN();
