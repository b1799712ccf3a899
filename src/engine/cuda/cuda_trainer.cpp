#include "cuda/cuda_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "cuda/check.h"
#include "cuda/device_executor.h"
#include "host/abortable.h"
#include "host/agree.h"
#include "host/initial_values.h"
#include "krigtune/core/bench_exit.h"
#include "krigtune/core/error.h"
#include "krigtune/core/hash.h"
#include "krigtune/plan/check_plan.h"

namespace krigtune::cuda {
namespace {

constexpr double kPatienceS = 300.0;  // for a step, or for everybody's start: long enough for the largest models

}  // namespace

struct CudaTrainer::Rank {
  Rank(const StepPlan& plan, std::int64_t world, bool observe) : world_rank(world), memory(plan, observe) {}

  std::int64_t world_rank;
  DeviceMemory memory;
  std::vector<std::unique_ptr<DeviceCommunicator>> owned;
  DeviceCommunicators communicators{};
  std::unique_ptr<DeviceExecutor> executor;
};

int usable_gpus() {
  int gpus = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceCount(&gpus));
  if (gpus == 0) throw DeviceError(BenchExit::kNoDevice, "the CUDA runtime finds no GPU");
  return gpus;
}

CudaTrainer::CudaTrainer(StepPlan plan, const Clock& clock, const TrainingOptions& options, Processes* processes,
                         int local_rank)
    : plan_(std::move(plan)), clock_(clock), options_(options), processes_(processes) {
  const PlanFindings findings = check_structure(plan_);
  if (!findings.empty()) throw std::logic_error("the plan cannot be executed: " + findings.front());
  check_gpus(local_rank);
  make_ids();
  std::vector<std::function<void()>> jobs;
  const std::int64_t here = processes_ == nullptr ? plan_.world() : 1;
  for (std::size_t local = 0; local < static_cast<std::size_t>(here); ++local) {
    ranks_.emplace_back();
    jobs.emplace_back([this, local, device = local_rank + static_cast<int>(local)] { run(local, device); });
  }
  workers_ = std::make_unique<Workers>(std::move(jobs), [this] { abort(); });
  deadline_s_ = clock_.now_s() + kPatienceS;
  workers_->run_round();
  built_.store(true, std::memory_order_relaxed);
  StepResult nothing;
  now_s_ = agree(nothing, processes_, clock_);
}

CudaTrainer::~CudaTrainer() = default;

void CudaTrainer::check_gpus(int local_rank) const {
  const int gpus = usable_gpus();
  if (processes_ == nullptr && plan_.world() > gpus) {
    throw EnvironmentError(fmt::format("the job has {} ranks and this machine {} GPU(s)", plan_.world(), gpus),
                           "set cluster.gpus_per_node, or use --device cpu");
  }
  if (local_rank >= gpus) {
    throw EnvironmentError(fmt::format("local rank {} has no GPU: there are {}", local_rank, gpus),
                           "start as many processes on each machine as it has GPUs");
  }
}

GroupRanks CudaTrainer::groups_of(std::int64_t world_rank) const {
  return {world_rank / plan_.tensor_ranks, world_rank % plan_.tensor_ranks};
}

void CudaTrainer::make_ids() {
  for (const Operation& operation : plan_.operations) {
    auto& ids = ids_[index_of(operation.stream)][static_cast<std::size_t>(operation.group)];
    if (!is_collective(operation.kind) || !ids.empty()) continue;
    const std::int64_t members = plan_.group_ranks(operation.group);
    ids.resize(static_cast<std::size_t>(plan_.world() / members));
    if (members == 1) continue;
    std::generate(ids.begin(), ids.end(), new_nccl_id);
    if (processes_ == nullptr) continue;
    for (NcclId& id : ids) id = all_say(processes_->control(), id).front();
  }
}

// The first round builds, every other one is a step.
void CudaTrainer::run(std::size_t local, int device) {
  KRIGTUNE_CHECK_CUDA(cudaSetDevice(device));
  if (ranks_[local]) {
    take_step(*ranks_[local]);
  } else {
    build(local);
  }
}

void CudaTrainer::build(std::size_t local) {
  const std::int64_t world_rank = processes_ == nullptr ? static_cast<std::int64_t>(local) : processes_->rank();
  auto rank = std::make_unique<Rank>(plan_, world_rank, options_.observe_arena);
  initialise(*rank);
  connect(*rank);
  rank->executor = std::make_unique<DeviceExecutor>(plan_, rank->memory, groups_of(world_rank), rank->communicators);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  ranks_[local] = std::move(rank);
}

// In the same order on all ranks, as NCCL wants it.
void CudaTrainer::connect(Rank& rank) {
  const auto [data_rank, tensor_rank] = groups_of(rank.world_rank);
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

void CudaTrainer::initialise(const Rank& rank) const {
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.persistent) rank.memory.clear(buffer);
  }
  const auto [data_rank, tensor_rank] = groups_of(rank.world_rank);
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

void CudaTrainer::take_step(Rank& rank) {
  const auto [data_rank, tensor_rank] = groups_of(rank.world_rank);
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
    throw DeviceError(BenchExit::kHang, fmt::format("step {} has hung for {} s", steps_ + 1, kPatienceS));
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
    const StepBreakdown breakdown = break_down(plan_, rank->executor->operation_times());
    result.exposed_comm_s = std::max(result.exposed_comm_s, breakdown.exposed_comm_s());
    if (rank == ranks_.front()) result.breakdown = breakdown;
    result.loss += rank->executor->mean_loss() / static_cast<double>(plan_.world());
  }
  now_s_ = agree(result, processes_, clock_);
  return result;
}

void CudaTrainer::abort() noexcept {
  aborted_.store(true, std::memory_order_relaxed);
  if (!built_.load(std::memory_order_relaxed)) return;  // who still builds finds out by polling
  for (const auto& rank : ranks_) {
    for (const auto& communicator : rank->owned) communicator->abort();
  }
}

const CudaTrainer::Rank* CudaTrainer::find(std::int64_t world_rank) const {
  for (const auto& rank : ranks_) {
    if (rank->world_rank == world_rank) return rank.get();
  }
  return nullptr;
}

// From its holder to all processes.
void CudaTrainer::share(std::int64_t holder, std::span<std::byte> bytes) const {
  if (processes_ == nullptr) return;
  const auto size = static_cast<std::size_t>(processes_->size());
  std::vector<std::span<const std::byte>> out(size);
  std::vector<std::span<std::byte>> in(size);
  if (find(holder) != nullptr) {
    out.assign(size, bytes);
  } else {
    in[static_cast<std::size_t>(holder)] = bytes;
  }
  processes_->control().exchange(out, in);
}

std::vector<OperationTime> CudaTrainer::operation_times(std::int64_t world_rank) const {
  std::vector<OperationTime> times(plan_.operations.size());
  if (const Rank* local = find(world_rank)) times = local->executor->operation_times();
  share(world_rank, std::as_writable_bytes(std::span(times)));
  return times;
}

void CudaTrainer::silence(bool silent) {
  for (const auto& rank : ranks_) rank->executor->silence(silent);
}

// What one rank holds of a tensor, wherever it lives.
std::vector<float> CudaTrainer::fetch(const TensorHome& home, std::int64_t data_rank, std::int64_t tensor_rank) const {
  const std::int64_t holder = data_rank * plan_.tensor_ranks + tensor_rank;
  std::vector<float> values(static_cast<std::size_t>(home.range.elems));
  if (const Rank* local = find(holder)) values = local->memory.download(plan_, home.range, data_rank);
  share(holder, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> CudaTrainer::parameters(std::int64_t tensor_rank) const {
  std::vector<float> all;
  for (const TensorHome& home : plan_.parameters) {
    const std::size_t begin = all.size();
    for (std::int64_t holder = 0; holder < (home.sharded ? plan_.ranks : 1); ++holder) {
      const std::vector<float> part = fetch(home, holder, tensor_rank);
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

std::int64_t CudaTrainer::arena_peak_bytes(Place place) const {
  std::int64_t peak = 0;
  for (const auto& rank : ranks_) peak = std::max(peak, rank->memory.highest_changed_bytes(place));
  if (processes_ == nullptr) return peak;
  const std::vector<std::int64_t> all = all_say(processes_->control(), peak);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace krigtune::cuda
