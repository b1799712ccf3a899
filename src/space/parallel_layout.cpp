#include "space/parallel_layout.h"

#include <algorithm>
#include <cassert>

namespace krigtune::space {
namespace {

std::vector<RankGroup> groups_of_the_table() {
  std::vector<RankGroup> groups;
  for (const WellKnownParameter& known : well_known_parameters()) {
    if (known.splits_ranks != RankSplit::kNone) groups.push_back({known.name, known.splits_ranks});
  }
  return groups;
}

std::vector<const char*> divisors_of(const std::vector<RankGroup>& groups) {
  std::vector<const char*> divisors;
  for (const RankGroup& group : groups) {
    if (group.split != RankSplit::kDataRanks) divisors.push_back(group.parameter);
  }
  return divisors;
}

RankSplit split_of(std::string_view parameter) {
  const WellKnownParameter* known = find_well_known(parameter);
  return known == nullptr ? RankSplit::kNone : known->splits_ranks;
}

}  // namespace

const std::vector<RankGroup>& rank_groups() {
  static const std::vector<RankGroup> kGroups = groups_of_the_table();
  return kGroups;
}

const std::vector<const char*>& rank_divisors() {
  static const std::vector<const char*> kDivisors = divisors_of(rank_groups());
  return kDivisors;
}

bool divides_ranks(std::string_view parameter) {
  return splits_ranks(parameter) && split_of(parameter) != RankSplit::kDataRanks;
}

bool splits_ranks(std::string_view parameter) { return split_of(parameter) != RankSplit::kNone; }

std::size_t ParallelLayout::index_of(std::string_view parameter) {
  const std::vector<RankGroup>& groups = rank_groups();
  assert(groups.size() <= kMostGroups);
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const RankGroup& group) { return parameter == group.parameter; });
  assert(found != groups.end());
  return static_cast<std::size_t>(found - groups.begin());
}

std::optional<ParallelLayout> ParallelLayout::of(std::int64_t ranks, const Configuration& configuration) {
  ParallelLayout layout(ranks);
  const std::vector<RankGroup>& groups = rank_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].split != RankSplit::kDataRanks) {
      if (!layout.split_group(i, configuration.integer(groups[i].parameter, 1))) return std::nullopt;
    } else if (const Value* ways = configuration.find(groups[i].parameter)) {
      layout.ways_[i] = integer_of(*ways).value_or(1);
    }
  }
  return layout;
}

std::int64_t ParallelLayout::left_for(std::string_view parameter) const {
  return rank_groups()[index_of(parameter)].split == RankSplit::kDataRanks ? holders() : data_;
}

bool ParallelLayout::split(std::string_view parameter, std::int64_t ways) {
  return split_group(index_of(parameter), ways);
}

bool ParallelLayout::split_group(std::size_t index, std::int64_t ways) {
  const RankSplit split = rank_groups()[index].split;
  const std::int64_t left = split == RankSplit::kDataRanks ? holders() : data_;
  if (ways < 1 || left % ways != 0) return false;
  assert(ways_[index] == 1);
  ways_[index] = ways;
  if (split != RankSplit::kDataRanks) data_ /= ways;
  if (split == RankSplit::kSequence) sharing_ *= ways;
  return true;
}

std::int64_t ParallelLayout::ways(std::string_view parameter) const { return ways_[index_of(parameter)]; }

std::optional<std::int64_t> data_parallel_ranks(std::int64_t ranks, const Configuration& configuration) {
  const std::optional<ParallelLayout> layout = ParallelLayout::of(ranks, configuration);
  return layout ? std::optional(layout->data()) : std::nullopt;
}

std::int64_t ranks_of_replica(const Configuration& configuration) {
  std::int64_t ranks = 1;
  for (const char* divisor : rank_divisors()) ranks *= std::max<std::int64_t>(configuration.integer(divisor, 1), 1);
  return ranks;
}

}  // namespace krigtune::space
