// Uses the batch identity of space/well_known.h: a micro-batch divides batch / dp for one of the values of dp that the
// parallelisms allow.
#include "jobs/session/job_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/text.h"
#include "space/parallel_layout.h"
#include "space/parameter.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

using Counts = std::set<std::int64_t>;

// Returns the numbers of micro-steps with which a step has so many sequences, for any of the micro-batches and
// replicas.
Counts steps_of(std::int64_t batch, const Counts& micro, const Counts& replicas) {
  Counts steps;
  for (const std::int64_t dp : replicas) {
    for (const std::int64_t one : micro) {
      if (const auto count = space::accumulation_steps(batch, one, dp)) steps.insert(*count);
    }
  }
  return steps;
}

class SpaceFitter {
 public:
  SpaceFitter(const Json& space, const JobSize& size) : size_(size) { made_.space = space; }

  JobSpace fit() {
    for (const char* name : space::rank_divisors()) {
      keep(name, [&](std::int64_t ways) { return fits(name, ways); });
    }
    keep(space::kVirtualPipeline, [&](std::int64_t stages) { return divides_layers_of_a_pipeline(stages); });
    find_replicas();
    keep_groups();
    drop_what_needs_others();
    fit_batch();
    drop_settled();
    keep_batch();
    divide_ranks();
    return made_;
  }

 private:
  bool fits(const std::string& name, std::int64_t ways) const {
    if (name == space::kTensorParallel)
      return size_.gpus_per_node % ways == 0 && size_.kv_heads.value_or(ways) % ways == 0;
    const bool divides_layers = name != space::kPipelineParallel || size_.layers.value_or(ways) % ways == 0;
    return divides_layers && space::data_parallel_ranks(size_.ranks, {{name, ways}}).has_value();
  }

  bool divides_layers_of_a_pipeline(std::int64_t stages) const {
    return std::ranges::any_of(counts(space::kPipelineParallel), [&](std::int64_t ranks) {
      return ranks > 1 && size_.layers.value_or(ranks * stages) % (ranks * stages) == 0;
    });
  }

  std::int64_t own(const char* name) const {
    const space::Value* value = size_.own.find(name);
    const std::optional<std::int64_t> count = value == nullptr ? std::nullopt : space::integer_of(*value);
    return std::max<std::int64_t>(1, count.value_or(1));
  }

  // A parameter that is not searched has only its own value.
  Counts counts(const char* name) const {
    if (!made_.space.contains(name)) return {own(name)};
    Counts values;
    for (const space::Value& value : parameter(name).values) {
      if (const auto count = space::integer_of(value)) values.insert(*count);
    }
    return values;
  }

  space::Parameter parameter(const std::string& name) const {
    return space::read_parameters({{name, made_.space.at(name)}}, "the recipe", "/space").front();
  }

  void keep(const char* name, const std::function<bool(std::int64_t)>& fits) {
    if (!made_.space.contains(name)) return;
    Json list = Json::array();
    for (const std::int64_t ways : counts(name)) {
      if (ways == own(name) || (ways >= 1 && fits(ways))) list.push_back(ways);
    }
    made_.space[name] = std::move(list);
  }

  // The session's own reader sees to a single parameter that divides the ranks.
  void divide_ranks() {
    std::vector<std::string> factors;
    bool is_varied = false;
    for (const char* name : space::rank_divisors()) {
      is_varied = is_varied || made_.space.contains(name);
      if (made_.space.contains(name) || own(name) > 1) factors.emplace_back(name);
    }
    if (!is_varied || factors.size() < 2) return;
    made_.constraints.push_back(fmt::format("ranks % ({}) == 0", join(factors, " * ")));
  }

  void find_replicas() {
    std::vector<space::Configuration> splits = {size_.own};
    for (const char* name : space::rank_divisors()) {
      std::vector<space::Configuration> longer;
      for (const space::Configuration& split : splits) {
        for (const std::int64_t ways : counts(name)) {
          longer.push_back(split);
          longer.back().set(name, ways);
        }
      }
      splits = std::move(longer);
    }
    for (const space::Configuration& split : splits) {
      if (const auto dp = space::data_parallel_ranks(size_.ranks, split)) replicas_.insert(*dp);
    }
    if (replicas_.empty()) replicas_.insert(1);
  }

  // Groups of all data-parallel ranks are what 0 stands for.
  void keep_groups() {
    if (!made_.space.contains(space::kHybridShard)) return;
    const std::int64_t own = size_.own.integer(space::kHybridShard, 0);
    Json list = Json::array();
    for (const std::int64_t size : counts(space::kHybridShard)) {
      const auto groups = [&](std::int64_t dp) { return size > 0 && size < dp && dp % size == 0; };
      if (size == 0 || size == own || std::ranges::any_of(replicas_, groups)) list.push_back(size);
    }
    made_.space[space::kHybridShard] = std::move(list);
  }

  void drop_what_needs_others() {
    if (*replicas_.rbegin() > 1) return;
    for (const auto& [name, values] : made_.space.items()) {
      const space::WellKnownParameter* known = space::find_well_known(name);
      const bool is_of_ddp = name.rfind("ddp_", 0) == 0;  // the Trainer's names; one process is not wrapped in DDP
      if (name == space::kZeroStage || is_of_ddp || (known != nullptr && space::needs_other_data_ranks(*known)))
        made_.without_effect.push_back(name);
    }
    for (const std::string& name : made_.without_effect) made_.space.erase(name);
  }

  Counts micro_batches() const {
    constexpr std::int64_t kTimes = 8;
    Counts values = {own(space::kMicroBatch)};
    const std::optional<std::int64_t> batch = kept();
    const std::int64_t most = batch.value_or(kTimes * own(space::kMicroBatch));
    for (std::int64_t power = 1; power <= most; power *= 2) {
      const bool fits = !batch || std::any_of(replicas_.begin(), replicas_.end(), [&](std::int64_t dp) {
        return space::accumulation_steps(*batch, power, dp).has_value();
      });
      if (fits) values.insert(power);
    }
    return values;
  }

  // Returns the sequences of a step, or those of one replica if nobody knows how many replicas there are.
  std::optional<std::int64_t> kept() const {
    if (size_.train_batch_size || !is_of_replica()) return size_.train_batch_size;
    return own(space::kMicroBatch) * own(space::kAccumulation);
  }

  bool splits_ranks() const {
    return std::ranges::any_of(space::rank_divisors(), [&](const char* name) { return made_.space.contains(name); });
  }

  bool is_of_replica() const {
    return !size_.train_batch_size && size_.can_write_accumulation && !splits_ranks() &&
           size_.own.has(space::kMicroBatch) && size_.own.has(space::kAccumulation);
  }

  void fit_batch() {
    if (!made_.space.contains(space::kMicroBatch)) return;
    if (is_of_replica()) replicas_ = {1};
    const Counts micro = micro_batches();
    made_.space[space::kMicroBatch] = Json(micro);
    const std::optional<std::int64_t> batch = kept();
    if (!batch || size_.follows_batch) {
      if (size_.follows_batch) made_.space.erase(space::kAccumulation);
      return;
    }
    if (!size_.can_write_accumulation) {
      made_.space.erase(space::kAccumulation);
      return;
    }
    const Counts steps = steps_of(*batch, micro, replicas_);
    made_.space[space::kAccumulation] = Json(steps);
    only_steps_ = steps.size() == 1 ? std::optional(*steps.begin()) : std::nullopt;
    is_kept_ = true;
  }

  // Adds what keeps the batch, in names that vary and numbers of those that do not.
  void keep_batch() {
    const auto is_varied = [&](const char* name) { return made_.space.contains(name); };
    if (!is_varied(space::kMicroBatch) && !is_varied(space::kAccumulation) && !splits_ranks()) return;
    const std::optional<std::int64_t> batch = kept();
    if (!batch || size_.follows_batch) return;
    if (!is_kept_) {
      if (size_.own.has(space::kMicroBatch) && !size_.can_write_accumulation)
        made_.constraints.push_back(fmt::format("{} % ({} * dp) == 0", *batch, space::kMicroBatch));
      return;
    }
    const std::string steps =
        is_varied(space::kAccumulation) ? space::kAccumulation : std::to_string(only_steps_.value_or(1));
    made_.constraints.push_back(
        fmt::format("{} * {}{} == {}", space::kMicroBatch, steps, is_of_replica() ? "" : " * dp", *batch));
  }

  // Parameters whose only value is the command's own need not be searched. The accumulation stays with the micro-batch.
  void drop_settled() {
    std::vector<std::string> names;
    for (const auto& [name, values] : made_.space.items()) {
      if (values.is_array() && values.size() < 2) names.push_back(name);
    }
    for (const std::string& name : names) {
      if (name != space::kAccumulation || !made_.space.contains(space::kMicroBatch)) made_.space.erase(name);
    }
  }

  const JobSize& size_;
  JobSpace made_;
  Counts replicas_;                         ///< possible numbers of data-parallel ranks
  bool is_kept_ = false;                    ///< by the accumulation
  std::optional<std::int64_t> only_steps_;  ///< the only accumulation that keeps it
};

}  // namespace

JobSpace fitted_space(const Json& space, const JobSize& size) { return SpaceFitter(space, size).fit(); }

namespace {

// Empty if it does not vary.
Counts integers_of(const Json& space, const char* name) {
  Counts integers;
  for (const space::Parameter& parameter : space::read_parameters(space, "--vary", "/space")) {
    if (parameter.name != name) continue;
    for (const space::Value& value : parameter.values) integers.insert(space::integer_of(value).value_or(0));
  }
  return integers;
}

}  // namespace

Json steps_that_keep(std::int64_t train_batch_size, const Json& space, const space::Configuration& own,
                     std::int64_t ranks) {
  Counts micro = integers_of(space, space::kMicroBatch);
  if (micro.empty()) micro = {own.integer(space::kMicroBatch, 1)};
  const bool splits = std::ranges::any_of(space::rank_divisors(), [&](const char* one) { return space.contains(one); });
  Counts replicas = {space::data_parallel_ranks(ranks, own).value_or(ranks)};
  for (std::int64_t ways = 1; splits && ways <= ranks; ++ways) {
    if (const auto dp = space::data_parallel_ranks(ranks, {{space::kTensorParallel, ways}})) replicas.insert(*dp);
  }
  return steps_of(train_batch_size, micro, replicas);
}

int configurations_at(const Json& space, std::int64_t train_batch_size, std::int64_t dp) {
  int found = 0;
  for (const std::int64_t micro : integers_of(space, space::kMicroBatch)) {
    const auto steps = space::accumulation_steps(train_batch_size, micro, dp);
    for (const std::int64_t one : integers_of(space, space::kAccumulation)) found += steps == one;
  }
  return found;
}

std::string kept_batch(std::int64_t train_batch_size) {
  return fmt::format("{} * {} * dp == {}", space::kMicroBatch, space::kAccumulation, train_batch_size);
}

}  // namespace krigtune::jobs
