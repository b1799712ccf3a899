// Decides which knobs of a DeepSpeed job are searched, and over which values. What reads which knob is taken from
// DeepSpeed 0.19: runtime/zero/stage_1_and_2.py and stage3.py.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "deepspeed/session/ds_job.h"
#include "schedule/knobs.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

constexpr const char* kDeadPartitions = "zero_optimization.allgather_partitions";

class DsSpace {
 public:
  explicit DsSpace(DsJob& job) : job_(job) {}

  void build() {
    tensor_ = tensor_values();
    stages_ = stage_values();
    add_stage_and_batch();
    for (const space::WellKnownParameter& known : space::well_known_parameters()) add_knob(known);
    add_checkpointing();
    add_tensor_parallel();
    for (const DsTunable& tunable : job_.tunables) add_own_list(tunable);
    remark_on_what_stays();
  }

  void write(Json& session) const {
    session["space"] = space_;
    session["constraints"] = constraints_;
    session["baseline"] = space::to_json(baseline_);
  }

 private:
  bool adds_all() const {
    const Json section = job_.inputs.config.value("autotuning", Json::object());
    return !(section.is_object() && section.contains("fast") && job_.autotuning.tuner.fast);
  }

  const DsTunable* listed(std::string_view name) const {
    const DsTunable* tunable = job_.find(name);
    return tunable != nullptr && tunable->setting == DsSetting::kList ? tunable : nullptr;
  }

  static Json as_json(const std::vector<space::Value>& values) {
    Json list = Json::array();
    for (const space::Value& value : values) list.push_back(space::to_json(value));
    return list;
  }

  // AutoTP accepts 0 and 1 for "off". If requested, it is searched within a node and over whole heads.
  std::vector<std::int64_t> tensor_values() {
    std::vector<std::int64_t> values;
    const auto add = [&](std::int64_t ways) {
      ways = std::max<std::int64_t>(1, ways);
      if (std::find(values.begin(), values.end(), ways) == values.end()) values.push_back(ways);
    };
    if (const DsTunable* list = listed(space::kTensorParallel)) {
      for (const space::Value& value : list->values) {
        const std::int64_t ways = std::max<std::int64_t>(1, std::get<std::int64_t>(value));
        if (space::data_parallel_ranks(job_.cluster.ranks(), {{space::kTensorParallel, ways}})) add(ways);
      }
      return values;
    }
    add(job_.tensor);
    const bool is_searched = job_.inputs.tensor_parallel && !job_.is_kept(space::kTensorParallel);
    if (!is_searched) return values;
    if (!job_.has(DsFeature::kTensorParallelTraining)) {
      job_.remarks.emplace_back("tensor parallelism is left out: DeepSpeed trains with it from 0.16.4 on");
      return values;
    }
    for (std::int64_t ways = 1; ways <= job_.cluster.gpus_per_node; ways *= 2) {
      if (job_.cluster.gpus_per_node % ways == 0 && splits_heads(ways)) add(ways);
    }
    if (values.size() == 1) {
      job_.remarks.emplace_back("tensor parallelism is left out: neither a node's ranks nor heads can be halved");
    }
    std::sort(values.begin(), values.end());
    return values;
  }

  bool splits_heads(std::int64_t ways) const {
    if (job_.workload.is_null()) return true;
    const workload::ModelSpec model = workload::read_workload(job_.workload, job_.source, "/workload").model;
    return model.kv_heads % ways == 0 && model.ffn_hidden % ways == 0;
  }

  bool has_other_ranks() const {
    return std::any_of(tensor_.begin(), tensor_.end(), [&](std::int64_t t) { return job_.cluster.ranks() > t; });
  }

  std::vector<std::int64_t> stage_values() {
    std::vector<std::int64_t> values;
    if (const DsTunable* tunable = job_.find(space::kZeroStage);
        tunable != nullptr && (listed(space::kZeroStage) || job_.is_kept(space::kZeroStage))) {
      for (const space::Value& value : tunable->values) values.push_back(std::get<std::int64_t>(value));
      return values;
    }
    if (!has_other_ranks()) return {job_.own_count_or(space::kZeroStage, 0)};
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      if (stage == 3 || may_hold(stage)) values.push_back(stage);
    }
    return values;
  }

  // Only without offload and tensor parallelism, because the memory is uncertain with either.
  bool may_hold(std::int64_t stage) {
    if (!job_.num_params || !job_.inputs.machine.rank_memory || may_offload(job_) || tensor_.size() > 1 ||
        job_.find(space::kOffloadOptimizer) != nullptr || job_.find(space::kOffloadParam) != nullptr)
      return true;
    const double bytes = least_bytes(job_, stage);
    if (bytes <= static_cast<double>(job_.inputs.machine.rank_memory->count)) return true;
    job_.remarks.push_back(fmt::format("stage {} is left out: it takes at least {} of a rank's {}", stage,
                                       to_string(Bytes{std::llround(bytes)}),
                                       to_string(*job_.inputs.machine.rank_memory)));
    return false;
  }

  void add_stage_and_batch() {
    space_[space::kZeroStage] = stages_;
    baseline_.set(space::kZeroStage, own_stage());
    const DsBatchSpace batch = ds_batch_space(job_, tensor_);
    if (!batch.micro_batch.is_null()) space_[space::kMicroBatch] = batch.micro_batch;
    if (!batch.accumulation.is_null()) space_[space::kAccumulation] = batch.accumulation;
    constraints_ = batch.constraints;
    for (const auto& [name, value] : batch.own) baseline_.set(name, value);
  }

  std::int64_t own_stage() const { return job_.own_count_or(space::kZeroStage, 0); }

  bool all_from(std::int64_t least) const {
    return std::all_of(stages_.begin(), stages_.end(), [&](std::int64_t stage) { return stage >= least; });
  }
  bool any_from(std::int64_t least) const {
    return std::any_of(stages_.begin(), stages_.end(), [&](std::int64_t stage) { return stage >= least; });
  }

  // Returns why it changes nothing in this job; "" if it does.
  std::string no_effect(const space::WellKnownParameter& known) const {
    if (known.name == std::string_view(space::kAllgatherBucket) && job_.has(DsFeature::kAllgatherBucketDead)) {
      return job_.inputs.machine.version
                 ? fmt::format("DeepSpeed {} does not read it", to_string(*job_.inputs.machine.version))
                 : "DeepSpeed does not read it from 0.12.4 on";
    }
    const std::int64_t least = known.deepspeed.first_stage;
    if (!any_from(least)) return fmt::format("it is read from stage {} on", least);
    return space::needs_other_data_ranks(known) && !has_other_ranks() ? "there is one data-parallel rank" : "";
  }

  void add_knob(const space::WellKnownParameter& known) {
    const std::string name = known.name;
    if (*known.deepspeed.key == '\0' || name == space::kTensorParallel || space_.contains(name) ||
        name == space::kMicroBatch || name == space::kAccumulation)
      return;
    const std::string why = no_effect(known);
    if (!why.empty()) {
      if (job_.is_opened(name)) job_.remarks.push_back(fmt::format("{} is left out: {}", name, why));
      return;
    }
    Json values = values_of(known);
    if (values.is_null()) return;
    add(name, std::move(values), known.deepspeed.first_stage);
    if (own_stage() >= known.deepspeed.first_stage) baseline_.set(name, own_value(known));
  }

  Json values_of(const space::WellKnownParameter& known) const {
    const std::string name = known.name;
    if (const DsTunable* list = listed(name)) return as_json(list->values);
    if (job_.is_kept(name)) return value_in_file(name);
    if (job_.is_opened(name)) {
      const Json sensible = sensible_values(job_, name);
      return sensible.is_null() ? parse_json(known.default_range, name) : sensible;
    }
    const Json sensible = adds_all() ? sensible_values(job_, name) : Json();
    return sensible.is_null() && job_.find(name) != nullptr ? value_in_file(name) : sensible;
  }

  // Returns the file's value as the only one, if predictions depend on it.
  Json value_in_file(const std::string& name) const {
    const std::vector<std::string>& planned = schedule::planned_parameters();
    const bool is_seen = !job_.workload.is_null() && std::find(planned.begin(), planned.end(), name) != planned.end();
    return is_seen ? as_json(job_.find(name)->values) : Json();
  }

  void add(const std::string& name, Json values, std::int64_t least) {
    if (!all_from(least)) {
      if (values.is_array()) values = Json{{"values", std::move(values)}};
      values["when"] = fmt::format("{} >= {}", space::kZeroStage, least);
    }
    space_[name] = std::move(values);
  }

  // If overlap_comm is absent or null, DeepSpeed turns it on at stage 3.
  space::Value own_value(const space::WellKnownParameter& known) const {
    if (const std::optional<space::Value> own = job_.own(known.name)) return *own;
    return known.name == std::string_view(space::kOverlap) ? space::Value(own_stage() == 3) : known.default_value;
  }

  // A switch can mean "full", and its absence "none".
  void add_checkpointing() {
    if (recomputation_of(job_) == Recomputation::kFull) {
      space_[space::kCheckpointing] = {"full"};
      baseline_.set(space::kCheckpointing, std::string("full"));
      job_.remarks.emplace_back("the script recomputes its activations, as the measured ones show");
    }
    if (!job_.has_flag(space::kCheckpointing) || !adds_all()) return;
    space_[space::kCheckpointing] = {"none", "full"};
    baseline_.set(space::kCheckpointing, job_.own(space::kCheckpointing).value_or(std::string("none")));
  }

  void add_tensor_parallel() {
    if (tensor_.size() == 1 && tensor_.front() == 1) return;
    space_[space::kTensorParallel] = tensor_;
    baseline_.set(space::kTensorParallel, job_.tensor);
    if (tensor_.size() == 1) return;
    if (!job_.has(DsFeature::kTensorParallelAtStage3) && any_from(3)) {
      constraints_.emplace_back("tensor_parallel == 1 || zero_stage < 3");
    }
    job_.remarks.push_back(
        "tensor parallelism is searched: each group of ranks must be given the same sequences, which a script whose "
        "sampler deals them out over all ranks does not");
  }

  // Adds the lists of keys that krigtune does not know.
  void add_own_list(const DsTunable& tunable) {
    if (tunable.setting != DsSetting::kList || space::find_well_known(tunable.name) != nullptr) return;
    if (tunable.name == kDeadPartitions) {
      job_.remarks.push_back("allgather_partitions is left out: DeepSpeed reads it nowhere");
      return;
    }
    space_[tunable.name] = as_json(tunable.values);
    baseline_.set(tunable.name, tunable.values.front());
  }

  bool is_searched(const std::string& name) const {
    if (!space_.contains(name)) return false;
    const Json& entry = space_[name];
    const Json& values = entry.is_object() && entry.contains("values") ? entry["values"] : entry;
    return !values.is_array() || values.size() > 1;
  }

  void remark_on_what_stays() {
    std::vector<std::string> searched;
    std::vector<std::string> kept;
    std::vector<std::string> guessed;
    for (const DsTunable& tunable : job_.tunables) {
      if (job_.depends_on_width(tunable.name) && baseline_.has(tunable.name)) guessed.push_back(tunable.name);
      const bool derived = tunable.name == space::kAccumulation && is_searched(space::kMicroBatch);
      if (tunable.setting != DsSetting::kFixed || (derived && job_.opens_nothing)) continue;
      if (is_searched(tunable.name)) {
        searched.push_back(tunable.name);
        continue;
      }
      const space::WellKnownParameter* known = space::find_well_known(tunable.name);
      const std::string why = known == nullptr ? "" : no_effect(*known);
      if (why.empty()) {
        kept.push_back(tunable.name);
      } else {
        job_.remarks.push_back(fmt::format("{}: stays as the file says, without effect: {}", tunable.name, why));
      }
    }
    if (!guessed.empty()) {
      job_.remarks.push_back(fmt::format(
          "{}: \"auto\" follows from the model's width, which is not known: trial 0 has DeepSpeed's defaults "
          "instead; the model's config.json (--hf-config FILE) tells the width",
          join(guessed, ", ")));
    }
    if (!searched.empty()) {
      job_.remarks.push_back(
          fmt::format("{}: searched, since the file opens nothing itself, and its values are the baseline; a list of "
                      "one value, as [2], keeps it",
                      join(searched, ", ")));
    }
    if (!kept.empty()) {
      job_.remarks.push_back(
          fmt::format("{}: stays as the file says; a list or \"auto\" in its place is searched", join(kept, ", ")));
    }
  }

  DsJob& job_;
  std::vector<std::int64_t> tensor_;
  std::vector<std::int64_t> stages_;
  Json space_ = Json::object();
  std::vector<std::string> constraints_;
  space::Configuration baseline_;
};

}  // namespace

void add_ds_space(DsJob& job, Json& session) {
  DsSpace space(job);
  space.build();
  space.write(session);
}

// Chooses values worth trying for a knob that the file leaves open, by the size of the model and the machine.
//
// A reduce bucket costs (1 + overlap_comm) * reduce_bucket_size elements (runtime/zero/stage_1_and_2.py). Useful sizes
// are between a layer and the whole model; beyond that there is only one bucket, and only the memory grows.
namespace {

// Returns sizes in steps of a power of two, rounded to two digits, up to one that holds the whole model.
Json sizes(double least, double most) {
  constexpr std::int64_t kFewest = 2;
  const auto rounded = [](double size) {
    const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(size)) - 1.0));
    return std::llround(std::ceil(size / unit) * unit);
  };
  const std::int64_t steps = std::max<std::int64_t>(kFewest, std::llround(std::log2(most / least)) + 1);
  return {{"min", rounded(least)}, {"max", rounded(most)}, {"scale", "log"}, {"steps", steps}};
}

// Returns whether the knob only matters if communication overlaps with computation. That needs streams, which CPU ranks
// do not have: there a bucket smaller than the model is sent more often but no earlier.
bool serves_overlap(const std::string& name) {
  return name == space::kReduceBucket || name == space::kOverlap || name == space::kPrefetch;
}

bool only_hosts_hold(const DsJob& job) {
  const auto& memory = job.inputs.machine.rank_memory;
  return memory && job.num_params && model_state_bytes(job, 3) > static_cast<double>(memory->count);
}

}  // namespace

// DeepSpeed's own estimate of host memory (runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs) is
// parameters * max(4 * ranks of a node, 16) * 1.5 bytes. It also requires an Adam that DeepSpeed creates.
bool may_offload(const DsJob& job) {
  const DsMachine& machine = job.inputs.machine;
  if (machine.on_cpu || !machine.host_memory || !job.num_params) return false;
  const Json section = job.inputs.config.value("optimizer", Json::object());
  const Json type = section.is_object() ? section.value("type", Json("")) : Json("");
  if (!type.is_string() || lower_case(type.get<std::string>()).rfind("adam", 0) != 0) return false;
  const auto ranks = static_cast<double>(job.cluster.gpus_per_node);
  const double bytes = 1.5 * static_cast<double>(*job.num_params) * std::max(4.0 * ranks, 16.0);
  return bytes <= static_cast<double>(machine.host_memory->count);
}

Json sensible_values(const DsJob& job, const std::string& name) {
  constexpr double kLargestBucket = 5e8;  // DeepSpeed's default
  constexpr double kSpan = 64.0;
  const double model = static_cast<double>(job.num_params.value_or(static_cast<std::int64_t>(kLargestBucket)));
  const double most = std::clamp(model, 1e3, kLargestBucket);
  if (job.inputs.machine.on_cpu && serves_overlap(name)) return {};
  if (name == space::kReduceBucket) return sizes(most / kSpan, most);
  if (name == space::kPrefetch) return sizes(most / kSpan, most / 4.0);
  if (name == space::kPersistence) return sizes(std::min(most / kSpan, 1e4), std::min(most, 1e6));
  if (name == space::kOverlap) return Json::array({false, true});
  const bool is_offload = name == space::kOffloadOptimizer || (name == space::kOffloadParam && only_hosts_hold(job));
  if (is_offload && (may_offload(job) || job.is_opened(name))) return Json::array({"none", "cpu"});
  return {};
}

}  // namespace krigtune::deepspeed
