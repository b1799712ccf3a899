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
  for (std::int64_t r = 0; r < plan_.ranks; ++r) {
    make_rank(r, network);
    RankExecutor& executor = *ranks_.back()->executor;
    for (const Stream stream : executor.streams()) jobs.emplace_back([&executor, stream] { executor.run(stream); });
  }
  workers_ = std::make_unique<Workers>(std::move(jobs), [this] { abort(); });
}

void TrainingRanks::make_groups(const Clock& clock) {
  for (const Operation& operation : plan_.operations) {
    auto& group = groups_[index_of(operation.stream)];
    if (is_collective(operation.kind) && !group) {
      group = std::make_unique<ThreadGroup>(static_cast<int>(plan_.ranks), clock);
    }
  }
}

void TrainingRanks::make_rank(std::int64_t index, const std::optional<EmulatedNetwork>& network) {
  ranks_.push_back(std::make_unique<Rank>(plan_, options_.observe_arena));
  Rank& rank = *ranks_.back();
  if (network) rank.link.emplace(*network);
  initialise(rank, index);
  rank.executor = std::make_unique<RankExecutor>(plan_, rank.arena, index, connect(rank, index), clock_);
}

StreamCommunicators TrainingRanks::connect(Rank& rank, std::int64_t index) const {
  StreamCommunicators connected{};
  for (std::size_t s = 0; s < groups_.size(); ++s) {
    if (!groups_[s]) continue;
    rank.communicators.push_back(groups_[s]->member(static_cast<int>(index)));
    if (rank.link) {
      Communicator& base = *rank.communicators.back();
      rank.communicators.push_back(make_emulated(base, *rank.link, clock_));
    }
    connected[s] = rank.communicators.back().get();
  }
  return connected;
}

void TrainingRanks::initialise(const Rank& rank, std::int64_t index) const {
  for (const Buffer& buffer : plan_.buffers) {
    if (!buffer.persistent) continue;
    std::memset(rank.arena.at(buffer.offset_bytes), 0, static_cast<std::size_t>(buffer.bytes()));
  }
  const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(plan_.parameters)];
  auto* parameters = reinterpret_cast<float*>(rank.arena.at(buffer.offset_bytes));
  const std::int64_t holders = plan_.parameters_sharded ? plan_.ranks : 1;
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    const ParameterTensor& tensor = plan_.tensors[t];
    const std::int64_t part = tensor.padded_elems / holders;
    const std::int64_t begin = plan_.parameters_sharded ? index * part : 0;
    fill_initial_values(tensor, options_.seed, static_cast<std::int64_t>(t), begin, part,
                        parameters + tensor.begin_elems / holders);
  }
}

StepResult TrainingRanks::step() {
  if (failed_) throw std::runtime_error("a rank has failed in an earlier step");
  for (std::int64_t r = 0; r < plan_.ranks; ++r) {
    ranks_[static_cast<std::size_t>(r)]->executor->begin_step({options_, steps_, r, plan_.ranks, plan_.micro_steps});
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
  for (const auto& rank : ranks_)
    result.exposed_comm_s = std::max(result.exposed_comm_s, rank->executor->exposed_comm_s());
  result.loss = mean_loss();
  result.collectives = ranks_.front()->executor->collective_times();
  ++steps_;
  return result;
}

void TrainingRanks::abort() {
  for (const auto& group : groups_) {
    if (group) group->abort();
  }
  for (const auto& rank : ranks_) rank->executor->abort();
}

double TrainingRanks::mean_loss() const {
  double sum = 0.0;
  for (std::int64_t r = 0; r < plan_.ranks; ++r) {
    const auto* losses = reinterpret_cast<const float*>(begin_of(r, plan_.loss));
    for (std::int64_t m = 0; m < plan_.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  }
  return sum / static_cast<double>(plan_.ranks * plan_.micro_steps);
}

std::byte* TrainingRanks::begin_of(std::int64_t rank, BufferId buffer) const {
  return ranks_[static_cast<std::size_t>(rank)]->arena.at(plan_.buffers[static_cast<std::size_t>(buffer)].offset_bytes);
}

const float* TrainingRanks::parameters(std::int64_t rank) const {
  return reinterpret_cast<const float*>(begin_of(rank, plan_.parameters));
}

std::int64_t TrainingRanks::arena_peak_bytes() const {
  if (!options_.observe_arena) throw std::logic_error("arena_peak_bytes needs TrainingOptions::observe_arena");
  std::int64_t peak = 0;
  for (const auto& rank : ranks_) peak = std::max(peak, rank->arena.highest_changed_bytes());
  return peak;
}

}  // namespace krigtune
