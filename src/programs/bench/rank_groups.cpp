// Which ranks communicate while rates are measured.
#include <algorithm>
#include <set>

#include "engine/host/transport_communicator.h"
#include "programs/bench/rank_device.h"

namespace krigtune::bench {
namespace {

// Returns how many ranks of the same node come before this one.
int place_on_node(const std::vector<int>& nodes, int rank) {
  const auto end = nodes.begin() + rank;
  return static_cast<int>(std::count(nodes.begin(), end, *end));
}

}  // namespace

std::vector<int> JobRanks::members(workload::RankScope scope, int rank) const {
  std::vector<int> all;
  for (int other = 0; other < size(); ++other) {
    const bool same_node = nodes[static_cast<std::size_t>(other)] == nodes[static_cast<std::size_t>(rank)];
    const bool same_place = place_on_node(nodes, other) == place_on_node(nodes, rank);
    const bool belongs = scope == workload::RankScope::kNode     ? same_node
                         : scope == workload::RankScope::kAcross ? same_place
                                                                 : true;
    if (belongs) all.push_back(other);
  }
  return all;
}

std::vector<workload::RankScope> JobRanks::scopes() const {
  const bool several_nodes = hosts.size() > 1;
  const bool several_ranks = static_cast<std::size_t>(size()) > hosts.size();
  std::vector<workload::RankScope> all;
  if (several_ranks) all.push_back(workload::RankScope::kNode);
  if (several_nodes) all.push_back(workload::RankScope::kAcross);
  if (several_nodes && several_ranks) all.push_back(workload::RankScope::kAll);
  return all;
}

plan::GroupSpan JobRanks::span(workload::RankScope scope, int rank) const {
  const std::vector<int> all = members(scope, rank);
  std::multiset<int> on;
  for (const int member : all) on.insert(nodes[static_cast<std::size_t>(member)]);
  plan::GroupSpan span{static_cast<std::int64_t>(all.size()), 0, static_cast<std::int64_t>(all.size())};
  for (auto node = on.begin(); node != on.end(); node = on.upper_bound(*node)) {
    ++span.nodes;
    span.ranks_per_node = std::min(span.ranks_per_node, static_cast<std::int64_t>(on.count(*node)));
  }
  return span;
}

std::unique_ptr<engine::Communicator> RankGroups::open(workload::RankScope scope, int rank) {
  std::vector<int> members = job_.members(scope, rank);
  if (processes_ != nullptr) return engine::make_transport_communicator(processes_->open(std::move(members)), clock_);
  auto& group = threads_[{scope, members.front()}];
  if (!group) group = std::make_unique<engine::ThreadGroup>(static_cast<int>(members.size()), clock_);
  return group->member(static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()));
}

void RankGroups::abort() {
  if (processes_ != nullptr) processes_->interrupt();
  for (const auto& [key, group] : threads_) group->abort();
}

}  // namespace krigtune::bench
