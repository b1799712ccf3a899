#include "cuda/cuda_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "bench/exit_codes.h"
#include "cuda/check.h"
#include "cuda/device_executor.h"
#include "host/abortable.h"
#include "host/initial_values.h"
#include "krigtune/core/error.h"
#include "krigtune/core/hash.h"

namespace krigtune::cuda {
namespace {

constexpr double kPatienceS = 300.0;  // for a step, or for everybody's start: long enough for the largest models

}  // namespace

struct CudaTrainer::Rank {
  Rank(const StepPlan& plan, bool observe) : memory(plan, observe) {}

  DeviceMemory memory;
  std::vector<std::unique_ptr<DeviceCommunicator>> owned;
  DeviceCommunicators communicators{};
  std::unique_ptr<DeviceExecutor> executor;
};

int usable_gpus() {
  int gpus = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceCount(&gpus));
  if (gpus == 0) throw DeviceError(kNoDevice, "the CUDA runtime finds no GPU");
  return gpus;
}

CudaTrainer::CudaTrainer(StepPlan plan, const Clock& clock, const TrainingOptions& options)
    : plan_(std::move(plan)), clock_(clock), options_(options) {
  check_plan(plan_);
  if (const int gpus = usable_gpus(); plan_.world() > gpus) {
    throw EnvironmentError(fmt::format("the job has {} ranks and this machine {} GPU(s)", plan_.world(), gpus),
                           "set cluster.gpus_per_node, or use --device cpu");
  }
  make_ids();
  std::vector<std::function<void()>> jobs;
  for (std::int64_t r = 0; r < plan_.world(); ++r) {
    ranks_.emplace_back();
    jobs.emplace_back([this, r] { run(r); });
  }
  workers_ = std::make_unique<Workers>(std::move(jobs), [this] { abort(); });
  deadline_s_ = clock_.now_s() + kPatienceS;
  workers_->run_round();
}

CudaTrainer::~CudaTrainer() = default;

GroupRanks CudaTrainer::groups_of(std::int64_t index) const {
  return {index / plan_.tensor_ranks, index % plan_.tensor_ranks};
}

void CudaTrainer::make_ids() {
  for (const Operation& operation : plan_.operations) {
    auto& ids = ids_[index_of(operation.stream)][static_cast<std::size_t>(operation.group)];
    if (!is_collective(operation.kind) || !ids.empty()) continue;
    const std::int64_t members = plan_.group_ranks(operation.group);
    ids.resize(static_cast<std::size_t>(plan_.world() / members));
    if (members > 1) std::generate(ids.begin(), ids.end(), new_nccl_id);
  }
}

// The first round builds, every other one is a step.
void CudaTrainer::run(std::int64_t index) {
  KRIGTUNE_CHECK_CUDA(cudaSetDevice(static_cast<int>(index)));
  const std::unique_ptr<Rank>& rank = ranks_[static_cast<std::size_t>(index)];
  if (rank) {
    take_step(*rank, index);
  } else {
    build(index);
  }
}

void CudaTrainer::build(std::int64_t index) {
  auto rank = std::make_unique<Rank>(plan_, options_.observe_arena);
  initialise(*rank, index);
  connect(*rank, index);
  rank->executor = std::make_unique<DeviceExecutor>(plan_, rank->memory, groups_of(index), rank->communicators);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  ranks_[static_cast<std::size_t>(index)] = std::move(rank);
}

// In the same order on all ranks, as NCCL wants it.
void CudaTrainer::connect(Rank& rank, std::int64_t index) {
  const auto [data_rank, tensor_rank] = groups_of(index);
  for (std::size_t s = 0; s < ids_.size(); ++s) {
    for (const Group group : {Group::kData, Group::kTensor}) {
      const auto g = static_cast<std::size_t>(group);
      if (ids_[s][g].empty()) continue;
      const bool data = group == Group::kData;
      const int members = static_cast<int>(plan_.group_ranks(group));
      const NcclId& id = ids_[s][g][static_cast<std::size_t>(data ? tensor_rank : data_rank)];
      const int member = static_cast<int>(data ? data_rank : tensor_rank);
      rank.owned.push_back(members == 1 ? make_self_communicator()
                                        : make_nccl_communicator(id, member, members, [this] { poll(); }));
      rank.communicators[s][g] = rank.owned.back().get();
    }
  }
}

void CudaTrainer::initialise(const Rank& rank, std::int64_t index) const {
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.persistent) rank.memory.clear(buffer);
  }
  const auto [data_rank, tensor_rank] = groups_of(index);
  for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
    for (const TensorHome& home : *homes) {
      std::vector<float> values(static_cast<std::size_t>(home.range.elems));
      const std::int64_t first = home.first_elem + (home.sharded ? data_rank * home.range.elems : 0);
      fill_initial_values(plan_, home.tensor, options_.seed, tensor_rank, first, home.range.elems, values.data());
      rank.memory.upload(plan_, home.range, data_rank, values);
    }
  }
  if (plan_.control < 0) return;
  const Range scale{plan_.control, kLossScaleElement, 1, 0};
  rank.memory.upload(plan_, scale, 0, {static_cast<float>(plan_.first_loss_scale)});
}

void CudaTrainer::take_step(Rank& rank, std::int64_t index) {
  const auto [data_rank, tensor_rank] = groups_of(index);
  rank.executor->start({.options = options_,
                        .step = steps_,
                        .rank = data_rank,
                        .ranks = plan_.ranks,
                        .tensor_rank = tensor_rank,
                        .tensor_ranks = plan_.tensor_ranks,
                        .micro_steps = plan_.micro_steps});
  while (!rank.executor->done()) poll();
}

void CudaTrainer::poll() const {
  if (aborted_.load(std::memory_order_relaxed)) throw Aborted();
  if (clock_.now_s() > deadline_s_) {
    throw DeviceError(kTimeout, fmt::format("step {} has hung for {} s", steps_ + 1, kPatienceS));
  }
  std::this_thread::yield();
}

StepResult CudaTrainer::step() {
  deadline_s_ = clock_.now_s() + kPatienceS;
  workers_->run_round();
  ++steps_;
  StepResult result;
  for (const auto& rank : ranks_) {
    result.step_time_s = std::max(result.step_time_s, rank->executor->step_time_s());
    result.exposed_comm_s = std::max(result.exposed_comm_s, rank->executor->exposed_comm_s());
    result.loss += rank->executor->mean_loss() / static_cast<double>(ranks_.size());
  }
  result.collectives = ranks_.front()->executor->collective_times();
  return result;
}

void CudaTrainer::abort() noexcept {
  aborted_.store(true, std::memory_order_relaxed);
  for (const auto& rank : ranks_) {
    if (!rank) continue;
    for (const auto& communicator : rank->owned) communicator->abort();
  }
}

std::vector<float> CudaTrainer::parameters(std::int64_t tensor_rank) const {
  std::vector<float> all;
  for (const TensorHome& home : plan_.parameters) {
    const std::size_t begin = all.size();
    for (std::int64_t holder = 0; holder < (home.sharded ? plan_.ranks : 1); ++holder) {
      const Rank& rank = *ranks_[static_cast<std::size_t>(holder * plan_.tensor_ranks + tensor_rank)];
      const std::vector<float> part = rank.memory.download(plan_, home.range, holder);
      all.insert(all.end(), part.begin(), part.end());
    }
    const std::int64_t elems = plan_.tensors[static_cast<std::size_t>(home.tensor)].elems;
    all.resize(begin + static_cast<std::size_t>(elems));  // drops the padding
  }
  return all;
}

std::string CudaTrainer::parameters_fnv1a64() const {
  const std::vector<float> all = parameters();
  Fnv1a64 hash;
  hash.add(all.data(), all.size() * sizeof(float));
  return hash.hex();
}

std::int64_t CudaTrainer::arena_peak_bytes() const {
  std::int64_t peak = 0;
  for (const auto& rank : ranks_) peak = std::max(peak, rank->memory.highest_changed_bytes());
  return peak;
}

}  // namespace krigtune::cuda
