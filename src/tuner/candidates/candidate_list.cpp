#include "candidates/candidate_list.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace krigtune {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// Of each configuration its place on every axis of the lattice, one row after the other.
std::vector<double> lattice_positions(const Space& space, const std::vector<Configuration>& configurations) {
  std::vector<double> positions;
  positions.reserve(configurations.size() * space.parameters().size());
  for (const Configuration& configuration : configurations) {
    for (const Parameter& parameter : space.parameters()) {
      const Value* value = configuration.find(parameter.name);
      if (value == nullptr) {
        positions.push_back(-1.0);
      } else {
        positions.push_back(parameter.continuous() ? as_number(*value) : parameter.index_of(*value));
      }
    }
  }
  return positions;
}

// Numbers of the configurations in the order in which Space::for_each would visit them; real values ascend.
std::vector<std::size_t> lattice_order(const Space& space, const std::vector<Configuration>& configurations) {
  const std::vector<double> positions = lattice_positions(space, configurations);
  const std::size_t axes = space.parameters().size();
  std::vector<std::size_t> order(configurations.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const auto a = positions.begin() + static_cast<std::ptrdiff_t>(i * axes);
    const auto b = positions.begin() + static_cast<std::ptrdiff_t>(j * axes);
    const auto width = static_cast<std::ptrdiff_t>(axes);
    return std::lexicographical_compare(a, a + width, b, b + width);
  });
  return order;
}

template <typename T>
std::vector<T> in_this_order(const std::vector<std::size_t>& order, std::vector<T> items) {
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (const std::size_t i : order) sorted.push_back(std::move(items[i]));
  return sorted;
}

}  // namespace

void ListBuilder::add(Configuration configuration) {
  const auto [entry, is_new] = list_.index.emplace(candidates_.key(configuration), kNowhere);
  if (!is_new || !candidates_.filter().may_fit(configuration)) return;
  list_.configurations.push_back(std::move(configuration));
  places_.push_back(&entry->second);
}

void ListBuilder::sort() {
  const std::vector<std::size_t> order = lattice_order(candidates_.space(), list_.configurations);
  list_.configurations = in_this_order(order, std::move(list_.configurations));
  places_ = in_this_order(order, std::move(places_));
}

CandidateList ListBuilder::finish() {
  for (std::size_t i = 0; i < places_.size(); ++i) *places_[i] = i;
  std::erase_if(list_.index, [](const auto& entry) { return entry.second == kNowhere; });
  for (const Configuration& configuration : list_.configurations) {
    list_.memory.push_back(candidates_.memory_of(configuration));
  }
  list_.points = candidates_.encode(list_.configurations);
  return std::move(list_);
}

void sort_in_lattice_order(const Space& space, std::vector<Configuration>& configurations) {
  const std::vector<std::size_t> order = lattice_order(space, configurations);
  configurations = in_this_order(order, std::move(configurations));
}

std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history) {
  std::unordered_set<std::string> keys;
  for (const Trial& trial : history) {
    if (counts(trial)) keys.insert(candidates.key(trial.proposal.configuration));
  }
  return keys;
}

}  // namespace krigtune
