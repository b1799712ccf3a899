#include "search/candidates/candidate_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "krigtune/surrogate/pareto.h"
#include "search/trials/run_effects.h"

namespace krigtune::search {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// The positions of each configuration on all axes of the lattice, one row after the other.
std::vector<double> lattice_positions(const space::Space& space,
                                      const std::vector<space::Configuration>& configurations) {
  std::vector<double> positions;
  positions.reserve(configurations.size() * space.parameters().size());
  for (const space::Configuration& configuration : configurations) {
    for (const space::Parameter& parameter : space.parameters()) {
      const space::Value* value = configuration.find(parameter.name);
      if (value == nullptr) {
        positions.push_back(-1.0);
      } else {
        positions.push_back(parameter.continuous() ? space::as_number(*value) : parameter.index_of(*value));
      }
    }
  }
  return positions;
}

// The indices of the configurations in the order in which Space::for_each would visit them. Continuous values ascend.
std::vector<std::size_t> lattice_order(const space::Space& space,
                                       const std::vector<space::Configuration>& configurations) {
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

void ListBuilder::add(space::Configuration configuration) {
  const auto [entry, is_new] = list_.index.emplace(candidates_.key(configuration), kNowhere);
  if (!is_new) return;
  if (may_fit_ ? !may_fit_(configuration) : !candidates_.filter().may_fit(configuration)) return;
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
  for (const space::Configuration& configuration : list_.configurations) {
    list_.memory.push_back(candidates_.memory_of(configuration));
  }
  list_.points = candidates_.encode(list_.configurations);
  return std::move(list_);
}

void sort_in_lattice_order(const space::Space& space, std::vector<space::Configuration>& configurations) {
  const std::vector<std::size_t> order = lattice_order(space, configurations);
  configurations = in_this_order(order, std::move(configurations));
}

std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history) {
  std::unordered_set<std::string> keys;
  for (const journal::Trial& trial : history) {
    if (counts(trial)) keys.insert(candidates.key(trial.proposal.configuration));
  }
  return keys;
}

// A pool replaces the list of a space that cannot be listed. Its random samples show which part of the space is worth a
// closer look, and the points near the best trials let the search converge: neighbours (one parameter changed by one
// step) and, for continuous ranges, the same configuration moved a small part of the way towards random samples, from a
// third of an axis down to a thousandth. With several objectives, a climb (climb.cpp) follows once a model can score
// the pool.
namespace {

constexpr int kPoolSamples = 4'000;     // drawing one takes about five microseconds, scoring it less
constexpr int kPlannedSamples = 2'000;  // planning one takes up to milliseconds
constexpr int kMostDrawsPerSample = 10;
constexpr int kLeastShare = 20;  // drawing continues while fewer than one in this number fit
constexpr std::size_t kBestTrials = 5;
constexpr std::size_t kFrontMembers = 10;
constexpr std::array<double, 6> kLengths{0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
constexpr int kMovesPerLength = 20;
constexpr int kPlacesPerLine = 8;
// Streams of random numbers that no trial uses.
constexpr std::uint64_t kPoolStreams = std::uint64_t{1} << 62;

// The best few measured configurations, each once. Of equal ones the earlier comes first.
std::vector<space::Configuration> best_of(const Candidates& candidates, const session::Objective& objective,
                                          const History& history) {
  const RunEffects effects(objective, history);
  std::vector<std::pair<double, const space::Configuration*>> measured;
  for (const journal::Trial& trial : history) {
    const std::optional<double> value = effects.value_of(trial);
    if (value && std::isfinite(*value)) measured.emplace_back(*value, &trial.proposal.configuration);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [&](const auto& a, const auto& b) { return objective.better(a.first, b.first); });
  std::vector<space::Configuration> best;
  std::unordered_set<std::string> seen;
  for (const auto& [value, configuration] : measured) {
    if (best.size() < kBestTrials && seen.insert(candidates.key(*configuration)).second) best.push_back(*configuration);
  }
  return best;
}

// Members of the front of single trials, each configuration once; some of them if there are many.
std::vector<space::Configuration> front_members(const Candidates& candidates,
                                                const std::vector<session::Objective>& objectives,
                                                const History& history, Rng& rng) {
  std::vector<const space::Configuration*> measured;
  std::vector<double> worth;  // one row after the other
  for (const journal::Trial& trial : history) {
    std::vector<double> row;
    for (const session::Objective& objective : objectives) {
      const std::optional<double> value = value_of(trial, objective);
      if (value && std::isfinite(*value)) row.push_back(objective.maximize ? *value : -*value);
    }
    if (row.size() != objectives.size()) continue;
    measured.push_back(&trial.proposal.configuration);
    worth.insert(worth.end(), row.begin(), row.end());
  }
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> points(
      worth.data(), std::ssize(measured), std::ssize(objectives));
  std::vector<Eigen::Index> rows = surrogate::pareto_front(points);
  if (rows.size() > kFrontMembers) rng.shuffle(rows);
  std::vector<space::Configuration> members;
  std::unordered_set<std::string> seen;
  for (const Eigen::Index row : rows) {
    const space::Configuration& one = *measured[static_cast<std::size_t>(row)];
    if (members.size() < kFrontMembers && seen.insert(candidates.key(one)).second) members.push_back(one);
  }
  return members;
}

void add_samples(const Candidates& candidates, Rng& rng, ListBuilder& pool) {
  const int wanted = candidates.filter().is_exact() ? kPlannedSamples : kPoolSamples;
  const auto enough = static_cast<std::size_t>(wanted / kLeastShare);
  for (int draw = 0; draw < kMostDrawsPerSample * wanted; ++draw) {
    if (draw >= wanted && pool.size() >= enough) return;
    pool.add(candidates.space().sample(rng));
  }
}

void add_near(const space::Space& space, const std::vector<space::Configuration>& best, Rng& rng, ListBuilder& pool) {
  for (const space::Configuration& configuration : best) {
    for (const space::Configuration& neighbour : space.neighbours(configuration)) {
      pool.add(neighbour);
      if (&configuration != &best.front()) continue;
      for (const space::Configuration& second : space.neighbours(neighbour)) pool.add(second);
    }
    if (space.listable()) continue;
    for (const double length : kLengths) {
      for (int i = 0; i < kMovesPerLength; ++i) {
        if (const auto near = moved_towards_sample(space, configuration, length, rng)) pool.add(*near);
      }
    }
  }
}

// The next member of a front may be anywhere along one axis from a known one.
void add_lines(const space::Space& space, const std::vector<space::Configuration>& members, Rng& rng,
               ListBuilder& pool) {
  for (const space::Configuration& member : members) {
    for (const space::Parameter& parameter : space.parameters()) {
      if (!parameter.continuous() || member.find(parameter.name) == nullptr) continue;
      for (int i = 0; i < kPlacesPerLine; ++i) {
        if (const auto moved = moved_along(space, member, parameter, rng.uniform())) pool.add(*moved);
      }
    }
  }
}

}  // namespace

CandidateList make_pool(const Candidates& candidates, const std::vector<session::Objective>& objectives,
                        const History& history, std::uint64_t seed) {
  Rng rng(seed, kPoolStreams + static_cast<std::uint64_t>(counted_trials(history)));
  ListBuilder pool(candidates);
  add_samples(candidates, rng, pool);
  const std::vector<space::Configuration> best = objectives.size() == 1
                                                     ? best_of(candidates, objectives.front(), history)
                                                     : front_members(candidates, objectives, history, rng);
  add_near(candidates.space(), best, rng, pool);
  if (objectives.size() > 1) add_lines(candidates.space(), best, rng, pool);
  pool.sort();
  return pool.finish();
}

double between(const space::Parameter& parameter, double from, double to, double fraction) {
  if (parameter.scale == space::Scale::kLog && from > 0.0 && to > 0.0) return from * std::pow(to / from, fraction);
  return from + fraction * (to - from);
}

double axis_position(const space::Parameter& parameter, double value) {
  const auto [low, high] = *parameter.range;
  if (!(high > low)) return 0.0;
  if (parameter.scale == space::Scale::kLog && low > 0.0) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

namespace {

std::optional<space::Configuration> completed(const space::Space& space, space::Configuration configuration) {
  if (space.complete(configuration) != space::Exclusion::kNone || !space.contains(configuration)) return std::nullopt;
  return configuration;
}

}  // namespace

std::optional<space::Configuration> moved_along(const space::Space& space, space::Configuration point,
                                                const space::Parameter& parameter, double position) {
  point.set(parameter.name, between(parameter, parameter.range->min, parameter.range->max, position));
  return completed(space, std::move(point));
}

std::optional<space::Configuration> moved_towards_sample(const space::Space& space, const space::Configuration& point,
                                                         double fraction, Rng& rng) {
  const space::Configuration sample = space.sample(rng);
  space::Configuration result;
  for (const space::Parameter& parameter : space.parameters()) {
    const space::Value* from = point.find(parameter.name);
    const space::Value* to = sample.find(parameter.name);
    if (from == nullptr) continue;
    const bool moves = parameter.continuous() && to != nullptr;
    result.set(
        parameter.name,
        moves ? space::Value(between(parameter, space::as_number(*from), space::as_number(*to), fraction)) : *from);
  }
  return completed(space, std::move(result));
}

}  // namespace krigtune::search
