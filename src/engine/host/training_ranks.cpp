#include "engine/host/training_ranks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/hash.h"
#include "engine/host/processes.h"
#include "engine/host/rank_values.h"
#include "engine/host/thread_communicator.h"
#include "engine/host/transport_communicator.h"
#include "engine/trainer.h"
#include "plan/check/check_plan.h"
#include "plan/op_traits.h"

namespace krigtune::engine {
namespace {

bool communicates(const plan::StepPlan& plan, schedule::Stream stream, schedule::Group group) {
  for (const plan::Operation& operation : plan.operations) {
    if (plan::is_collective(operation.kind) && operation.stream == stream && operation.group == group) return true;
  }
  return false;
}

class ThreadWiring final : public Wiring {
 public:
  ThreadWiring(const plan::StepPlan& plan, const Clock& clock) : plan_(plan), clock_(clock) {}

  std::unique_ptr<Communicator> connect(schedule::Stream stream, schedule::Group group,
                                        std::int64_t world_rank) override {
    if (!communicates(plan_, stream, group)) return nullptr;
    const auto all = members(plan_, group, world_rank);
    auto& mine = groups_[{stream, group, all.front()}];
    if (!mine) mine = std::make_unique<ThreadGroup>(static_cast<int>(all.size()), clock_);
    return mine->member(static_cast<int>(group_ranks(plan_, world_rank)[static_cast<std::size_t>(group)]));
  }

  void abort() override {
    for (const auto& [key, group] : groups_) group->abort();
  }

 private:
  const plan::StepPlan& plan_;
  const Clock& clock_;
  std::map<std::tuple<schedule::Stream, schedule::Group, int>, std::unique_ptr<ThreadGroup>>
      groups_;  ///< by the first member
};

class ProcessWiring final : public Wiring {
 public:
  ProcessWiring(const plan::StepPlan& plan, Processes& processes, const Clock& clock)
      : plan_(plan), processes_(processes), clock_(clock) {}

  std::unique_ptr<Communicator> connect(schedule::Stream stream, schedule::Group group,
                                        std::int64_t world_rank) override {
    if (!communicates(plan_, stream, group)) return nullptr;
    return make_transport_communicator(processes_.open(members(plan_, group, world_rank)), clock_);
  }

  void abort() override { processes_.interrupt(); }

 private:
  const plan::StepPlan& plan_;
  Processes& processes_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<Wiring> wire_threads(const plan::StepPlan& plan, const Clock& clock) {
  return std::make_unique<ThreadWiring>(plan, clock);
}

std::unique_ptr<Wiring> wire_processes(const plan::StepPlan& plan, Processes& processes, const Clock& clock) {
  return std::make_unique<ProcessWiring>(plan, processes, clock);
}

std::vector<int> members(const plan::StepPlan& plan, schedule::Group group, std::int64_t world_rank) {
  const auto [data_rank, tensor_rank] = group_ranks(plan, world_rank);
  std::vector<int> all;
  for (std::int64_t r = 0; r < plan.group_ranks(group); ++r) {
    const std::int64_t world =
        group == schedule::Group::kData ? r * plan.tensor_ranks + tensor_rank : data_rank * plan.tensor_ranks + r;
    all.push_back(static_cast<int>(world));
  }
  return all;
}

TrainingRanks::TrainingRanks(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network,
                             const Clock& clock, const TrainingOptions& options, Processes* processes)
    : plan_(std::move(plan)), network_(network), options_(options), clock_(clock), processes_(processes) {
  const plan::PlanFindings findings = plan::check_structure(plan_);
  if (!findings.empty()) throw std::logic_error("the plan cannot be executed: " + findings.front());
  make_ranks();
  wiring_ = processes == nullptr ? wire_threads(plan_, clock) : wire_processes(plan_, *processes, clock);
  std::vector<std::function<void()>> jobs;
  for (const auto& rank : ranks_) {
    rank->executor = std::make_unique<RankExecutor>(plan_, rank->memory, group_ranks(plan_, rank->world_rank),
                                                    connect(*rank), clock_);
    for (const schedule::Stream stream : rank->executor->streams()) {
      jobs.emplace_back([&one = *rank, stream] { one.executor->run(stream); });
    }
  }
  workers_ = std::make_unique<Workers>(std::move(jobs), [this] { abort(); });
  StepResult nothing;
  now_s_ = agree(nothing, processes_, clock_);
}

// Before anybody communicates, all processes learn whether all of them have their memory.
void TrainingRanks::make_ranks() {
  bool enough = true;
  try {
    for (std::int64_t r = 0; r < plan_.world(); ++r) {
      if (processes_ != nullptr && r != processes_->rank()) continue;
      ranks_.push_back(std::make_unique<Rank>(plan_, r, options_.observe_arena));
      put_first_values(plan_, ranks_.back()->memory, group_ranks(plan_, r), options_.seed);
    }
  } catch (const std::bad_alloc&) {
    enough = false;
  }
  if (processes_ != nullptr) {
    for (const char one : all_say(processes_->control(), static_cast<char>(enough))) enough = enough && one != 0;
  }
  if (!enough) throw MemoryMissing();
}

StreamCommunicators TrainingRanks::connect(Rank& rank) const {
  StreamCommunicators connected{};
  for (std::size_t s = 0; s < connected.size(); ++s) {
    for (const schedule::Group group : {schedule::Group::kData, schedule::Group::kTensor}) {
      std::unique_ptr<Communicator> base = wiring_->connect(static_cast<schedule::Stream>(s), group, rank.world_rank);
      if (!base) continue;
      rank.communicators.push_back(std::move(base));
      if (network_) rank.communicators.push_back(emulated(rank, group, *rank.communicators.back()));
      connected[s][static_cast<std::size_t>(group)] = rank.communicators.back().get();
    }
  }
  return connected;
}

std::unique_ptr<Communicator> TrainingRanks::emulated(Rank& rank, schedule::Group group, Communicator& base) const {
  const std::int64_t per_node = network_->nodes ? network_->nodes->ranks_per_node : plan_.world();
  const plan::GroupSpan span = plan::group_span(plan_, group, rank.world_rank, per_node);
  EmulatedLink& link = network_->nodes && span.nodes == 1 ? rank.within_node : rank.between_nodes;
  return make_emulated(base, link, *network_, span, clock_);
}

StepResult TrainingRanks::step() {
  if (failed_) throw std::runtime_error("a rank has failed in an earlier step");
  for (const auto& rank : ranks_) {
    const auto [data_rank, tensor_rank] = group_ranks(plan_, rank->world_rank);
    rank->executor->begin_step(
        {options_, steps_, data_rank, plan_.ranks, tensor_rank, plan_.tensor_ranks, plan_.micro_steps});
  }
  StepResult result;
  const double start_s = clock_.now_s();
  failed_ = true;
  try {
    workers_->run_round();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("a rank has failed: ") + error.what());
  }
  result.step_time_s = clock_.now_s() - start_s;
  std::vector<double> kernels_s;
  for (const auto& rank : ranks_) {
    const plan::StepBreakdown breakdown = plan::break_down(plan_, rank->executor->operation_times());
    result.exposed_comm_s = std::max(result.exposed_comm_s, breakdown.exposed_comm_s());
    kernels_s.push_back(std::accumulate(breakdown.compute_s.begin(), breakdown.compute_s.end(), 0.0));
    if (rank == ranks_.front()) result.breakdown = breakdown;
    result.loss += sum_of_losses(plan_, rank->memory);
  }
  set_rank_kernels(std::move(kernels_s), result);
  now_s_ = agree(result, processes_, clock_);
  result.loss /= static_cast<double>(plan_.world() * plan_.micro_steps);
  failed_ = false;
  ++steps_;
  return result;
}

std::vector<plan::OperationTime> TrainingRanks::operation_times(std::int64_t world_rank) const {
  std::vector<plan::OperationTime> times(plan_.operations.size());
  const Rank* local = find(world_rank);
  if (local != nullptr) {
    const auto own = local->executor->operation_times();
    std::copy(own.begin(), own.end(), times.begin());
  }
  if (processes_ == nullptr) return times;
  const auto size = static_cast<std::size_t>(processes_->size());
  std::vector<std::span<const std::byte>> out(size);
  std::vector<std::span<std::byte>> in(size);
  if (local != nullptr) {
    out.assign(size, std::as_bytes(std::span(times)));
  } else {
    in[static_cast<std::size_t>(world_rank)] = std::as_writable_bytes(std::span(times));
  }
  processes_->control().exchange(out, in);
  return times;
}

void TrainingRanks::silence(bool silent) {
  for (const auto& rank : ranks_) rank->executor->silence(silent);
}

void TrainingRanks::abort() {
  wiring_->abort();
  for (const auto& rank : ranks_) rank->executor->abort();
}

const TrainingRanks::Rank* TrainingRanks::find(std::int64_t world_rank) const {
  for (const auto& rank : ranks_) {
    if (rank->world_rank == world_rank) return rank.get();
  }
  return nullptr;
}

// Returns one rank's part of a tensor, from this process or another one. `room` stores it if it comes from another
// process.
std::span<const std::byte> TrainingRanks::fetch(const plan::TensorHome& home, std::int64_t data_rank,
                                                std::int64_t tensor_rank, std::vector<std::byte>& room) const {
  const std::int64_t holder = data_rank * plan_.tensor_ranks + tensor_rank;
  const Rank* local = find(holder);
  const std::span<const std::byte> held =
      local == nullptr ? std::span<const std::byte>() : held_bytes(plan_, local->memory, home, data_rank);
  if (processes_ == nullptr) return held;
  const auto size = static_cast<std::size_t>(processes_->size());
  const std::vector<std::span<const std::byte>> out(size, held);
  std::vector<std::span<std::byte>> in(size);
  if (local == nullptr) {
    room.resize(held_bytes(plan_, ranks_.front()->memory, home, 0).size());
    in[static_cast<std::size_t>(holder)] = room;
  }
  processes_->control().exchange(out, in);
  return local == nullptr ? std::span<const std::byte>(room) : held;
}

std::vector<float> TrainingRanks::parameters(std::int64_t tensor_rank) const {
  std::vector<float> all;
  std::vector<std::byte> room;
  for (const plan::TensorHome& home : plan_.parameters) {
    const std::size_t begin = all.size();
    const schedule::DType type = plan_.buffers[static_cast<std::size_t>(home.range.buffer)].type;
    for (std::int64_t holder = 0; holder < (home.sharded ? plan_.ranks : 1); ++holder) {
      append_floats(type, fetch(home, holder, tensor_rank, room), all);
    }
    const std::int64_t elems = plan_.tensors[static_cast<std::size_t>(home.tensor)].elems;
    all.resize(begin + static_cast<std::size_t>(elems));  // removes the padding
  }
  return all;
}

std::int64_t TrainingRanks::arena_peak_bytes(schedule::Place place) const {
  if (!options_.observe_arena) throw std::logic_error("arena_peak_bytes needs TrainingOptions::observe_arena");
  std::int64_t peak = 0;
  for (const auto& rank : ranks_) peak = std::max(peak, rank->memory.arena(place).highest_changed_bytes());
  if (processes_ == nullptr) return peak;
  const auto all = all_say(processes_->control(), peak);
  return *std::max_element(all.begin(), all.end());
}

struct Trainer::Impl {
  Impl(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
       const TrainingOptions& options, Processes* processes)
      : ranks(std::move(plan), network, clock, options, processes) {}

  TrainingRanks ranks;
};

Trainer::Trainer(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
                 TrainingOptions options, Processes* processes)
    : impl_(std::make_unique<Impl>(std::move(plan), network, clock, options, processes)) {}

Trainer::~Trainer() = default;

StepResult Trainer::step() { return impl_->ranks.step(); }

double Trainer::now_s() const { return impl_->ranks.now_s(); }

std::vector<float> Trainer::parameters(std::int64_t tensor_rank) const { return impl_->ranks.parameters(tensor_rank); }

std::string Trainer::parameters_fnv1a64() const {
  const std::vector<float> all = parameters();
  Fnv1a64 hash;
  hash.add(all.data(), all.size() * sizeof(float));
  return hash.hex();
}

std::vector<plan::OperationTime> Trainer::operation_times(std::int64_t world_rank) const {
  return impl_->ranks.operation_times(world_rank);
}

const plan::StepPlan& Trainer::plan() const { return impl_->ranks.plan(); }

void Trainer::silence(bool silent) { impl_->ranks.silence(silent); }

std::int64_t Trainer::arena_peak_bytes(schedule::Place place) const { return impl_->ranks.arena_peak_bytes(place); }

}  // namespace krigtune::engine
