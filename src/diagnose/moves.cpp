#include "diagnose/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <variant>

#include "cost/framework.h"
#include "forecast/forecast.h"
#include "session/refused_values.h"
#include "space/expression.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::diagnose {
namespace {

constexpr double kNearlyAlike = 0.01;      // difference of two speedups
constexpr double kWorthTwoChanges = 0.03;  // what a second change must add to the speedup
constexpr std::size_t kMostMovesOfAGroup = 200;

space::Value value_or_default(const space::Configuration& configuration, const std::string& name) {
  if (const space::Value* value = configuration.find(name)) return *value;
  return space::find_well_known(name)->default_value;
}

// Powers of two times the value, up to `most`.
std::vector<space::Value> scaled(std::int64_t value, int most_steps, std::int64_t most) {
  std::vector<space::Value> values;
  std::int64_t up = value;
  std::int64_t down = value;
  for (int step = 0; step < most_steps; ++step) {
    up *= 2;
    if (up <= most) values.emplace_back(up);
    if (down % 2 == 0) values.emplace_back(down /= 2);
  }
  return values;
}

std::vector<space::Value> others(const space::Value& present, std::vector<space::Value> all) {
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const space::Value& value) { return space::same_value(value, present); }),
            all.end());
  return all;
}

// Sorts by the distance of logarithms; words keep their order.
void sort_by_distance(const space::Value& present, std::vector<space::Value>& values) {
  if (!space::is_number(present)) return;
  const auto distance = [&](const space::Value& value) {
    if (!space::is_number(value)) return std::numeric_limits<double>::infinity();
    return std::abs(std::log(space::as_number(value) + 1.0) - std::log(space::as_number(present) + 1.0));
  };
  std::stable_sort(values.begin(), values.end(),
                   [&](const space::Value& a, const space::Value& b) { return distance(a) < distance(b); });
}

// Returns 1, 2 and 5 times powers of ten.
std::vector<space::Value> bucket_sizes() {
  constexpr std::int64_t kSmallest = 100'000;
  constexpr std::int64_t kLargest = 1'000'000'000;
  std::vector<space::Value> sizes;
  for (std::int64_t decade = kSmallest; decade <= kLargest; decade *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * decade <= kLargest) sizes.emplace_back(digit * decade);
    }
  }
  return sizes;
}

/// A parameter that exists beside another one and in some frameworks.
struct Beside {
  const char* parameter;
  const char* split;  ///< the parameter that must divide ranks; the other one has no effect otherwise
  std::vector<workload::Framework> frameworks;
  std::vector<space::Value> values;
};

// Megatron-LM's --cp-comm-type, --num-virtual-stages-per-pipeline-rank and flags of experts (megatron/training/
// arguments.py). Of schedules without bubbles it has none, and PyTorch's depend on how a job cuts its layers.
const std::vector<Beside>& beside_others() {
  using enum workload::Framework;
  static const std::vector<Beside> kTable = {
      {space::kContextKind, space::kContextParallel, {kMegatron}, {"ring", "allgather", "alltoall", "alltoall+ring"}},
      {space::kVirtualPipeline,
       space::kPipelineParallel,
       {kMegatron},
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}, std::int64_t{5}, std::int64_t{6},
        std::int64_t{8}}},
      {space::kPipelineSchedule, space::kPipelineParallel, {}, {}},
      {space::kMoeOverlap, space::kExpertParallel, {kMegatron}, {false, true}},
      {space::kMoeDispatch, space::kExpertParallel, {kMegatron}, {"alltoall", "allgather", "flex"}},
      {space::kExpertTensorParallel, space::kExpertParallel, {kMegatron}, {std::int64_t{0}, std::int64_t{1}}},
      {space::kTensorOverlap, space::kTensorParallel, {kMegatron}, {false, true}},
  };
  return kTable;
}

const Beside* find_beside(std::string_view parameter) {
  const auto found =
      std::ranges::find_if(beside_others(), [&](const Beside& row) { return row.parameter == parameter; });
  return found == beside_others().end() ? nullptr : &*found;
}

bool is_of_framework(const Beside& row, workload::Framework framework) {
  return std::ranges::find(row.frameworks, framework) != row.frameworks.end();
}

// Whether the framework takes the configuration's values together, with equally long stages if a rank has several.
bool takes(const session::Session& session, const space::Configuration& configuration) {
  const auto layout = space::ParallelLayout::of(session.cluster.ranks(), configuration);
  if (!layout) return false;
  const std::int64_t each = configuration.integer(space::kVirtualPipeline, 1);
  const std::int64_t pipeline = layout->ways(space::kPipelineParallel);
  if (each > 1 && session.workload->model.layers % (each * pipeline) != 0) return false;
  std::vector<space::Parameter> parameters;
  for (const auto& [name, value] : configuration) {
    parameters.push_back({name, {value}});
    parameters.back().categorical = std::holds_alternative<std::string>(value);
  }
  space::JobFacts facts = session.space.facts();
  facts.fixed = {};
  std::vector<space::Expression> refused;
  session::add_refused(session.workload->framework, parameters, facts, refused);
  return refused.empty() || space::Space(parameters, facts, refused).meets_constraints(configuration);
}

// Values around the present one that someone who tunes by hand would try.
std::vector<space::Value> natural_values(const JobModel& model, const std::string& name, const space::Value& present) {
  const session::Session& session = model.session();
  if (const Beside* row = find_beside(name)) {
    return is_of_framework(*row, session.workload->framework) ? row->values : std::vector<space::Value>{};
  }
  const std::int64_t ranks = session.cluster.ranks();
  const std::optional<std::int64_t> number = space::integer_of(present);
  if (name == space::kZeroStage) {
    const cost::FrameworkTraits& traits = cost::traits_of(session.workload->framework);
    // Shards unit by unit come with another wrapper of the model (Megatron-FSDP), which no setting brings.
    const bool by_units = number.value_or(0) >= traits.units_from_stage;
    const std::int64_t most =
        by_units ? traits.most_zero_stage : std::min(traits.most_zero_stage, traits.units_from_stage - 1);
    std::vector<space::Value> stages;
    for (std::int64_t stage = 0; stage <= most; ++stage) stages.emplace_back(stage);
    return stages;
  }
  if (name == space::kMicroBatch || name == space::kAccumulation) return scaled(number.value_or(1), 6, 4096);
  if (space::splits_ranks(name)) return scaled(number.value_or(1), 10, ranks);
  if (name == space::kCheckpointing) return {"none", "selective", "full"};
  if (name == space::kOffloadOptimizer || name == space::kOffloadParam) return {"none", "cpu"};
  if (name == space::kOverlap || name == space::kSequenceParallel) return {true, false};
  return bucket_sizes();  // also for prefetching
}

// A setting costs nothing, so it comes before a change of the job's split that gains up to a tenth more.
double worth(const Move& move) {
  constexpr double kSetting = 1.1;
  const bool is_setting = std::all_of(move.changes.begin(), move.changes.end(), [](const Change& change) {
    return change.parameter == space::kOverlap || space::find_well_known(change.parameter)->is_bucket ||
           change.parameter == space::kPrefetch;
  });
  return is_setting ? kSetting * move.speedup : move.speedup;
}

}  // namespace

// Returns whether the job can change the parameter. The session's space and the configuration show which parameters it
// has; some others exist in all frameworks, or in those with DeepSpeed's settings.
bool Moves::is_at_hand(const std::string& parameter) const {
  const session::Session& session = model_.session();
  if (session.space.find(parameter) != nullptr) return true;
  if (space::splits_ranks(parameter)) return configuration_.integer(parameter, 1) > 1;
  if (const Beside* row = find_beside(parameter))
    return is_of_framework(*row, session.workload->framework) && configuration_.integer(row->split, 1) > 1;
  if (parameter == space::kAccumulation) return !session.workload->train_batch_size;
  for (const char* any : {space::kMicroBatch, space::kCheckpointing, space::kZeroStage}) {
    if (parameter == any) return true;
  }
  return configuration_.has(parameter) || cost::traits_of(session.workload->framework).has_zero_knobs;
}

std::vector<space::Value> Moves::values_near(const std::string& parameter) const {
  if (!is_at_hand(parameter)) return {};
  const space::Value present = value_or_default(configuration_, parameter);
  std::vector<space::Value> values = others(present, natural_values(model_, parameter, present));
  const space::Parameter* found = model_.session().space.find(parameter);
  if (found != nullptr && !found->continuous()) {
    for (const space::Value& value : others(present, found->values)) {
      if (others(value, values).size() == values.size()) values.push_back(value);
    }
  }
  sort_by_distance(present, values);
  return values;
}

std::optional<space::Configuration> Moves::with_batch_kept(space::Configuration moved) const {
  const session::Session& session = model_.session();
  const auto dp = space::data_parallel_ranks(session.cluster.ranks(), moved);
  if (!dp) return std::nullopt;
  const auto sequences = static_cast<std::int64_t>(std::llround(present_.sequences));
  const std::optional<std::int64_t> steps =
      space::accumulation_steps(sequences, moved.integer(space::kMicroBatch, 1), *dp);
  if (!steps) return std::nullopt;
  moved.set(space::kAccumulation, *steps);
  return moved;
}

std::vector<Move> Moves::of(const Parameters& parameters) const {
  std::vector<std::vector<Change>> combinations = {{}};
  for (const std::string& name : parameters) {
    std::vector<std::vector<Change>> longer;
    const space::Value before = value_or_default(configuration_, name);
    for (const auto& begun : combinations) {
      for (const space::Value& value : values_near(name)) {
        longer.push_back(begun);
        longer.back().push_back({name, before, value});
      }
    }
    combinations = std::move(longer);
  }
  if (combinations.size() > kMostMovesOfAGroup) combinations.resize(kMostMovesOfAGroup);
  const bool changes_batch = std::find(parameters.begin(), parameters.end(), space::kAccumulation) != parameters.end();
  std::vector<Move> moves;
  for (std::vector<Change>& changes : combinations) {
    space::Configuration moved = configuration_;
    for (const Change& change : changes) moved.set(change.parameter, change.after);
    if (!changes_batch) {
      const std::optional<space::Configuration> kept = with_batch_kept(moved);
      if (!kept) continue;
      moved = *kept;
      const std::int64_t steps = moved.integer(space::kAccumulation, 1);
      const std::int64_t before = configuration_.integer(space::kAccumulation, 1);
      if (steps != before) changes.push_back({space::kAccumulation, space::Value(before), space::Value(steps)});
    }
    if (!takes(model_.session(), moved)) continue;
    const std::optional<Prediction> predicted = model_.predict(moved);
    if (!predicted) continue;
    const double speedup = present_.seconds_per_sequence() / predicted->seconds_per_sequence();
    moves.push_back({std::move(changes), std::move(moved), *predicted, speedup});
  }
  return moves;
}

std::vector<Move> Moves::best_of(const std::vector<Parameters>& groups) const {
  std::vector<Move> best;
  double most_of_one = 1.0;
  for (const Parameters& group : groups) {
    const std::vector<Move> moves = of(group);
    double most = 0.0;
    for (const Move& move : moves) most = std::max(most, move.predicted.fits() ? move.speedup : 0.0);
    const double least = group.size() > 1 ? std::max(kLeastSpeedup, most_of_one + kWorthTwoChanges) : kLeastSpeedup;
    if (!(most >= least)) continue;
    if (group.size() == 1) most_of_one = std::max(most_of_one, most);
    const auto nearest = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
      return move.predicted.fits() && move.speedup >= (1.0 - kNearlyAlike) * most;
    });
    best.push_back(*nearest);
  }
  std::stable_sort(best.begin(), best.end(), [](const Move& a, const Move& b) { return worth(a) > worth(b); });
  return best;
}

// The price of a move, by comparing the models of both configurations.
namespace {

constexpr double kNoticeable = 0.05;

double wire_bytes(const Prediction& prediction) {
  return (prediction.cost.tensor_wire_bytes + prediction.cost.data_wire_bytes) / prediction.sequences;
}

std::optional<std::string> price_in_memory(const Prediction& present, const Prediction& moved) {
  if (!present.memory || !moved.memory) return std::nullopt;
  const auto before = static_cast<double>(present.memory->predicted.count);
  const auto after = static_cast<double>(moved.memory->predicted.count);
  if (after <= (1.0 + kNoticeable) * before) return std::nullopt;
  std::string text =
      fmt::format("it needs {} more memory per rank", to_string(moved.memory->predicted - present.memory->predicted));
  if (moved.memory->verdict == plan::Verdict::kUncertain) {
    text += fmt::format(", and fits with a probability of {:.0f} %", 100.0 * moved.memory->probability_fits);
  }
  return text;
}

std::optional<std::string> price_in_communication(const Prediction& present, const Prediction& moved) {
  const double before = wire_bytes(present);
  const double after = wire_bytes(moved);
  if (after <= (1.0 + kNoticeable) * before) return std::nullopt;
  if (before <= 0.0) return "ranks begin to communicate";
  return fmt::format("a rank sends {:.2g} times as much for each sequence", after / before);
}

std::optional<std::string> price_in_batch(const Prediction& present, const Prediction& moved) {
  if (present.sequences == moved.sequences) return std::nullopt;
  return fmt::format("the batch becomes {:.0f} sequences per step instead of {:.0f}: adapt learning rate and schedule",
                     moved.sequences, present.sequences);
}

std::optional<std::string> price_in_work(const Prediction& present, const Prediction& moved) {
  const double before = present.cost.recompute_s / present.sequences;
  const double after = moved.cost.recompute_s / moved.sequences;
  const double step_s = moved.cost.step_time_s / moved.sequences;
  if (after - before <= kNoticeable * step_s) return std::nullopt;
  return fmt::format("{:.0f} % of the step is work that is repeated", 100.0 * after / step_s);
}

}  // namespace

Advice advice_of(const JobModel& model, const Prediction& present, const Move& move) {
  Advice advice;
  advice.changes = move.changes;
  advice.configuration = move.configuration;
  advice.predicted = move.predicted;
  advice.speedup = move.speedup;
  space::Configuration completed = move.configuration;
  const space::Space& space = model.session().space;
  advice.in_space = space.complete(completed) == space::Exclusion::kNone && space.contains(completed) &&
                    std::all_of(move.changes.begin(), move.changes.end(), [&](const Change& change) {
                      const space::Value* value = completed.find(change.parameter);
                      return value != nullptr && space::same_value(*value, change.after);
                    });
  for (const auto& price : {price_in_memory(present, move.predicted), price_in_communication(present, move.predicted),
                            price_in_work(present, move.predicted), price_in_batch(present, move.predicted)}) {
    if (price) advice.price.push_back(*price);
  }
  return advice;
}

}  // namespace krigtune::diagnose
