// A grid that fits the budget: a few evenly spaced values of each parameter, both ends among them. One value more is
// given to the parameter that has fewest, in the session's order, for as long as the grid's configurations are no more
// than the budget: the result is a sub-grid to which no parameter could add a value.
#include <algorithm>
#include <numeric>
#include <set>

#include "strategies.h"

namespace krigtune {
namespace {

// `count` of the positions 0 ... size - 1, evenly; a single one is the middle.
std::vector<std::size_t> even_positions(std::size_t size, std::size_t count) {
  if (count == 1) return {(size - 1) / 2};
  std::vector<std::size_t> positions;
  for (std::size_t j = 0; j < count; ++j) {
    positions.push_back((j * (size - 1) + (count - 1) / 2) / (count - 1));
  }
  return positions;
}

// Candidates that the sub-grid's points mean; points that are no candidates are left out. Stops beyond `most`.
class SubGrid {
 public:
  SubGrid(const Space& space, const Candidates& candidates) : space_(space), candidates_(candidates) {}

  std::set<std::size_t> members(const std::vector<std::size_t>& counts, std::size_t most) const {
    std::set<std::size_t> found;
    Configuration point;
    visit(counts, 0, point, found, most);
    return found;
  }

 private:
  void visit(const std::vector<std::size_t>& counts, std::size_t depth, Configuration& point,
             std::set<std::size_t>& found, std::size_t most) const {
    if (found.size() > most) return;
    if (depth == counts.size()) {
      Configuration completed = point;
      if (space_.complete(completed) != Exclusion::kNone) return;
      if (const auto index = candidates_.find(completed)) found.insert(*index);
      return;
    }
    const Parameter& parameter = space_.parameters()[depth];
    for (const std::size_t position : even_positions(parameter.values.size(), counts[depth])) {
      point.set(parameter.name, parameter.values[position]);
      visit(counts, depth + 1, point, found, most);
    }
  }

  const Space& space_;
  const Candidates& candidates_;
};

std::vector<std::size_t> all_of(const Candidates& candidates) {
  std::vector<std::size_t> all(candidates.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::vector<std::size_t> largest_within(const Space& space, const Candidates& candidates, std::size_t budget) {
  if (candidates.size() <= budget) return all_of(candidates);
  const SubGrid grid(space, candidates);
  const std::vector<Parameter>& parameters = space.parameters();
  std::vector<std::size_t> counts(parameters.size(), 1);
  std::vector<bool> growing(parameters.size(), true);
  std::set<std::size_t> members = grid.members(counts, budget);
  while (true) {
    std::size_t next = parameters.size();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      growing[i] = growing[i] && counts[i] < parameters[i].values.size();
      if (growing[i] && (next == parameters.size() || counts[i] < counts[next])) next = i;
    }
    if (next == parameters.size()) break;
    ++counts[next];
    const std::set<std::size_t> larger = grid.members(counts, budget);
    if (larger.size() <= budget) {
      members = larger;
    } else {
      --counts[next];
      growing[next] = false;
    }
  }
  return {members.begin(), members.end()};
}

/// Walks an order that is fixed from the start: the sub-grid, shuffled by the seed, and when that is used up the other
/// candidates, shuffled too; or the full factorial as the session writes it.
class GridStrategy final : public Strategy {
 public:
  GridStrategy(const Candidates& candidates, std::vector<std::size_t> order)
      : candidates_(candidates), order_(std::move(order)) {}

  std::optional<Proposal> ask(const History& history) const override {
    const std::vector<bool> open = unseen(candidates_, history);
    for (const std::size_t index : order_) {
      if (open[index]) return propose(candidates_, index, StrategyKind::kGrid);
    }
    return std::nullopt;
  }

 private:
  const Candidates& candidates_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::unique_ptr<Strategy> make_grid(const Session& session, const Candidates& candidates,
                                    const StrategyOptions& options) {
  std::vector<std::size_t> order;
  std::vector<bool> listed(candidates.size(), false);
  Rng rng(options.seed, 0);
  if (session.grid_order == GridOrder::kSeed) {
    order = largest_within(session.space, candidates, static_cast<std::size_t>(std::max(options.trials, 1)));
    for (const std::size_t index : order) listed[index] = true;
    rng.shuffle(order);
  }
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!listed[i]) rest.push_back(i);
  }
  if (session.grid_order == GridOrder::kSeed) rng.shuffle(rest);
  order.insert(order.end(), rest.begin(), rest.end());
  return std::make_unique<GridStrategy>(candidates, std::move(order));
}

}  // namespace krigtune
