// Writes a configuration into the user's ds_config.json. What has no meaning where, and what DeepSpeed asserts, is that
// of DeepSpeed 0.19: runtime/zero/config.py, offload_config.py, stage_1_and_2.py.
#include <string_view>

#include "ds_knobs.h"
#include "krigtune/space/batch.h"

namespace krigtune {
namespace {

using Pointer = Json::json_pointer;

bool is_offload(std::string_view name) { return name == "offload_optimizer" || name == "offload_param"; }

// The lowest ZeRO stage that reads the knob.
std::int64_t first_stage_of(std::string_view name) {
  if (name.rfind("stage3_", 0) == 0 || name == "offload_param") return 3;
  return name == "offload_optimizer" ? 1 : 0;
}

// Whether writing it asks for something that the file without it does not have.
bool asks_for_something(std::string_view name, const Value& value) {
  if (name == "tensor_parallel") return as_number(value) > 1.0;
  return !is_offload(name) || to_string(value) != "none";
}

Value as_deepspeed_takes_it(std::string_view name, const Value& value) {
  const auto* elems = std::get_if<std::int64_t>(&value);
  const bool is_odd = name == "allgather_bucket_size" && elems != nullptr && *elems % 2 != 0;
  return is_odd ? Value(*elems + 1) : value;
}

class Writing {
 public:
  Writing(const Json& user, const Configuration& configuration, const std::string& source)
      : config_(user),
        configuration_(configuration),
        tunables_(tunables_of(user, source)),
        stage_(configuration.integer("zero_stage", number_in_file(tunables_, "zero_stage").value_or(0))) {
    config_.erase("autotuning");
  }

  void change_what_is_there() {
    for (const DsTunable& tunable : tunables_) {
      const Value* chosen = configuration_.find(tunable.name);
      const bool is_read = stage_ >= first_stage_of(tunable.name);
      const bool is_list = tunable.setting == DsSetting::kList;
      Json& place = config_[Pointer(tunable.pointer)];
      if (!is_read && is_offload(tunable.name) && (is_list || configuration_.has("zero_stage"))) {
        place = "none";
      } else if (chosen != nullptr && (is_read || is_list)) {
        place = to_json(as_deepspeed_takes_it(tunable.name, *chosen));
      } else if (is_list) {
        place = to_json(tunable.values.front());
      }
    }
  }

  // Keys of the file itself before those of its sections.
  void add_what_is_new() {
    for (const bool in_section : {false, true}) {
      for (const WellKnownParameter& knob : well_known_parameters()) {
        const std::string_view key = knob.deepspeed_key;
        if (!key.empty() && (key.rfind('/') > 0) == in_section) add(knob);
      }
    }
  }

  void set_train_batch_size(DsUse use, std::int64_t ranks) {
    const bool is_known = configuration_.has("micro_batch") && configuration_.has("gradient_accumulation_steps");
    const bool is_auto = config_.contains("train_batch_size") && config_["train_batch_size"] == "auto";
    if (!is_known || (is_auto && use == DsUse::kResult)) return;
    if (use == DsUse::kTrial || tensor_parallel() > 1) {
      config_.erase("train_batch_size");
    } else {
      config_["train_batch_size"] =
          sequences_of_step(configuration_.integer("micro_batch", 1), ranks,
                            configuration_.integer("gradient_accumulation_steps", 1));
    }
  }

  Json take() { return std::move(config_); }

 private:
  std::int64_t tensor_parallel() const {
    return configuration_.integer("tensor_parallel", number_in_file(tunables_, "tensor_parallel").value_or(1));
  }

  void add(const WellKnownParameter& knob) {
    const Value* chosen = configuration_.find(knob.name);
    if (chosen == nullptr || find_tunable(tunables_, knob.name) != nullptr) return;
    if (stage_ < first_stage_of(knob.name) || !asks_for_something(knob.name, *chosen)) return;
    const Pointer key(knob.deepspeed_key);
    // Copies between pinned memory and the GPU run beside the computation; from 0.19.5 on it is DeepSpeed's default.
    const bool is_new_offload = is_offload(knob.name) && !config_.contains(key.parent_pointer());
    config_[key] = to_json(as_deepspeed_takes_it(knob.name, *chosen));
    if (is_new_offload) config_[key.parent_pointer() / "pin_memory"] = true;
  }

  Json config_;
  const Configuration& configuration_;
  std::vector<DsTunable> tunables_;
  std::int64_t stage_;
};

}  // namespace

Json with_values(const Json& user, const Configuration& configuration, DsUse use, std::int64_t ranks,
                 const std::string& source) {
  const Configuration complete = with_batch(user, configuration, ranks, source);
  Writing writing(user, complete, source);
  writing.change_what_is_there();
  writing.add_what_is_new();
  writing.set_train_batch_size(use, ranks);
  return writing.take();
}

}  // namespace krigtune
