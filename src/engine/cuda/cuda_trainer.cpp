#include "engine/cuda/cuda_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "core/hash.h"
#include "engine/cuda/kernels/initial_values.h"
#include "engine/cuda/pacing.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/compiled_for.h"
#include "engine/host/processes.h"
#include "engine/host/update_slices.h"
#include "plan/check/check_plan.h"
#include "plan/collective_time.h"
#include "plan/op_traits.h"

namespace krigtune::cuda {
namespace {

constexpr double kPatienceS = 300.0;  // limit for a step, or until all have started: enough for the largest models

bool communicates(const plan::StepPlan& plan, schedule::Group group) {
  return std::any_of(plan.operations.begin(), plan.operations.end(), [&](const plan::Operation& operation) {
    return plan::is_collective(operation.kind) && operation.group == group;
  });
}

}  // namespace

int usable_gpus() {
  int gpus = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceCount(&gpus));
  if (gpus == 0) throw DeviceError(BenchExit::kNoDevice, "the CUDA runtime finds no GPU");
  return gpus;
}

void require_code_for(int device) {
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  const std::string why_not = why_not_compiled_for(compiled_targets(), properties.major, properties.minor);
  if (why_not.empty()) return;
  throw DeviceError(BenchExit::kNoDevice,
                    fmt::format("GPU {} ({}) cannot be used: its {}; a release has code for 8.0 and newer "
                                "(cmake -DKRIGTUNE_CUDA_RELEASE=ON), CUDA_VISIBLE_DEVICES leaves GPUs out",
                                device, properties.name, why_not));
}

CudaTrainer::CudaTrainer(plan::StepPlan plan, const Clock& clock, const engine::TrainingOptions& options,
                         engine::Processes* processes, const DeviceWorld& world)
    : plan_(std::move(plan)), clock_(clock), options_(options), processes_(processes), world_(world) {
  const plan::PlanFindings findings = plan::check_structure(plan_);
  if (!findings.empty()) throw std::logic_error("the plan cannot be executed: " + findings.front());
  check_world();
  KRIGTUNE_CHECK_CUDA(cudaSetDevice(world_.device));
  ranks_ = {world_rank() / plan_.tensor_ranks, world_rank() % plan_.tensor_ranks};
  deadline_s_ = clock_.now_s() + kPatienceS;
  context_bytes_ = memory_state().used_bytes;
  memory_ = std::make_unique<DeviceMemory>(
      plan_, plan_.world() > 1 ? plan_.nccl.buffers : schedule::NcclKnobs::Buffers::kPlain);
  const std::int64_t before_bytes = memory_state().used_bytes;
  connect();
  communicators_bytes_ = memory_state().used_bytes - before_bytes;
  DeviceCommunicators communicators{};
  for (std::size_t g = 0; g < communicators.size(); ++g) communicators[g] = communicators_[g].get();
  if (world_.network) test_pacing(communicators);
  executor_ = std::make_unique<DeviceExecutor>(
      plan_, *memory_, first_context(), communicators,
      ExecutionOptions{options_.graph, options_.time_every_step, engine::cores_of_a_process(world_.ranks_per_node),
                       world_.hopper_attention});
  if (options_.observe_arena) memory_->fill_with_pattern();
  initialise();
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  engine::StepResult nothing;
  now_s_ = engine::agree(nothing, processes_, clock_);
}

CudaTrainer::~CudaTrainer() = default;

void CudaTrainer::check_world() const {
  const int gpus = usable_gpus();
  if (world_.device >= gpus) {
    throw EnvironmentError(fmt::format("local rank {} has no GPU: there are {}", world_.device, gpus),
                           "start as many processes on each machine as it has GPUs, set cluster.gpus_per_node, or use "
                           "--device cpu");
  }
  require_code_for(world_.device);
  const std::int64_t here = processes_ == nullptr ? 1 : processes_->size();
  if (!world_.network && here != plan_.world()) {
    throw std::logic_error(fmt::format("{} processes cannot be {} ranks", here, plan_.world()));
  }
  if (world_.network && here > 1) {
    throw UserError("an emulated network has one GPU play one rank, but there are several processes",
                    "start one process, or remove \"emulate_network\"");
  }
  if (world_.network) schedule::refuse_nccl_knobs(plan_.nccl, "the network is emulated");
}

engine::StepContext CudaTrainer::first_context() const {
  return {.options = options_,
          .rank = ranks_[0],
          .ranks = plan_.ranks,
          .tensor_rank = ranks_[1],
          .tensor_ranks = plan_.tensor_ranks,
          .micro_steps = plan_.micro_steps,
          .gradient_clipping = plan_.gradient_clipping,
          .first_loss_scale = plan_.first_loss_scale};
}

// All ranks create their communicators in the same order, as NCCL requires.
void CudaTrainer::connect() {
  if (world_.network) link_ = std::make_unique<EmulatedDeviceLink>();
  for (const schedule::Group group : {schedule::Group::kData, schedule::Group::kTensor}) {
    if (communicates(plan_, group)) communicators_[static_cast<std::size_t>(group)] = make_communicator(group);
  }
}

void CudaTrainer::test_pacing(const DeviceCommunicators& communicators) {
  pacing_ = measure_pacing(plan_, *memory_, *world_.network, world_.ranks_per_node, communicators, *link_);
  require_pacing(pacing_, *world_.network);
  if (std::string warning = pacing_warning(pacing_); !warning.empty()) notes_.push_back(std::move(warning));
}

std::unique_ptr<DeviceCommunicator> CudaTrainer::make_communicator(schedule::Group group) {
  const std::int64_t members = plan_.group_ranks(group);
  if (members == 1) return make_self_communicator();
  if (world_.network) {
    return make_emulated_communicator(*world_.network, plan::group_span(plan_, group, 0, world_.ranks_per_node),
                                      *link_);
  }
  const NcclId id = common_id(group);
  return make_nccl_communicator(id, static_cast<int>(ranks_[static_cast<std::size_t>(group)]),
                                static_cast<int>(members), {plan_.nccl, memory_->device()}, [this] { poll(); });
}

// Every process creates an id; the group uses that of its first member.
NcclId CudaTrainer::common_id(schedule::Group group) {
  const std::int64_t first = group == schedule::Group::kData ? ranks_[1] : ranks_[0] * plan_.tensor_ranks;
  return engine::all_say(processes_->control(), new_nccl_id()).at(static_cast<std::size_t>(first));
}

void CudaTrainer::initialise() const {
  for (const plan::Buffer& buffer : plan_.buffers) {
    if (buffer.persistent) memory_->clear(buffer);
  }
  for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
    for (const plan::TensorHome& home : *homes) {
      const std::int64_t first = home.first_elem + (home.sharded ? ranks_[0] * home.range.elems : 0);
      const schedule::DType type = plan_.buffers[static_cast<std::size_t>(home.range.buffer)].type;
      const engine::OperandView to{memory_->at(plan_, home.range, ranks_[0]), home.range.elems, plan::Access::kWrite,
                                   type};
      initial_values(plan_, home.tensor, options_.seed, ranks_[1], first, to, nullptr);
    }
  }
  if (plan_.control < 0) return;
  const plan::Range scale{plan_.control, schedule::kLossScaleElement, 1, 0};
  memory_->upload(plan_, scale, 0, {static_cast<float>(plan_.first_loss_scale)});
}

void CudaTrainer::poll() const {
  if (clock_.now_s() > deadline_s_) {
    throw DeviceError(BenchExit::kHang, fmt::format("step {} has hung for {} s", returned_ + 1, kPatienceS));
  }
  std::this_thread::yield();
}

bool CudaTrainer::runs_ahead() const {
  if (options_.time_every_step) return false;
  return !options_.steps || started_ < *options_.steps;
}

FinishedStep CudaTrainer::wait_for_oldest() {
  while (!executor_->oldest_is_done()) poll();
  return executor_->finish();
}

void CudaTrainer::wait_for_all() {
  deadline_s_ = clock_.now_s() + kPatienceS;
  while (executor_->in_flight() > 0) finished_.push_back(wait_for_oldest());
}

// Either all ranks replay a graph or none does, because the collectives in it wait for those of the others. The reason
// of the first rank that failed is reported.
void CudaTrainer::capture_step() {
  using Reason = std::array<char, 256>;
  const std::string failure = executor_->capture();
  Reason mine{};
  std::copy_n(failure.data(), std::min(failure.size(), mine.size() - 1), mine.data());
  std::vector<Reason> all = {mine};
  if (processes_ != nullptr) all = engine::all_say(processes_->control(), mine);
  const auto failed = std::find_if(all.begin(), all.end(), [](const Reason& reason) { return reason[0] != '\0'; });
  if (failed == all.end()) return;
  executor_->do_without_graph();
  notes_.push_back(fmt::format("steps are not replayed as a CUDA graph, which rank {} could not make: {}",
                               failed - all.begin(), failed->data()));
}

void CudaTrainer::start_step() {
  if (executor_->needs_graph()) capture_step();
  ++started_;
  executor_->start();
}

engine::StepResult CudaTrainer::step() {
  deadline_s_ = clock_.now_s() + kPatienceS;
  if (finished_.empty()) {
    if (executor_->in_flight() == 0) start_step();
    if (runs_ahead()) start_step();
    finished_.push_back(wait_for_oldest());
  }
  const FinishedStep done = finished_.front();
  finished_.pop_front();
  ++returned_;
  engine::StepResult result;
  result.step_time_s = done.step_time_s;
  result.disturbed = done.timed && !options_.time_every_step;
  result.breakdown = plan::break_down(plan_, executor_->operation_times());
  result.exposed_comm_s = result.breakdown.exposed_comm_s();
  const auto& kernels_s = result.breakdown.compute_s;
  engine::set_rank_kernels({std::accumulate(kernels_s.begin(), kernels_s.end(), 0.0)}, result);
  result.loss = world_.network ? done.mean_loss : done.mean_loss / static_cast<double>(plan_.world());
  now_s_ = engine::agree(result, processes_, clock_);
  return result;
}

// Sends the bytes from their holder to all processes.
void CudaTrainer::share(std::int64_t holder, std::span<std::byte> bytes) const {
  if (processes_ == nullptr) return;
  const auto size = static_cast<std::size_t>(processes_->size());
  std::vector<std::span<const std::byte>> out(size);
  std::vector<std::span<std::byte>> in(size);
  if (holder == world_rank()) {
    out.assign(size, bytes);
  } else {
    in[static_cast<std::size_t>(holder)] = bytes;
  }
  processes_->control().exchange(out, in);
}

std::vector<plan::OperationTime> CudaTrainer::operation_times(std::int64_t rank) const {
  std::vector<plan::OperationTime> times(plan_.operations.size());
  if (rank == world_rank()) times = executor_->operation_times();
  share(rank, std::as_writable_bytes(std::span(times)));
  return times;
}

void CudaTrainer::silence(bool silent) {
  wait_for_all();
  executor_->silence(silent);
}

// Returns the part of a tensor that one rank holds, in all processes.
std::vector<float> CudaTrainer::fetch(const plan::TensorHome& home, std::int64_t data_rank,
                                      std::int64_t tensor_rank) const {
  const std::int64_t holder = data_rank * plan_.tensor_ranks + tensor_rank;
  std::vector<float> values(static_cast<std::size_t>(home.range.elems));
  if (holder == world_rank()) values = memory_->download(plan_, home.range, data_rank);
  share(holder, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> CudaTrainer::parameters(std::int64_t tensor_rank) {
  wait_for_all();
  std::vector<float> all;
  if (world_.network) return all;
  for (const plan::TensorHome& home : plan_.parameters) {
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

std::string CudaTrainer::parameters_fnv1a64() {
  const std::vector<float> all = parameters();
  if (all.empty()) return "";
  Fnv1a64 hash;
  hash.add(all.data(), all.size() * sizeof(float));
  return hash.hex();
}

engine::GpuMemoryUse CudaTrainer::memory_use() const {
  const MemoryState now = memory_state();
  const std::int64_t beside_arena_bytes = now.used_bytes - memory_->device_bytes();
  return {now.total_bytes, context_bytes_, communicators_bytes_,
          beside_arena_bytes - context_bytes_ - communicators_bytes_};
}

std::int64_t CudaTrainer::arena_peak_bytes(schedule::Place place) {
  wait_for_all();
  const std::int64_t peak = memory_->highest_changed_bytes(place);
  if (processes_ == nullptr) return peak;
  const std::vector<std::int64_t> all = engine::all_say(processes_->control(), peak);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace krigtune::cuda
