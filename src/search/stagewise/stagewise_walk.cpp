// The algorithm of DeepSpeed's autotuner (0.19, deepspeed/autotuning/autotuner.py: tune, tune_space,
// get_min_max_micro_batch_size, get_tuning_micro_batch_size_list, run_tuning_micro_batch_sizes), stage by stage:
//
//   m         the largest micro-batch that fits by the memory formula; the stage is skipped if m is below that of lower
//             stages
//   smallest  the user's or else 1, in later stages the largest of the lower ones; if it does not run, the stage ends
//   largest   the first of ceil(1.05 m), m, int(0.95 m) that runs; otherwise a bisection between the smallest and m,
//             which ends as soon as a success gains less than the plateau over the success before
//   list      from max(smallest, largest / 2) to the largest in strides of a third, and with other accumulation than
//             that of the largest
//   downward  from the largest in strides of a third of the remaining range, while each gains more than the plateau
//   then      unless the best so far is better, the other parameters within these micro-batches (space_tuner.h)
//
// A micro-batch that the space lacks is replaced by the next smaller one that it has.
//
// Differences from DeepSpeed:
// - its downward search reads the metric of another experiment; here it reads its own
// - a stage replaces the one before, and has its space tuned, if its micro-batch is larger; here if its metric is
//   better. Stage 0 has no space to tune there; here it has the session's
// - it maximises latency; here the session says what is better. It times one optimizer step; here the runner measures
// - it compares global batches of different sizes; here the session's batch is kept
// - it drops the user's ZeRO settings and tunes settings that have no effect; here the baseline's values stay, and a
//   parameter without effect has one value
// - it counts bf16 as fp32 and model ranks twice; here the session's memory model counts ("deepspeed-autotuner" has the
//   same errors)
// - it learns parameters and activations from a profiling run; here from "workload". Without that, m is the largest one
// - a stage in which all trials ran out of memory, and every stage with "fast": false, ends in an exception; not here
// - tensor and pipeline ranks are given; here each layout is walked on its own, fewest ranks per replica first
// Kept as they are: one measurement decides, micro-batches below half of the largest are not tried, and m is probed
// nearby.
#include "search/stagewise/stagewise_walk.h"

#include <algorithm>
#include <cmath>

namespace krigtune::search {
namespace {

template <class List>
bool has(const List& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

StageWalk::StageWalk(const StagewiseProblem& problem, const Layout& layout, std::int64_t stage,
                     const StageResult* previous, Answers& answers)
    : problem_(problem),
      layout_(layout),
      stage_(stage),
      previous_(previous),
      answers_(answers),
      values_(problem.cells.micro_batches(layout, stage)) {}

std::optional<StageResult> StageWalk::tune() {
  const std::int64_t lower_max = previous_ != nullptr ? previous_->max_micro_batch : 0;
  if (calculated_max() < lower_max) return StageResult{};
  const std::optional<Range> range = micro_batch_range();
  if (!range) return std::nullopt;
  if (range->min == 0 || range->max < lower_max) return StageResult{};
  batch_ = problem_.cells.batch_per_rank(layout_).value_or(range->max * problem_.cells.user_gas());
  std::vector<std::int64_t> list = tuning_list(*range);
  if (!run_list(list) || !refine(list, *range)) return std::nullopt;
  const bool can_win = previous_ == nullptr || !problem_.objective.better(previous_->value, *best_);
  if (can_win && !problem_.options.fast && !tune_others(list)) return std::nullopt;
  return StageResult{range->max, *best_};
}

std::optional<Tried> StageWalk::measure(std::int64_t micro_batch, std::int64_t gas) {
  const Representative& asked = problem_.cells.representative({layout_, stage_, micro_batch}, gas);
  const std::optional<Tried> tried = answers_(asked.configuration);
  if (tried && tried->ran) learn(tried->value);
  return tried;
}

void StageWalk::learn(double value) {
  if (!best_ || problem_.objective.better(value, *best_)) best_ = value;
}

// At least the smallest, because a micro-batch that surely does not fit is not a candidate.
std::int64_t StageWalk::calculated_max() const {
  const auto fits = [&](std::int64_t micro_batch) {
    return problem_.cells.representative({layout_, stage_, micro_batch}, problem_.cells.user_gas()).is_likely_to_fit;
  };
  const auto found = std::find_if(values_.rbegin(), values_.rend(), fits);
  return found == values_.rend() ? values_.front() : *found;
}

// Returns 0 if all are larger.
std::int64_t StageWalk::at_most(std::int64_t micro_batch) const {
  const auto beyond = std::upper_bound(values_.begin(), values_.end(), micro_batch);
  return beyond == values_.begin() ? 0 : *std::prev(beyond);
}

// Returns 0 if none runs.
std::optional<std::int64_t> StageWalk::smallest_that_runs() {
  const std::int64_t gas = problem_.cells.user_gas();
  const std::int64_t wanted =
      previous_ != nullptr ? previous_->max_micro_batch : problem_.cells.user_micro_batch().value_or(values_.front());
  const auto found = std::lower_bound(values_.begin(), values_.end(), wanted);
  const std::int64_t first = found != values_.end() ? *found : values_.front();
  const std::optional<Tried> tried = measure(first, gas);
  if (!tried) return std::nullopt;
  if (tried->ran) return first;
  if (previous_ != nullptr || first == values_.front()) return 0;
  const std::optional<Tried> smallest = measure(values_.front(), gas);
  if (!smallest) return std::nullopt;
  return smallest->ran ? values_.front() : 0;
}

std::optional<StageWalk::Range> StageWalk::micro_batch_range() {
  const std::optional<std::int64_t> min = smallest_that_runs();
  if (!min) return std::nullopt;
  if (*min == 0) return Range{};
  const std::int64_t most = std::max(calculated_max(), *min);
  const auto scaled = [&](double factor) { return factor * static_cast<double>(most); };
  for (const std::int64_t probe : {at_most(static_cast<std::int64_t>(std::ceil(scaled(1.05)))), most,
                                   at_most(static_cast<std::int64_t>(scaled(0.95)))}) {
    if (probe <= *min) break;
    const std::optional<Tried> tried = measure(probe, problem_.cells.user_gas());
    if (!tried) return std::nullopt;
    if (tried->ran) return Range{*min, probe};
  }
  const std::optional<std::int64_t> max = binary_search(*min, most);
  return max ? std::optional(Range{*min, *max}) : std::nullopt;
}

std::optional<std::int64_t> StageWalk::binary_search(std::int64_t min, std::int64_t max) {
  const auto position = [&](std::int64_t micro_batch) {
    return std::lower_bound(values_.begin(), values_.end(), micro_batch) - values_.begin();
  };
  std::optional<double> before;
  const std::int64_t gas = problem_.cells.user_gas();
  auto low = position(min);
  auto high = position(max);
  if (const auto tried = measure(min, gas)) before = tried->value;
  while (low <= high) {
    const auto middle = (low + high) / 2;
    const std::int64_t micro_batch = values_[static_cast<std::size_t>(middle)];
    const std::optional<Tried> tried = measure(micro_batch, gas);
    if (!tried) return std::nullopt;
    if (!tried->ran) {
      high = middle - 1;
      continue;
    }
    low = middle + 1;
    if (micro_batch == min) continue;
    if (before && gain(problem_.objective, *before, tried->value) < problem_.options.plateau) break;
    before = tried->value;
  }
  return values_[static_cast<std::size_t>(low - 1)];
}

std::vector<std::int64_t> StageWalk::tuning_list(const Range& range) const {
  const std::int64_t from = std::max(range.min, range.max / 2);
  const std::int64_t stride = std::max((range.max - from) / problem_.options.micro_batches, std::int64_t{1});
  std::vector<std::int64_t> list;
  for (std::int64_t wanted = from; wanted < range.max; wanted += stride) {
    const std::int64_t micro_batch = at_most(wanted);
    if (micro_batch < from || has(list, micro_batch)) continue;
    if (batch_ / micro_batch != batch_ / range.max) list.push_back(micro_batch);
  }
  list.push_back(range.max);
  return list;
}

// The trials of the list are independent, so all are asked at once.
bool StageWalk::run_list(const std::vector<std::int64_t>& list) {
  bool all_known = true;
  for (const std::int64_t micro_batch : list) {
    const bool known = measure(micro_batch, batch_ / micro_batch).has_value();
    all_known = all_known && known;
  }
  return all_known;
}

// Near the largest micro-batch memory is so short that a smaller one may be faster.
bool StageWalk::refine(std::vector<std::int64_t>& list, const Range& range) {
  const std::int64_t max = list.back();
  const std::int64_t from = list.size() > 1 ? list[list.size() - 2] + 1 : range.min;
  const std::int64_t stride = std::max((max - from) / 3, std::int64_t{1});
  Tried best = measure(max, batch_ / max).value_or(Tried{});
  std::int64_t last = max;
  for (std::int64_t steps = (max - 1 - from) / stride; max > from && steps >= 0; --steps) {
    const std::int64_t micro_batch = at_most(from + steps * stride);
    if (micro_batch < from || micro_batch == last) continue;
    last = micro_batch;
    const std::optional<Tried> tried = measure(micro_batch, batch_ / micro_batch);
    if (!tried) return false;
    if (!tried->ran) break;
    if (best.ran && !(gain(problem_.objective, best.value, tried->value) > problem_.options.plateau)) break;
    best = *tried;
    list.back() = micro_batch;
  }
  return true;
}

bool StageWalk::tune_others(const std::vector<std::int64_t>& list) {
  std::vector<std::pair<StageCell, std::int64_t>> cells;
  for (const std::int64_t micro_batch : list) {
    cells.push_back({{layout_, stage_, micro_batch}, batch_ / micro_batch});
  }
  const TuningSpace space = problem_.cells.tuning_space(cells);
  if (space.configurations.size() <= list.size()) return true;  // no other parameter varies
  SpaceTunerOptions options{problem_.options, problem_.seed, 0};
  options.stream = static_cast<std::uint64_t>((layout_.model_ranks << 20) + (layout_.pipeline << 8) + stage_);
  const auto found = tune_space(space, problem_.space, problem_.objective, options, answers_);
  if (!found) return false;
  if (*found) learn(**found);
  return true;
}

bool walk_layout(const StagewiseProblem& problem, const Layout& layout, Answers& answers) {
  std::optional<StageResult> best;
  for (const std::int64_t stage : problem.cells.stages(layout)) {
    StageWalk walk(problem, layout, stage, best ? &*best : nullptr, answers);
    const std::optional<StageResult> result = walk.tune();
    if (!result) return false;
    const bool has_run = result->max_micro_batch > 0;
    if (has_run && (!best || problem.objective.better(result->value, best->value))) best = *result;
  }
  return true;
}

}  // namespace krigtune::search
