#include "operation_timer.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/statistics.h"
#include "engine/cuda/blas_gemm.h"
#include "engine/cuda/runtime/check.h"
#include "plan/op_traits.h"

namespace krigtune::cuda {
namespace {

double elapsed_s_of(Queue queue, const std::function<void()>& work) {
  const Span span;
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.begin.get(), queue));
  work();
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.end.get(), queue));
  KRIGTUNE_CHECK_CUDA(cudaStreamSynchronize(queue));
  return span.elapsed_s();
}

std::int64_t most_scratch_bytes(const plan::StepPlan& plan) {
  std::int64_t most = 0;
  for (const schedule::Stream stream :
       {schedule::Stream::kCompute, schedule::Stream::kGather, schedule::Stream::kReduce, schedule::Stream::kCopy}) {
    most = std::max(most, scratch_bytes(plan, stream));
  }
  return most;
}

int rounds_in(double batch_s, double round_s) {
  constexpr double kMost = 1000.0;
  return static_cast<int>(std::clamp(std::ceil(batch_s / round_s), 1.0, kMost));
}

}  // namespace

OperationTimer::OperationTimer(const plan::StepPlan& plan, const Effort& effort, bool hopper_attention)
    : plan_(plan),
      effort_(effort),
      hopper_attention_(hopper_attention),
      gemm_(make_blas_gemm()),
      step_(allocate_device(sizeof(std::int64_t))),
      scratch_(allocate_device(most_scratch_bytes(plan))) {
  context_.ranks = plan.ranks;
  context_.tensor_ranks = plan.tensor_ranks;
  context_.micro_steps = plan.micro_steps;
  context_.gradient_clipping = plan.gradient_clipping;
  context_.first_loss_scale = plan.first_loss_scale;
  KRIGTUNE_CHECK_CUDA(cudaMemset(step_.get(), 0, sizeof(std::int64_t)));
  for (std::size_t arena = 0; arena < kArenas; ++arena) {
    arenas_.push_back(std::make_unique<DeviceMemory>(plan));
    operations_.push_back(bind_operations(plan, *arenas_.back(), {}, context_, 1));
  }
}

DeviceCall OperationTimer::call_of(std::size_t arena, std::size_t operation) const {
  return {.operation = plan_.operations[operation],
          .operands = operations_[arena][operation].operands,
          .context = context_,
          .step = reinterpret_cast<const std::int64_t*>(step_.get()),
          .scratch = reinterpret_cast<float*>(scratch_.get()),
          .queue = stream_.get(),
          .gemm = gemm_.get(),
          .hopper_attention = hopper_attention_};
}

// Random-looking numbers but for tokens, which must be in the vocabulary; second moments, which have roots; and the
// control, whose factor of 0 would have optimizers do nothing.
void OperationTimer::fill(std::size_t arena) {
  const DeviceMemory& memory = *arenas_[arena];
  memory.fill_with_numbers();
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  for (const plan::Buffer& buffer : plan_.buffers) {
    if (buffer.term == schedule::Term::kOptimizerState && buffer.place == schedule::Place::kDevice)
      memory.clear(buffer);
  }
  if (plan_.control >= 0) {
    memory.upload(plan_, {plan_.control, 0, schedule::kControlElementCount, 0}, 0,
                  std::vector<float>(schedule::kControlElementCount, 1.0F));
  }
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    if (plan_.operations[i].kind == schedule::OpKind::kLoadBatch) operations_[arena][i].kernel(call_of(arena, i));
  }
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
}

std::size_t OperationTimer::id_of(const plan::Operation& operation) const {
  return static_cast<std::size_t>(&operation - plan_.operations.data());
}

bool OperationTimer::are_one(const plan::Operation& operation, const plan::Operation& second) const {
  return pair_kernel_for(call_of(0, id_of(operation)), call_of(0, id_of(second))) != nullptr;
}

void OperationTimer::start(std::size_t arena, std::size_t operation, const plan::Operation* second) const {
  if (second != nullptr) {
    const DeviceCall first = call_of(arena, operation);
    const DeviceCall behind = call_of(arena, id_of(*second));
    pair_kernel_for(first, behind)(first, behind);
  } else {
    operations_[arena][operation].kernel(call_of(arena, operation));
  }
}

double OperationTimer::rounds_s(std::size_t operation, const plan::Operation* second, int rounds) {
  return elapsed_s_of(stream_.get(), [&] {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t arena = 0; arena < kArenas; ++arena) start(arena, operation, second);
    }
  });
}

double OperationTimer::time_s(const plan::Operation& operation, const plan::Operation* second) {
  const std::size_t id = id_of(operation);
  if (plan::is_matrix_product(operation.kind)) prepare_product(call_of(0, id));
  for (std::size_t arena = 0; arena < kArenas; ++arena) fill(arena);
  rounds_s(id, second, 1);  // loads the kernel
  const int rounds = rounds_in(effort_.batch_s, rounds_s(id, second, 1));
  std::vector<double> times_s;
  for (int batch = 0; batch < effort_.batches; ++batch) {
    times_s.push_back(rounds_s(id, second, rounds) / (rounds * static_cast<double>(kArenas)));
  }
  return median(times_s);
}

double copied_bytes_per_s(std::int64_t bytes, const Effort& effort) {
  const DeviceBytes from = allocate_device(bytes);
  const DeviceBytes to = allocate_device(bytes);
  fill_numbers(from.get(), bytes, nullptr);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  const StreamHandle stream = make_stream(false);
  std::vector<double> times_s;
  for (int batch = 0; batch <= effort.batches; ++batch) {
    times_s.push_back(elapsed_s_of(stream.get(), [&] {
      KRIGTUNE_CHECK_CUDA(
          cudaMemcpyAsync(to.get(), from.get(), static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream.get()));
    }));
  }
  constexpr double kReadAndWritten = 2.0;
  return kReadAndWritten * static_cast<double>(bytes) / median(times_s);
}

}  // namespace krigtune::cuda
