#include "host/training_ranks.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "host/initial_values.h"

namespace krigtune {

TrainingRanks::TrainingRanks(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock,
                             const TrainingOptions& options)
    : plan_(std::move(plan)), options_(options), clock_(clock) {
  check_plan(plan_);
  make_groups(clock);
  std::vector<std::function<void()>> jobs;
  for (std::int64_t r = 0; r < plan_.world(); ++r) {
    make_rank(r, network);
    RankExecutor& executor = *ranks_.back()->executor;
    for (const Stream stream : executor.streams()) jobs.emplace_back([&executor, stream] { executor.run(stream); });
  }
  workers_ = std::make_unique<Workers>(std::move(jobs), [this] { abort(); });
}

void TrainingRanks::make_groups(const Clock& clock) {
  for (const Operation& operation : plan_.operations) {
    auto& groups = groups_[index_of(operation.stream)][static_cast<std::size_t>(operation.group)];
    if (!is_collective(operation.kind) || !groups.empty()) continue;
    const std::int64_t members = plan_.group_ranks(operation.group);
    for (std::int64_t g = 0; g < plan_.world() / members; ++g) {
      groups.push_back(std::make_unique<ThreadGroup>(static_cast<int>(members), clock));
    }
  }
}

GroupRanks TrainingRanks::groups_of(std::int64_t index) const {
  return {index / plan_.tensor_ranks, index % plan_.tensor_ranks};
}

void TrainingRanks::make_rank(std::int64_t index, const std::optional<EmulatedNetwork>& network) {
  ranks_.push_back(std::make_unique<Rank>(plan_, options_.observe_arena));
  Rank& rank = *ranks_.back();
  if (network) rank.link.emplace(*network);
  initialise(rank, index);
  rank.executor = std::make_unique<RankExecutor>(plan_, rank.memory, groups_of(index), connect(rank, index), clock_);
}

StreamCommunicators TrainingRanks::connect(Rank& rank, std::int64_t index) const {
  StreamCommunicators connected{};
  const auto [data_rank, tensor_rank] = groups_of(index);
  for (std::size_t s = 0; s < groups_.size(); ++s) {
    for (const Group group : {Group::kData, Group::kTensor}) {
      const auto& groups = groups_[s][static_cast<std::size_t>(group)];
      if (groups.empty()) continue;
      const bool data = group == Group::kData;
      ThreadGroup& mine = *groups[static_cast<std::size_t>(data ? tensor_rank : data_rank)];
      rank.communicators.push_back(mine.member(static_cast<int>(data ? data_rank : tensor_rank)));
      if (rank.link) {
        Communicator& base = *rank.communicators.back();
        rank.communicators.push_back(make_emulated(base, *rank.link, clock_));
      }
      connected[s][static_cast<std::size_t>(group)] = rank.communicators.back().get();
    }
  }
  return connected;
}

void TrainingRanks::initialise(const Rank& rank, std::int64_t index) const {
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.persistent) std::memset(rank.memory.at(buffer), 0, static_cast<std::size_t>(buffer.bytes()));
  }
  const auto [data_rank, tensor_rank] = groups_of(index);
  for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
    for (const TensorHome& home : *homes) {
      const Range& range = home.range;
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(range.buffer)];
      auto* values = reinterpret_cast<float*>(rank.memory.at(buffer)) + range.begin_elems;
      const std::int64_t first = home.first_elem + (home.sharded ? data_rank * range.elems : 0);
      fill_initial_values(plan_, home.tensor, options_.seed, tensor_rank, first, range.elems,
                          values + data_rank * range.rank_stride_elems);
    }
  }
}

StepResult TrainingRanks::step() {
  if (failed_) throw std::runtime_error("a rank has failed in an earlier step");
  for (std::int64_t r = 0; r < plan_.world(); ++r) {
    const auto [data_rank, tensor_rank] = groups_of(r);
    ranks_[static_cast<std::size_t>(r)]->executor->begin_step(
        {options_, steps_, data_rank, plan_.ranks, tensor_rank, plan_.tensor_ranks, plan_.micro_steps});
  }
  StepResult result;
  const double start_s = clock_.now_s();
  try {
    workers_->run_round();
  } catch (const std::exception& error) {
    failed_ = true;
    throw std::runtime_error(std::string("a rank has failed: ") + error.what());
  }
  result.step_time_s = clock_.now_s() - start_s;
  for (const auto& rank : ranks_) {
    const StepBreakdown breakdown = break_down(plan_, rank->executor->operation_times());
    result.exposed_comm_s = std::max(result.exposed_comm_s, breakdown.exposed_comm_s());
    if (rank == ranks_.front()) result.breakdown = breakdown;
  }
  result.loss = mean_loss();
  ++steps_;
  return result;
}

std::span<const OperationTime> TrainingRanks::operation_times(std::int64_t rank) const {
  return ranks_[static_cast<std::size_t>(rank)]->executor->operation_times();
}

void TrainingRanks::silence(bool silent) {
  for (const auto& rank : ranks_) rank->executor->silence(silent);
}

void TrainingRanks::abort() {
  for (const auto& of_stream : groups_) {
    for (const auto& groups : of_stream) {
      for (const auto& group : groups) group->abort();
    }
  }
  for (const auto& rank : ranks_) rank->executor->abort();
}

double TrainingRanks::mean_loss() const {
  double sum = 0.0;
  for (std::int64_t r = 0; r < plan_.world(); ++r) {
    const auto* losses = reinterpret_cast<const float*>(begin_of(r, plan_.loss));
    for (std::int64_t m = 0; m < plan_.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  }
  return sum / static_cast<double>(plan_.world() * plan_.micro_steps);
}

std::byte* TrainingRanks::begin_of(std::int64_t rank, BufferId buffer) const {
  return ranks_[static_cast<std::size_t>(rank)]->memory.at(plan_.buffers[static_cast<std::size_t>(buffer)]);
}

std::vector<float> TrainingRanks::parameters(std::int64_t tensor_rank) const {
  std::vector<float> all;
  for (const TensorHome& home : plan_.parameters) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    for (std::int64_t holder = 0; holder < (home.sharded ? plan_.ranks : 1); ++holder) {
      const auto* part =
          reinterpret_cast<const float*>(begin_of(holder * plan_.tensor_ranks + tensor_rank, home.range.buffer)) +
          home.range.begin_elems;
      all.insert(all.end(), part, part + home.range.elems);
    }
    const std::int64_t elems = plan_.tensors[static_cast<std::size_t>(home.tensor)].elems;
    all.resize(static_cast<std::size_t>(begin + elems));  // drops the padding
  }
  return all;
}

std::int64_t TrainingRanks::arena_peak_bytes(Place place) const {
  if (!options_.observe_arena) throw std::logic_error("arena_peak_bytes needs TrainingOptions::observe_arena");
  std::int64_t peak = 0;
  for (const auto& rank : ranks_) peak = std::max(peak, rank->memory.arena(place).highest_changed_bytes());
  return peak;
}

}  // namespace krigtune
