// Chooses micro-batch and accumulation of a DeepSpeed job for a fixed number of sequences per step. By the batch
// identity (space/well_known.h) a micro-batch divides batch / dp. If there are many divisors, neighbours that differ by
// less than a fixed factor are thinned out, because the time of a step is a smooth function of them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "deepspeed/session/ds_job.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

Json list_of(const std::vector<space::Value>& values) {
  Json list = Json::array();
  for (const space::Value& value : values) list.push_back(space::to_json(value));
  return list;
}

class BatchSpace {
 public:
  BatchSpace(DsJob& job, const std::vector<std::int64_t>& tensor) : job_(job) {
    for (const std::int64_t ways : tensor) replicas_.insert(job.replicas_at(ways).value_or(1));
  }

  DsBatchSpace make() {
    if (is_the_scripts()) return space_;
    set_own();
    space_.micro_batch = micro_batches();
    space_.accumulation = accumulations();
    if (job_.batch) {
      if (job_.workload.is_null() && !space_.accumulation.is_null()) {
        space_.constraints.push_back(
            fmt::format("{} * {} * dp == {}", space::kMicroBatch, space::kAccumulation, *job_.batch));
      }
    } else {
      let_it_vary();
    }
    remark_on_the_script();
    space_.own.set(space::kMicroBatch, *micro_);
    if (!space_.accumulation.is_null()) space_.own.set(space::kAccumulation, accumulation_.value_or(1));
    return space_;
  }

 private:
  // "auto" that no flag of the command states: accelerate and scripts fill it in from values that the file cannot
  // change.
  bool is_the_scripts() {
    if (job_.can_change(space::kMicroBatch) && job_.can_change(space::kAccumulation)) return false;
    job_.remarks.push_back(
        "micro-batch and accumulation stay as the script chooses them: \"auto\" in the file, and no flag of the "
        "command "
        "says them; name the flags in \"autotuning\": {\"arg_mappings\": {\"train_micro_batch_size_per_gpu\": "
        "\"--batch_size\"}}, or write numbers");
    return true;
  }

  bool is_listed(const char* name) const {
    const DsTunable* tunable = job_.find(name);
    return tunable != nullptr && tunable->setting == DsSetting::kList;
  }

  // Applies DeepSpeed's rule for missing values: no accumulation, then the micro-batch that follows from the batch.
  void set_own() {
    micro_ = job_.own_count(space::kMicroBatch);
    accumulation_ = job_.own_count(space::kAccumulation);
    if (!job_.batch) {
      if (!micro_) {
        throw UserError(fmt::format("{}: names no batch", job_.source),
                        "write \"train_batch_size\" or \"train_micro_batch_size_per_gpu\"");
      }
      return;
    }
    const std::int64_t each = *job_.batch / job_.replicas();
    if (is_listed(space::kMicroBatch)) micro_ = first_that_divides(space::kMicroBatch, each);
    if (is_listed(space::kAccumulation)) accumulation_ = first_that_divides(space::kAccumulation, each);
    if (!micro_) micro_ = each / accumulation_.value_or(1);
    accumulation_ = each / *micro_;
  }

  std::optional<std::int64_t> first_that_divides(const char* name, std::int64_t whole) const {
    for (const space::Value& value : job_.find(name)->values) {
      const std::int64_t count = std::get<std::int64_t>(value);
      if (whole % count == 0) return count;
    }
    throw UserError(fmt::format("{}: {}: no value of the list divides the {} sequences of a step on each replica",
                                job_.source, job_.find(name)->pointer, whole),
                    "list divisors, or change train_batch_size");
  }

  Json micro_batches() const {
    if (is_listed(space::kMicroBatch)) return list_of(job_.find(space::kMicroBatch)->values);
    if (job_.is_kept(space::kMicroBatch)) return Json::array({*micro_});
    if (!job_.batch) return powers_of_two();
    std::set<std::int64_t> divisors;
    for (const std::int64_t replicas : replicas_) {
      if (*job_.batch % replicas == 0) add_divisors(*job_.batch / replicas, divisors);
    }
    return thinned(divisors);
  }

  void add_divisors(std::int64_t whole, std::set<std::int64_t>& divisors) const {
    const DsBatchLimits& limits = job_.autotuning.batch;
    const std::int64_t most = std::min(whole, limits.max_micro_batch);
    for (std::int64_t d = limits.min_micro_batch; d <= most; ++d) {
      if (whole % d == 0) divisors.insert(d);
    }
  }

  Json thinned(const std::set<std::int64_t>& divisors) const {
    constexpr double kLeastFactor = 1.3;
    Json list = Json::array();
    double last = 0.0;
    for (const std::int64_t d : divisors) {
      const bool is_far = static_cast<double>(d) >= kLeastFactor * last;
      if (!is_far && d != *micro_ && d != *divisors.rbegin()) continue;
      list.push_back(d);
      last = static_cast<double>(d);
    }
    if (list.empty()) {
      throw UserError(
          fmt::format("{}: /autotuning: no micro-batch within {} and {} divides the sequences of a step", job_.source,
                      job_.autotuning.batch.min_micro_batch, job_.autotuning.batch.max_micro_batch),
          "widen min_ and max_train_micro_batch_size_per_gpu");
    }
    return list;
  }

  // Without a fixed batch: up to eight times the user's own micro-batch.
  Json powers_of_two() const {
    constexpr std::int64_t kTimes = 8;
    const DsBatchLimits& limits = job_.autotuning.batch;
    std::set<std::int64_t> values;
    for (std::int64_t power = 1; power <= std::min(*micro_ * kTimes, limits.max_micro_batch); power *= 2) {
      if (power >= limits.min_micro_batch) values.insert(power);
    }
    values.insert(*micro_);
    return Json(values);
  }

  Json accumulations() const {
    if (is_listed(space::kAccumulation)) return list_of(job_.find(space::kAccumulation)->values);
    if (!job_.batch) return accumulation_ ? Json::array({*accumulation_}) : Json();
    // If the file states both batch and accumulation, the micro-batch follows from them.
    if (job_.is_kept(space::kAccumulation)) return Json::array({*accumulation_});
    if (!job_.workload.is_null()) return Json();  // derived by the session
    std::set<std::int64_t> values;
    for (const std::int64_t replicas : replicas_) {
      for (const Json& micro : space_.micro_batch) {
        const auto steps = space::accumulation_steps(*job_.batch, micro.get<std::int64_t>(), replicas);
        if (steps) values.insert(*steps);
      }
    }
    return Json(values);
  }

  void let_it_vary() {
    job_.remarks.push_back(
        "the sequences of a step vary with the micro-batch, and with them what the model learns: write "
        "\"train_batch_size\" to keep them");
    const auto& most = job_.autotuning.batch.max_train_batch_size;
    if (!most) return;
    const std::string steps = space_.accumulation.is_null() ? "1" : space::kAccumulation;
    space_.constraints.push_back(fmt::format("{} * {} * dp <= {}", space::kMicroBatch, steps, *most));
  }

  void remark_on_the_script() {
    if (job_.has_flag(space::kMicroBatch) || space_.micro_batch.size() < 2) return;
    job_.remarks.push_back(
        "micro-batches are written into the file alone: the script must take them from there "
        "(engine.train_micro_batch_size_per_gpu()), or name its flag in \"autotuning\": {\"arg_mappings\"}");
  }

  DsJob& job_;
  std::set<std::int64_t> replicas_;  ///< numbers of data-parallel ranks in the space
  DsBatchSpace space_;
  std::optional<std::int64_t> micro_;
  std::optional<std::int64_t> accumulation_;
};

}  // namespace

DsBatchSpace ds_batch_space(DsJob& job, const std::vector<std::int64_t>& tensor) {
  return BatchSpace(job, tensor).make();
}

}  // namespace krigtune::deepspeed
