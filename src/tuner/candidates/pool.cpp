// A pool stands for a space that cannot be listed. Its samples show where on the whole to look; what lies near the best
// trials lets the search end: neighbours (steps of one parameter), and for real ranges the same configuration moved a
// small part of the way towards samples, at lengths from a third of an axis down to a thousandth. Once a model can
// score the pool, a climb moves its best members in the same way: samples alone leave the maximum of a score over six
// real axes a tenth of an axis away.
#include "candidates/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "krigtune/tuner/run_effects.h"

namespace krigtune {
namespace {

constexpr int kPoolSamples = 4'000;     // to make one takes some five microseconds, to score it less
constexpr int kPlannedSamples = 2'000;  // planning one takes up to milliseconds
constexpr int kMostDrawsPerSample = 10;
constexpr int kLeastShare = 20;  // draw on while less than one in so many fits
constexpr std::size_t kBestTrials = 5;
constexpr std::array<double, 6> kLengths{0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
constexpr int kMovesPerLength = 20;
// Streams of random numbers that no trial draws from.
constexpr std::uint64_t kPoolStreams = std::uint64_t{1} << 62;

// The best few of those measured, each configuration once; the earlier of equals first.
std::vector<Configuration> best_of(const Candidates& candidates, const Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  std::vector<std::pair<double, const Configuration*>> measured;
  for (const Trial& trial : history) {
    const std::optional<double> value = effects.value_of(trial);
    if (value && std::isfinite(*value)) measured.emplace_back(*value, &trial.proposal.configuration);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [&](const auto& a, const auto& b) { return objective.better(a.first, b.first); });
  std::vector<Configuration> best;
  std::unordered_set<std::string> seen;
  for (const auto& [value, configuration] : measured) {
    if (best.size() < kBestTrials && seen.insert(candidates.key(*configuration)).second) best.push_back(*configuration);
  }
  return best;
}

void add_samples(const Candidates& candidates, Rng& rng, ListBuilder& pool) {
  const int wanted = candidates.filter().is_exact() ? kPlannedSamples : kPoolSamples;
  const auto enough = static_cast<std::size_t>(wanted / kLeastShare);
  for (int draw = 0; draw < kMostDrawsPerSample * wanted; ++draw) {
    if (draw >= wanted && pool.size() >= enough) return;
    pool.add(candidates.space().sample(rng));
  }
}

// The point with its real values moved towards those of a sample.
std::optional<Configuration> moved(const Space& space, const Configuration& point, double fraction, Rng& rng) {
  const Configuration sample = space.sample(rng);
  Configuration result;
  for (const Parameter& parameter : space.parameters()) {
    const Value* from = point.find(parameter.name);
    const Value* to = sample.find(parameter.name);
    if (from == nullptr) continue;
    const bool moves = parameter.continuous() && to != nullptr;
    result.set(parameter.name, moves ? Value(between(parameter, as_number(*from), as_number(*to), fraction)) : *from);
  }
  if (space.complete(result) != Exclusion::kNone || !space.contains(result)) return std::nullopt;
  return result;
}

void add_near(const Space& space, const std::vector<Configuration>& best, Rng& rng, ListBuilder& pool) {
  for (const Configuration& configuration : best) {
    for (const Configuration& neighbour : space.neighbours(configuration)) {
      pool.add(neighbour);
      if (&configuration != &best.front()) continue;
      for (const Configuration& second : space.neighbours(neighbour)) pool.add(second);
    }
    if (space.listable()) continue;
    for (const double length : kLengths) {
      for (int i = 0; i < kMovesPerLength; ++i) {
        if (const auto near = moved(space, configuration, length, rng)) pool.add(*near);
      }
    }
  }
}

}  // namespace

CandidateList make_pool(const Candidates& candidates, const Objective& objective, const History& history,
                        std::uint64_t seed) {
  Rng rng(seed, kPoolStreams + static_cast<std::uint64_t>(counted_trials(history)));
  ListBuilder pool(candidates);
  add_samples(candidates, rng, pool);
  add_near(candidates.space(), best_of(candidates, objective, history), rng, pool);
  pool.sort();
  return pool.finish();
}

double between(const Parameter& parameter, double from, double to, double fraction) {
  if (parameter.scale == Scale::kLog && from > 0.0 && to > 0.0) return from * std::pow(to / from, fraction);
  return from + fraction * (to - from);
}

}  // namespace krigtune
