// A grid that fits the budget has a few evenly spaced values of each parameter, including both ends. The parameter with
// the fewest values gets one more, in the session's order, as long as the grid has no more configurations than the
// budget. The result is a sub-grid to which no parameter can add a value. Configurations that pruning skips count as if
// they had been asked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/text.h"
#include "search/candidates/candidate_list.h"
#include "search/candidates/candidates.h"
#include "search/strategies/strategy.h"
#include "search/trials/history.h"
#include "space/well_known.h"
#include "trial/outcome.h"

namespace krigtune::search {

// What a grid need not run.

/// Judges configurations by the results in a history. The candidates' space must outlive it.
class GridPruning {
 public:
  enum class Verdict { kRun, kTooLarge, kCannotWin };

  GridPruning(const space::Space& space, const session::Objective& objective, const session::GridOptions& options,
              const History& history);

  Verdict operator()(const space::Configuration& configuration) const;

 private:
  bool needs_at_least(const space::Configuration& configuration, const space::Configuration& other) const;
  bool only_stage_differs(const space::Configuration& configuration, const space::Configuration& other) const;
  bool is_derived(const space::Parameter& parameter) const;

  const space::Space& space_;
  std::vector<const space::Configuration*> out_of_memory_;
  std::vector<const space::Configuration*> ran_;
};

/// Returns, for example, "12 of 40 configurations skipped: 10 need more memory than ..."; empty if there are none.
std::string pruned_text(const Candidates& candidates, const GridPruning& pruning, const History& history);

// There are two rules.
//
// Memory: a configuration that ran out of memory excludes all that need at least as much: a larger or equal
// micro-batch, no smaller buckets, no more recomputation, the same ZeRO stage, or 0 instead of 1, or 2 instead of 3,
// and all else equal. Stages 0 and 1 need not use more than 2 and 3, which in every micro-step have a bucket beside the
// gradients that they accumulate. For the same reason 2 and 3 without accumulation are not compared with more
// micro-steps. Offloading must be equal, because host memory may have been short. Tensor and pipeline ranks must be
// equal too, because they change what is kept and for how long. Peaks measured by others and the plan's own peaks
// follow this order within one per cent (tests/search/baselines_test.cpp). A failure of another kind excludes nothing.
//
// Stages: stages 2 and 3 are skipped if a lower stage ran with all else equal. They compute the same and send at least
// as much (stage 2 reduces in every micro-step, stage 3 also gathers parameters; Rajbhandari et al. 2020, section 7).
// They save memory, which pays only by a larger micro-batch or less recomputation, and these are still run. Stage 1 is
// not skipped: it sends as much as stage 0, and its optimizer step is shared. The rule applies only if the objective is
// speed.
namespace {

enum class Demand { kEqual, kGrows, kStates, kActivations };

constexpr std::array<std::pair<std::string_view, Demand>, 8> kDemands{{
    {space::kMicroBatch, Demand::kGrows},
    {space::kZeroStage, Demand::kStates},
    {space::kReduceBucket, Demand::kGrows},
    {space::kAllgatherBucket, Demand::kGrows},
    {space::kPrefetch, Demand::kGrows},
    {space::kPersistence, Demand::kGrows},
    {space::kMaxLive, Demand::kGrows},
    {space::kCheckpointing, Demand::kActivations},
}};

Demand demand_of(const space::Parameter& parameter) {
  const auto found =
      std::find_if(kDemands.begin(), kDemands.end(), [&](const auto& entry) { return entry.first == parameter.name; });
  return found == kDemands.end() ? Demand::kEqual : found->second;
}

// The order is full 0, selective 1, none 2; other values are equal only to themselves.
int kept_activations(const space::Value& value) {
  constexpr std::array<std::string_view, 3> kWords{"full", "selective", "none"};
  const auto* word = std::get_if<std::string>(&value);
  const auto found = word == nullptr ? kWords.end() : std::find(kWords.begin(), kWords.end(), *word);
  return found == kWords.end() ? -1 : static_cast<int>(found - kWords.begin());
}

bool demands_at_least(Demand demand, const space::Value& value, const space::Value& other) {
  if (space::same_value(value, other)) return true;
  const bool are_numbers = space::is_number(value) && space::is_number(other);
  switch (demand) {
    case Demand::kEqual:
      return false;
    case Demand::kGrows:
      return are_numbers && space::as_number(value) > space::as_number(other);
    case Demand::kStates:
      return are_numbers && space::as_number(other) - space::as_number(value) == 1.0 && space::as_number(other) != 2.0;
    case Demand::kActivations:
      return kept_activations(other) >= 0 && kept_activations(value) > kept_activations(other);
  }
  return false;
}

double number_of(const space::Configuration& configuration, const char* name, double fallback) {
  const space::Value* value = configuration.find(name);
  return value != nullptr && space::is_number(*value) ? space::as_number(*value) : fallback;
}

bool shares_gradients(const space::Configuration& configuration) {
  return number_of(configuration, space::kZeroStage, 0.0) >= 2.0;
}
bool accumulates(const space::Configuration& configuration) {
  return number_of(configuration, space::kAccumulation, 1.0) > 1.0;
}

}  // namespace

GridPruning::GridPruning(const space::Space& space, const session::Objective& objective,
                         const session::GridOptions& options, const History& history)
    : space_(space) {
  if (!options.prune) return;
  for (const journal::Trial& trial : history) {
    if (!counts(trial) || !trial.outcome) continue;
    if (std::holds_alternative<trial::OutOfMemory>(*trial.outcome))
      out_of_memory_.push_back(&trial.proposal.configuration);
    const bool has_run = std::holds_alternative<trial::Measured>(*trial.outcome) ||
                         std::holds_alternative<trial::Bounded>(*trial.outcome);
    if (has_run && trial::find_metric(objective.metric) != nullptr) ran_.push_back(&trial.proposal.configuration);
  }
}

GridPruning::Verdict GridPruning::operator()(const space::Configuration& configuration) const {
  const auto is_beyond = [&](const space::Configuration* other) { return needs_at_least(configuration, *other); };
  if (std::any_of(out_of_memory_.begin(), out_of_memory_.end(), is_beyond)) return Verdict::kTooLarge;
  if (!shares_gradients(configuration)) return Verdict::kRun;
  const auto is_above = [&](const space::Configuration* other) { return only_stage_differs(configuration, *other); };
  return std::any_of(ran_.begin(), ran_.end(), is_above) ? Verdict::kCannotWin : Verdict::kRun;
}

// A parameter that exists in only one of the two has no effect in the other.
bool GridPruning::needs_at_least(const space::Configuration& configuration, const space::Configuration& other) const {
  if (shares_gradients(configuration) && accumulates(other) && !accumulates(configuration)) return false;
  for (const space::Parameter& parameter : space_.parameters()) {
    const space::Value* value = configuration.find(parameter.name);
    const space::Value* known = other.find(parameter.name);
    if (value == nullptr || known == nullptr || is_derived(parameter)) continue;
    if (!demands_at_least(demand_of(parameter), *value, *known)) return false;
  }
  return true;
}

bool GridPruning::only_stage_differs(const space::Configuration& configuration,
                                     const space::Configuration& other) const {
  for (const space::Parameter& parameter : space_.parameters()) {
    const space::Value* value = configuration.find(parameter.name);
    const space::Value* known = other.find(parameter.name);
    if (value == nullptr || known == nullptr) continue;
    const bool is_stage = parameter.name == space::kZeroStage;
    if (is_stage ? !space::is_number(*known) || space::as_number(*known) >= space::as_number(*value)
                 : !space::same_value(*value, *known)) {
      return false;
    }
  }
  return true;
}

// A fixed batch determines the accumulation.
bool GridPruning::is_derived(const space::Parameter& parameter) const {
  return parameter.name == space::kAccumulation && space_.facts().accumulation_follows();
}

std::string pruned_text(const Candidates& candidates, const GridPruning& pruning, const History& history) {
  if (!candidates.listed()) return "";
  const std::vector<bool> open = unseen(candidates, *candidates.to_score(history, 0), history);
  int too_large = 0;
  int cannot_win = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!open[i]) continue;
    const GridPruning::Verdict verdict = pruning(candidates[i]);
    too_large += verdict == GridPruning::Verdict::kTooLarge ? 1 : 0;
    cannot_win += verdict == GridPruning::Verdict::kCannotWin ? 1 : 0;
  }
  std::vector<std::string> reasons;
  if (too_large > 0) reasons.push_back(fmt::format("{} need the memory of one that ran out of it", too_large));
  if (cannot_win > 0) reasons.push_back(fmt::format("{} are of a higher ZeRO stage than one that runs", cannot_win));
  if (reasons.empty()) return "";
  return fmt::format("{} of {} configurations skipped: {}", too_large + cannot_win, candidates.size(),
                     join(reasons, ", "));
}

namespace {

// The number of sub-grid points that are visited in total. If hardly any is a configuration, the grid stops growing.
constexpr std::size_t kMostVisited = 1'000'000;

// Returns `count` of the positions 0 ... size - 1, evenly spaced; a single one is the middle.
std::vector<std::size_t> even_positions(std::size_t size, std::size_t count) {
  if (count == 1) return {(size - 1) / 2};
  std::vector<std::size_t> positions;
  for (std::size_t j = 0; j < count; ++j) {
    positions.push_back((j * (size - 1) + (count - 1) / 2) / (count - 1));
  }
  return positions;
}

// Does the same for the parameter's values. The ends of a continuous range are exact.
std::vector<space::Value> even_values(const space::Parameter& parameter, std::size_t count) {
  std::vector<space::Value> values;
  if (!parameter.continuous()) {
    for (const std::size_t position : even_positions(parameter.values.size(), count)) {
      values.push_back(parameter.values[position]);
    }
    return values;
  }
  const auto [min, max] = *parameter.range;
  for (std::size_t j = 0; j < count; ++j) {
    const double fraction = count == 1 ? 0.5 : static_cast<double>(j) / static_cast<double>(count - 1);
    values.emplace_back(j > 0 && j + 1 == count ? max : between(parameter, min, max, fraction));
  }
  return values;
}

// The candidates at the points of a sub-grid, each once. Points that are not candidates are left out.
class SubGrid {
 public:
  explicit SubGrid(const Candidates& candidates) : candidates_(candidates) {}

  /// Stops when there are more than `most`.
  std::vector<space::Configuration> members(const std::vector<std::size_t>& counts, std::size_t most) {
    found_.clear();
    keys_.clear();
    most_ = most;
    values_.clear();
    const std::vector<space::Parameter>& parameters = candidates_.space().parameters();
    for (std::size_t i = 0; i < counts.size(); ++i) values_.push_back(even_values(parameters[i], counts[i]));
    space::Configuration point;
    visit(0, point);
    return found_;
  }

 private:
  void visit(std::size_t depth, space::Configuration& point) {
    if (found_.size() > most_) return;
    const space::Space& space = candidates_.space();
    if (depth == values_.size()) {
      space::Configuration completed = point;
      if (space.complete(completed) != space::Exclusion::kNone || !candidates_.contains(completed)) return;
      if (keys_.insert(candidates_.key(completed)).second) found_.push_back(completed);
      return;
    }
    for (const space::Value& value : values_[depth]) {
      point.set(space.parameters()[depth].name, value);
      visit(depth + 1, point);
    }
  }

  const Candidates& candidates_;
  std::size_t most_ = 0;
  std::vector<std::vector<space::Value>> values_;
  std::vector<space::Configuration> found_;
  std::unordered_set<std::string> keys_;
};

std::size_t product_of(const std::vector<std::size_t>& counts) {
  std::size_t product = 1;
  for (const std::size_t count : counts) product *= std::min(count, kMostVisited / product + 1);
  return product;
}

// The result is in lattice order.
std::vector<space::Configuration> largest_within(const Candidates& candidates, std::size_t budget) {
  SubGrid grid(candidates);
  const std::vector<space::Parameter>& parameters = candidates.space().parameters();
  std::vector<std::size_t> counts(parameters.size(), 1);
  std::vector<bool> growing(parameters.size(), true);
  std::vector<space::Configuration> members = grid.members(counts, budget);
  std::size_t visited = 0;
  while (true) {
    std::size_t next = parameters.size();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      growing[i] = growing[i] && counts[i] < (parameters[i].continuous() ? budget : parameters[i].values.size());
      if (growing[i] && (next == parameters.size() || counts[i] < counts[next])) next = i;
    }
    if (next == parameters.size()) break;
    ++counts[next];
    visited += product_of(counts);
    std::vector<space::Configuration> larger;
    growing[next] = visited <= kMostVisited && (larger = grid.members(counts, budget)).size() <= budget;
    if (growing[next]) {
      members = std::move(larger);
    } else {
      --counts[next];
    }
  }
  sort_in_lattice_order(candidates.space(), members);
  return members;
}

/// The part that all grids share: what they skip.
class Grid : public Strategy {
 public:
  Grid(const session::Session& session, const Candidates& candidates)
      : candidates_(candidates), objective_(session.objective), options_(session.grid) {}

  Idle why_idle(const History& history) const override {
    return left_out(history).empty() ? Idle::kAllTried : Idle::kNoProposal;
  }
  std::string left_out(const History& history) const override {
    return pruned_text(candidates_, pruning(history), history);
  }

 protected:
  GridPruning pruning(const History& history) const { return {candidates_.space(), objective_, options_, history}; }
  const Candidates& candidates() const { return candidates_; }

 private:
  const Candidates& candidates_;
  session::Objective objective_;
  session::GridOptions options_;
};

/// Walks an order that is fixed from the start: the sub-grid, shuffled by the seed, and then the other candidates,
/// shuffled too; or the full factorial in the session's order.
class ListedGrid final : public Grid {
 public:
  ListedGrid(const session::Session& session, const Candidates& candidates, std::vector<std::size_t> order)
      : Grid(session, candidates), order_(std::move(order)) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    const std::shared_ptr<const CandidateList> list = candidates().to_score(history, 0);
    const std::vector<bool> open = unseen(candidates(), *list, history);
    const GridPruning pruned = pruning(history);
    for (const std::size_t index : order_) {
      if (!open[index] || pruned(list->configurations[index]) != GridPruning::Verdict::kRun) continue;
      return propose(*list, index, StrategyKind::kGrid);
    }
    return std::nullopt;
  }

 private:
  std::vector<std::size_t> order_;
};

/// The same for a space without a list: after the sub-grid, configurations are drawn at random.
class DrawnGrid final : public Grid {
 public:
  DrawnGrid(const session::Session& session, const Candidates& candidates, std::vector<space::Configuration> order,
            std::uint64_t seed)
      : Grid(session, candidates), order_(std::move(order)), seed_(seed) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    const std::unordered_set<std::string> asked = asked_keys(candidates(), history);
    const GridPruning pruned = pruning(history);
    const auto is_out = [&](const space::Configuration& configuration) {
      return asked.count(candidates().key(configuration)) > 0 || pruned(configuration) != GridPruning::Verdict::kRun;
    };
    for (const space::Configuration& configuration : order_) {
      if (!is_out(configuration)) return propose(configuration, StrategyKind::kGrid);
    }
    Rng rng(seed_, static_cast<std::uint64_t>(counted_trials(history)));
    const std::optional<space::Configuration> drawn = candidates().draw(rng, is_out);
    return drawn ? std::optional(propose(*drawn, StrategyKind::kGrid)) : std::nullopt;
  }

 private:
  std::vector<space::Configuration> order_;
  std::uint64_t seed_;
};

/// The full factorial of a space that is too large for a list.
class WalkedGrid final : public Grid {
 public:
  using Grid::Grid;

  std::optional<journal::Proposal> ask(const History& history) const override {
    const std::unordered_set<std::string> asked = asked_keys(candidates(), history);
    const GridPruning pruned = pruning(history);
    std::optional<journal::Proposal> proposal;
    candidates().space().for_each([&](const space::Configuration& configuration) {
      if (asked.count(candidates().key(configuration)) > 0) return true;
      if (pruned(configuration) != GridPruning::Verdict::kRun) return true;
      if (!candidates().filter().may_fit(configuration)) return true;
      proposal = propose(configuration, StrategyKind::kGrid);
      return false;
    });
    return proposal;
  }
};

std::vector<std::size_t> listed_order(const Candidates& candidates, session::GridOrder grid_order,
                                      const StrategyOptions& options) {
  std::vector<std::size_t> all(candidates.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (grid_order == session::GridOrder::kSession) return all;
  const auto budget = static_cast<std::size_t>(std::max(options.trials, 1));
  std::vector<std::size_t> order;
  if (candidates.size() <= budget) {
    order = all;
  } else {
    const std::shared_ptr<const CandidateList> list = candidates.to_score({}, options.seed);
    for (const space::Configuration& configuration : largest_within(candidates, budget)) {
      order.push_back(list->index.at(candidates.key(configuration)));
    }
  }
  std::vector<bool> is_in_order(candidates.size(), false);
  for (const std::size_t index : order) is_in_order[index] = true;
  std::vector<std::size_t> rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest), [&](std::size_t i) { return !is_in_order[i]; });
  Rng rng(options.seed, 0);
  rng.shuffle(order);
  rng.shuffle(rest);
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

}  // namespace

std::unique_ptr<Strategy> make_grid(const session::Session& session, const Candidates& candidates,
                                    const StrategyOptions& options) {
  if (candidates.listed()) {
    return std::make_unique<ListedGrid>(session, candidates, listed_order(candidates, session.grid.order, options));
  }
  if (session.grid.order == session::GridOrder::kSession) return std::make_unique<WalkedGrid>(session, candidates);
  std::vector<space::Configuration> order =
      largest_within(candidates, static_cast<std::size_t>(std::max(options.trials, 1)));
  Rng rng(options.seed, 0);
  rng.shuffle(order);
  return std::make_unique<DrawnGrid>(session, candidates, std::move(order), options.seed);
}

}  // namespace krigtune::search
