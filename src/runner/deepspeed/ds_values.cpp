// Writes a configuration into the user's ds_config.json. Which stage reads a knob, and what DeepSpeed asserts of its
// value, stands in the knob's row (space/well_known.cpp).
#include <string_view>

#include "ds_knobs.h"
#include "krigtune/space/batch.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

using Pointer = Json::json_pointer;

// The lowest stage that shards parameters: what is read there alone means nothing elsewhere.
constexpr std::int64_t kParameterStage = 3;

const DeepSpeedKnob& deepspeed_knob(const DsTunable& tunable) {
  static const DeepSpeedKnob kUnknown;  // read at every stage
  const WellKnownParameter* known = find_well_known(tunable.name);
  return known == nullptr ? kUnknown : known->deepspeed;
}

Value as_deepspeed_takes_it(const DeepSpeedKnob& knob, const Value& value) {
  const auto* elems = std::get_if<std::int64_t>(&value);
  const bool is_odd = knob.is_even && elems != nullptr && *elems % 2 != 0;
  return is_odd ? Value(*elems + 1) : value;
}

class Writing {
 public:
  Writing(const Json& user, const Configuration& configuration, const std::string& source)
      : config_(user),
        configuration_(configuration),
        tunables_(tunables_of(user, source)),
        stage_(configuration.integer(kZeroStage, number_in_file(tunables_, kZeroStage).value_or(0))) {
    config_.erase("autotuning");
  }

  void change_what_is_there() {
    for (const DsTunable& tunable : tunables_) {
      const Value* chosen = configuration_.find(tunable.name);
      const DeepSpeedKnob& knob = deepspeed_knob(tunable);
      const bool is_list = tunable.setting == DsSetting::kList;
      Json& place = config_[Pointer(tunable.pointer)];
      if (!is_read(knob) && knob.off && (is_list || configuration_.has(kZeroStage))) {
        place = to_json(*knob.off);
      } else if (chosen != nullptr && (is_list || takes_the_chosen(knob))) {
        place = to_json(as_deepspeed_takes_it(knob, *chosen));
      } else if (is_list) {
        place = to_json(tunable.values.front());
      }
    }
  }

  // Keys of the file itself before those of its sections.
  void add_what_is_new() {
    for (const bool in_section : {false, true}) {
      for (const WellKnownParameter& knob : well_known_parameters()) {
        const std::string_view key = knob.deepspeed.key;
        if (!key.empty() && (key.rfind('/') > 0) == in_section) add(knob);
      }
    }
  }

  void set_train_batch_size(DsUse use, std::int64_t ranks) {
    const bool is_known = configuration_.has(kMicroBatch) && configuration_.has(kAccumulation);
    const bool is_auto = config_.contains("train_batch_size") && config_["train_batch_size"] == "auto";
    if (!is_known || (is_auto && use == DsUse::kResult)) return;
    if (use == DsUse::kTrial || tensor_parallel() > 1) {
      config_.erase("train_batch_size");
    } else {
      config_["train_batch_size"] =
          sequences_of_step(configuration_.integer(kMicroBatch, 1), ranks, configuration_.integer(kAccumulation, 1));
    }
  }

  Json take() { return std::move(config_); }

 private:
  bool is_read(const DeepSpeedKnob& knob) const { return stage_ >= knob.first_stage; }

  // What stands in the file is what was chosen, at stage 0 too, where DeepSpeed reads none of the buckets. A value of
  // stage 3 stays the user's below it: a knob without effect has a canonical value that nobody chose.
  bool takes_the_chosen(const DeepSpeedKnob& knob) const {
    return is_read(knob) || (!knob.off && knob.first_stage < kParameterStage);
  }

  std::int64_t tensor_parallel() const {
    return configuration_.integer(kTensorParallel, number_in_file(tunables_, kTensorParallel).value_or(1));
  }

  void add(const WellKnownParameter& knob) {
    const Value* chosen = configuration_.find(knob.name);
    if (chosen == nullptr || find_tunable(tunables_, knob.name) != nullptr) return;
    if (!is_read(knob.deepspeed) || (knob.deepspeed.off && same_value(*chosen, *knob.deepspeed.off))) return;
    const Pointer key(knob.deepspeed.key);
    // Copies between pinned memory and the GPU run beside the computation; from 0.19.5 on it is DeepSpeed's default.
    const bool is_new_offload = knob.deepspeed.is_offload && !config_.contains(key.parent_pointer());
    config_[key] = to_json(as_deepspeed_takes_it(knob.deepspeed, *chosen));
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
