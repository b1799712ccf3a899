#include "host/wiring.h"

#include <map>
#include <utility>

#include "host/thread_communicator.h"
#include "host/transport_communicator.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

bool communicates(const StepPlan& plan, Stream stream, Group group) {
  for (const Operation& operation : plan.operations) {
    if (is_collective(operation.kind) && operation.stream == stream && operation.group == group) return true;
  }
  return false;
}

class ThreadWiring final : public Wiring {
 public:
  ThreadWiring(const StepPlan& plan, const Clock& clock) : plan_(plan), clock_(clock) {}

  std::unique_ptr<Communicator> connect(Stream stream, Group group, std::int64_t world_rank) override {
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
  const StepPlan& plan_;
  const Clock& clock_;
  std::map<std::tuple<Stream, Group, int>, std::unique_ptr<ThreadGroup>> groups_;  ///< by the first member
};

class ProcessWiring final : public Wiring {
 public:
  ProcessWiring(const StepPlan& plan, Processes& processes, const Clock& clock)
      : plan_(plan), processes_(processes), clock_(clock) {}

  std::unique_ptr<Communicator> connect(Stream stream, Group group, std::int64_t world_rank) override {
    if (!communicates(plan_, stream, group)) return nullptr;
    return make_transport_communicator(processes_.open(members(plan_, group, world_rank)), clock_);
  }

  void abort() override { processes_.interrupt(); }

 private:
  const StepPlan& plan_;
  Processes& processes_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<Wiring> wire_threads(const StepPlan& plan, const Clock& clock) {
  return std::make_unique<ThreadWiring>(plan, clock);
}

std::unique_ptr<Wiring> wire_processes(const StepPlan& plan, Processes& processes, const Clock& clock) {
  return std::make_unique<ProcessWiring>(plan, processes, clock);
}

std::vector<int> members(const StepPlan& plan, Group group, std::int64_t world_rank) {
  const auto [data_rank, tensor_rank] = group_ranks(plan, world_rank);
  std::vector<int> all;
  for (std::int64_t r = 0; r < plan.group_ranks(group); ++r) {
    const std::int64_t world =
        group == Group::kData ? r * plan.tensor_ranks + tensor_rank : data_rank * plan.tensor_ranks + r;
    all.push_back(static_cast<int>(world));
  }
  return all;
}

}  // namespace krigtune
