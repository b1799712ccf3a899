#include "search/stagewise/stage_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "search/candidates/candidate_list.h"
#include "search/trials/run_effects.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::search {
namespace {

std::optional<Tried> tried_of(const journal::Trial& trial, const RunEffects& effects) {
  if (!trial.outcome) return std::nullopt;
  std::optional<double> value = effects.value_of(trial);
  if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) {
    value = bounded->at_best * effects.factor(trial.proposal.run);
  }
  return value && std::isfinite(*value) ? Tried{true, *value} : Tried{};
}

}  // namespace

Answers::Answers(const Candidates& candidates, const session::Objective& objective, const History& history)
    : candidates_(candidates) {
  const RunEffects effects(objective, history);
  for (const journal::Trial& trial : history) {
    if (!counts(trial)) continue;
    const std::optional<Tried> tried = tried_of(trial, effects);
    std::optional<Tried>& known = known_[candidates.key(trial.proposal.configuration)];
    const bool is_better =
        tried && (!known || (tried->ran && (!known->ran || objective.better(tried->value, known->value))));
    if (is_better) known = tried;
  }
}

std::optional<Tried> Answers::operator()(const space::Configuration& configuration) {
  const auto found = known_.find(candidates_.key(configuration));
  if (found == known_.end()) {
    if (!question_) question_ = configuration;
    return std::nullopt;
  }
  waits_ = waits_ || !found->second;
  return found->second;
}

double gain(const session::Objective& objective, double from, double to) {
  const double difference = objective.maximize ? to - from : from - to;
  if (difference == 0.0) return 0.0;
  return from == 0.0 ? std::copysign(std::numeric_limits<double>::infinity(), difference) : difference / std::abs(from);
}

namespace {

constexpr std::array<const char*, 5> kNames{space::kZeroStage, space::kMicroBatch, space::kTensorParallel,
                                            space::kPipelineParallel, space::kAccumulation};

// If the candidates have no list, this number of drawn configurations represents a cell.
constexpr std::size_t kDrawn = 64;
constexpr int kMostDraws = 640;

bool is_integer(const space::Value& value) { return std::holds_alternative<std::int64_t>(value); }

// The value of a user who does not set the parameter: for numbers the one nearest to DeepSpeed's default, otherwise
// that default if it is a value, or else the first value.
space::Value value_of_the_silent(const space::Parameter& parameter) {
  if (parameter.continuous()) return space::number_value(parameter.range->min);
  const std::vector<space::Value>& values = parameter.values;
  const space::WellKnownParameter* known = space::find_well_known(parameter.name);
  if (known == nullptr) return values.front();
  const space::Value& fallback = known->default_value;
  if (!space::is_number(fallback) || !std::all_of(values.begin(), values.end(), space::is_number)) {
    return values[static_cast<std::size_t>(std::max(parameter.index_of(fallback), 0))];
  }
  const auto distance = [&](const space::Value& value) {
    return std::abs(space::as_number(value) - space::as_number(fallback));
  };
  return *std::min_element(values.begin(), values.end(),
                           [&](const space::Value& x, const space::Value& y) { return distance(x) < distance(y); });
}

// The session's baseline, as far as it is in the space.
space::Configuration user_configuration(const session::Session& session) {
  space::Configuration user;
  for (const space::Parameter& parameter : session.space.parameters()) {
    const space::Value* own = session.baseline ? session.baseline->find(parameter.name) : nullptr;
    const bool is_ours = own != nullptr && (parameter.continuous() || parameter.index_of(*own) >= 0);
    user.set(parameter.name, is_ours ? *own : value_of_the_silent(parameter));
  }
  return user;
}

}  // namespace

StageCells::StageCells(const session::Session& session, const Candidates& candidates)
    : candidates_(candidates), user_(user_configuration(session)) {
  for (const space::Parameter& parameter : session.space.parameters()) {
    if (std::find(kNames.begin(), kNames.end(), parameter.name) == kNames.end() || parameter.continuous()) continue;
    if (!std::all_of(parameter.values.begin(), parameter.values.end(), is_integer)) continue;
    integers_.push_back(parameter.name);
    if (parameter.name == space::kAccumulation && (!session.baseline || !session.baseline->has(space::kAccumulation))) {
      user_.set(space::kAccumulation, *std::min_element(parameter.values.begin(), parameter.values.end()));
    }
  }
  user_gas_ = integer_of(user_, space::kAccumulation, 1);
  if (session.baseline && session.baseline->has(space::kMicroBatch))
    user_micro_batch_ = integer_of(user_, space::kMicroBatch, 1);
  if (candidates.listed()) {
    add_listed();
  } else {
    add_drawn();
  }
}

std::vector<Layout> StageCells::layouts() const {
  std::vector<Layout> result;
  for (const auto& [cell, members] : cells_) {
    if (result.empty() || result.back() != cell.layout) result.push_back(cell.layout);
  }
  return result;
}

std::vector<std::int64_t> StageCells::stages(const Layout& layout) const {
  std::vector<std::int64_t> result;
  for (const auto& [cell, members] : cells_) {
    if (cell.layout == layout && (result.empty() || result.back() != cell.stage)) result.push_back(cell.stage);
  }
  return result;
}

std::vector<std::int64_t> StageCells::micro_batches(const Layout& layout, std::int64_t stage) const {
  std::vector<std::int64_t> result;
  for (const auto& [cell, members] : cells_) {
    if (cell.layout == layout && cell.stage == stage) result.push_back(cell.micro_batch);
  }
  return result;
}

const Representative& StageCells::representative(const StageCell& cell, std::int64_t gas) const {
  const auto& by_gas = cells_.at(cell).by_gas;
  const auto beyond = by_gas.upper_bound(gas);
  return beyond == by_gas.begin() ? beyond->second : std::prev(beyond)->second;
}

TuningSpace StageCells::tuning_space(const std::vector<std::pair<StageCell, std::int64_t>>& cells) const {
  TuningSpace space;
  std::vector<std::size_t> listed;
  for (const auto& [cell, gas] : cells) {
    const std::int64_t steps = representative(cell, gas).gas;
    const auto is_meant = [&](const space::Configuration& c) {
      return integer_of(c, space::kAccumulation, steps) == steps;
    };
    for (const std::size_t index : cells_.at(cell).listed) {
      if (is_meant(candidates_[index])) listed.push_back(index);
    }
    if (candidates_.listed()) continue;
    for (const space::Configuration& configuration : draw(cell)) {
      if (is_meant(configuration)) space.drawn.push_back(configuration);
    }
  }
  std::sort(listed.begin(), listed.end());
  for (const std::size_t index : listed) space.configurations.push_back(&candidates_[index]);
  sort_in_lattice_order(candidates_.space(), space.drawn);
  for (const space::Configuration& configuration : space.drawn) space.configurations.push_back(&configuration);
  return space;
}

std::optional<std::int64_t> StageCells::batch_per_rank(const Layout& layout) const {
  const space::JobFacts& facts = candidates_.space().facts();
  if (!facts.well_known || !facts.train_batch_size) return std::nullopt;
  return *facts.train_batch_size * layout.model_ranks / facts.ranks;
}

void StageCells::add_listed() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Members& members = cells_[cell_of(candidates_[i])];
    members.listed.push_back(i);
    offer(members, candidates_[i]);
  }
}

// Adds every combination of the five parameters, represented by the user's values of the others or, if that may not be
// asked, by a draw.
void StageCells::add_drawn() {
  std::vector<space::Configuration> corners{user_};
  for (const space::Parameter& parameter : candidates_.space().parameters()) {
    if (std::find(integers_.begin(), integers_.end(), parameter.name) == integers_.end()) continue;
    std::vector<space::Configuration> grown;
    for (const space::Configuration& corner : corners) {
      for (const space::Value& value : parameter.values) {
        grown.push_back(corner);
        grown.back().set(parameter.name, value);
      }
    }
    corners = std::move(grown);
  }
  for (space::Configuration corner : corners) {
    const bool exists = candidates_.space().complete(corner) == space::Exclusion::kNone;
    if (exists && candidates_.contains(corner)) {
      offer(cells_[cell_of(corner)], corner);
    } else if (cells_.count(cell_of(corner)) == 0) {
      for (const space::Configuration& drawn : draw(cell_of(corner))) offer(cells_[cell_of(drawn)], drawn);
    }
  }
}

void StageCells::offer(Members& members, const space::Configuration& configuration) {
  const std::int64_t gas = integer_of(configuration, space::kAccumulation, 1);
  const auto found = members.by_gas.find(gas);
  if (found != members.by_gas.end() && differences(found->second.configuration) <= differences(configuration)) return;
  const std::optional<plan::MemoryVerdict> memory = candidates_.memory_of(configuration);
  members.by_gas[gas] = {configuration, gas, !memory || memory->probability_fits >= 0.5};
}

// Draws the same configurations each time.
std::vector<space::Configuration> StageCells::draw(const StageCell& cell) const {
  std::vector<space::Configuration> result;
  std::unordered_set<std::string> seen;
  const auto known = cells_.find(cell);
  if (known != cells_.end()) {
    for (const auto& [gas, representative] : known->second.by_gas) {
      if (seen.insert(candidates_.key(representative.configuration)).second) {
        result.push_back(representative.configuration);
      }
    }
  }
  Rng rng(0, static_cast<std::uint64_t>(
                 ((cell.layout.model_ranks * 64 + cell.layout.pipeline) * 8 + cell.stage) * 4096 + cell.micro_batch));
  for (int i = 0; i < kMostDraws && result.size() < kDrawn; ++i) {
    space::Configuration drawn = candidates_.space().sample(rng);
    for (const std::string& name : integers_) {
      if (name == space::kZeroStage) drawn.set(name, cell.stage);
      if (name == space::kMicroBatch) drawn.set(name, cell.micro_batch);
      if (name == space::kTensorParallel) drawn.set(name, cell.layout.tensor());
      if (name == space::kPipelineParallel) drawn.set(name, cell.layout.pipeline);
    }
    for (const space::Parameter& parameter : candidates_.space().parameters()) {  // parameters that now exist
      if (!drawn.has(parameter.name)) drawn.set(parameter.name, *user_.find(parameter.name));
    }
    if (candidates_.space().complete(drawn) != space::Exclusion::kNone || !candidates_.contains(drawn)) continue;
    if (cell_of(drawn) == cell && seen.insert(candidates_.key(drawn)).second) result.push_back(drawn);
  }
  return result;
}

std::int64_t StageCells::integer_of(const space::Configuration& configuration, const std::string& name,
                                    std::int64_t fallback) const {
  const space::Value* value = configuration.find(name);
  return value != nullptr && is_integer(*value) ? std::get<std::int64_t>(*value) : fallback;
}

StageCell StageCells::cell_of(const space::Configuration& configuration) const {
  const auto integer = [&](const char* name, std::int64_t fallback) {
    const bool counts = std::find(integers_.begin(), integers_.end(), name) != integers_.end();
    return counts ? integer_of(configuration, name, fallback) : fallback;
  };
  const std::int64_t pipeline = integer(space::kPipelineParallel, 1);
  const std::int64_t tensor = integer(space::kTensorParallel, 1);
  return {{space::ranks_of_replica({{space::kTensorParallel, tensor}, {space::kPipelineParallel, pipeline}}), pipeline},
          integer(space::kZeroStage, 0),
          integer(space::kMicroBatch, 1)};
}

int StageCells::differences(const space::Configuration& configuration) const {
  int count = 0;
  for (const auto& [name, value] : user_) {
    const space::Value* other = configuration.find(name);
    if (name != space::kAccumulation && other != nullptr && !space::same_value(*other, value)) ++count;
  }
  return count;
}

}  // namespace krigtune::search
