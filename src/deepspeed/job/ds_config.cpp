// Reads the user's ds_config.json. space/well_known.h defines the names of keys and the values below them.
#include "deepspeed/job/ds_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

using Pointer = Json::json_pointer;

constexpr const char* kSequenceRanks = "sequence_parallel_size";  // of Ulysses

// Sections whose lists do not mean "try these". The stock autotuner excludes only the first and splits the others too.
constexpr std::array kListsByNature = {"/optimizer",
                                       "/scheduler",
                                       "/autotuning",
                                       "/compile/passes",
                                       "/elasticity",
                                       "/curriculum_learning",
                                       "/data_efficiency",
                                       "/compression_training",
                                       "/sparse_attention",
                                       "/comms_logger",
                                       "/torch_autocast",
                                       "/expert_parallel",
                                       "/tensor_parallel/partition_config",
                                       "/zero_optimization/leaf_module"};

[[noreturn]] void fail_at(const std::string& source, const std::string& pointer, const std::string& what,
                          const std::string& hint) {
  throw UserError(fmt::format("{}: {}: {}", source, pointer, what), hint);
}

// Returns the value as JSON, shortened, to be quoted in one line.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump();
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// DeepSpeed reads the file as hjson, with comments that begin with # or // or are in /* */. Returns the text with
// blanks for those that parse_json does not know.
std::string without_hjson_comments(std::string_view text) {
  std::string plain(text);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view two = text.substr(i, 2);
    const bool opens = !quoted && (text[i] == '#' || two == "//" || two == "/*");
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (opens) {
      const std::size_t end = two == "/*" ? text.find("*/", i + 2) : text.find('\n', i);
      const std::size_t after = end == std::string_view::npos ? text.size() : two == "/*" ? end + 2 : end;
      std::replace_if(
          plain.begin() + static_cast<std::ptrdiff_t>(i), plain.begin() + static_cast<std::ptrdiff_t>(after),
          [](char c) { return c != '\n'; }, ' ');
      i = after - 1;
    }
  }
  return plain;
}

// Returns the path from the root under which a nested key is known to people and to expressions.
std::string path_name(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

// A list of one word leaves nothing to choose: it is the list that the key wants.
bool is_one_word(const Json& list) { return list.size() == 1 && list.front().is_string() && list.front() != "auto"; }

bool is_word(const Json& value, const char* word) { return value.is_string() && value.get<std::string>() == word; }

space::Value whole_number(const space::WellKnownParameter& knob, const Json& json, const std::string& source,
                          const std::string& pointer) {
  // AutoTP accepts 0 and 1 for "off", MiCS 0 and -1.
  const std::int64_t least = knob.name == std::string_view(space::kTensorParallel) ? 0 : knob.smallest;
  const std::int64_t most = knob.deepspeed.largest;
  if (knob.name == std::string_view(space::kHybridShard) && json == -1) return std::int64_t{0};
  space::Value value = json.is_number() ? space::value_from_json(json, source) : space::Value(false);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= least && *number <= most) return value;
  const bool is_size = most == std::numeric_limits<std::int64_t>::max();
  fail_at(source, pointer, fmt::format("a whole number was expected, not {}", shown(json)),
          is_size ? fmt::format("write one from {} on, or \"auto\"", least)
                  : fmt::format("write one from {} to {}", least, most));
}

// Returns one value of a knob, of the same kind as its default.
space::Value knob_value(const space::WellKnownParameter& knob, const Json& json, const std::string& source,
                        const std::string& pointer) {
  if (std::holds_alternative<std::int64_t>(knob.default_value)) return whole_number(knob, json, source, pointer);
  if (std::holds_alternative<bool>(knob.default_value)) {
    if (json.is_boolean()) return json.get<bool>();
    fail_at(source, pointer, fmt::format("true or false was expected, not {}", shown(json)), "write true or false");
  }
  if (std::holds_alternative<double>(knob.default_value)) {
    if (json.is_number()) return space::value_from_json(json, source);
    fail_at(source, pointer, fmt::format("a number was expected, not {}", shown(json)), "write one, or \"auto\"");
  }
  const Json words = parse_json(knob.default_range, knob.name);
  if (std::find(words.begin(), words.end(), json) != words.end()) return json.get<std::string>();
  if (knob.deepspeed.is_offload) {
    fail_at(source, pointer, fmt::format("{} is not a place to offload to", shown(json)), "write none, cpu or nvme");
  }
  fail_at(source, pointer, fmt::format("{} is not one of its words", shown(json)),
          fmt::format("write one of {}", knob.default_range));
}

// Returns a list element under a key that krigtune does not know.
space::Value plain_value(const Json& json, const std::string& source, const std::string& pointer) {
  if (is_word(json, "auto")) fail_at(source, pointer, "\"auto\" within a list", "write values, or \"auto\" alone");
  return space::value_from_json(json, fmt::format("{}: {}", source, pointer));
}

class Walk {
 public:
  explicit Walk(const std::string& source) : source_(source) {
    for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
      for (std::string& spelling : spellings_of(knob)) keys_.emplace_back(std::move(spelling), &knob);
    }
  }

  void object(const Json& json, const Pointer& at, const std::string& path) {
    for (const auto& [key, value] : json.items()) {
      const Pointer here = at / key;
      const std::string pointer = here.to_string();
      if (value.is_null() || std::find(kListsByNature.begin(), kListsByNature.end(), pointer) != kListsByNature.end())
        continue;
      refuse_old_name(pointer, value);
      if (const space::WellKnownParameter* known = knob_at(pointer)) {
        add_knob(*known, value, pointer);
      } else if (value.is_object()) {
        object(value, here, path_name(path, key));
      } else if (contains_knobs(pointer)) {
        fail_at(source_, pointer, fmt::format("an object was expected, not {}", shown(value)), mend_of(pointer));
      } else if (value.is_array()) {
        if (pointer == "/train_batch_size") return refuse_batch_list();
        if (is_one_word(value)) continue;
        add_unknown_list(path_name(path, key), value, pointer);
      }
    }
  }

  std::vector<DsTunable> take() { return std::move(tunables_); }

 private:
  const space::WellKnownParameter* knob_at(const std::string& pointer) const {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const auto& key) { return key.first == pointer; });
    return found == keys_.end() ? nullptr : found->second;
  }

  bool contains_knobs(const std::string& pointer) const {
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const auto& key) { return key.first.rfind(pointer + "/", 0) == 0; });
  }

  void refuse_old_name(const std::string& pointer, const Json& value) const {
    for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
      if (pointer != knob.deepspeed.old_key) continue;
      fail_at(source_, pointer, "an outdated name, which conflicts with those of trials",
              value == true ? fmt::format(R"(write "{}": {{"device": "cpu"}})", knob.name) : "remove it");
    }
  }

  static std::string mend_of(const std::string& pointer) {
    if (pointer == "/zero_optimization") return R"(write {"stage": "all"} for every stage, {"stage": 2} for one)";
    return pointer.find("offload") == std::string::npos ? "write { ... }" : R"(write {"device": ["none", "cpu"]})";
  }

  [[noreturn]] void refuse_batch_list() const {
    fail_at(source_, "/train_batch_size", "the batch of a step is not tuned: it decides what the model learns",
            "write one number; micro-batch and accumulation are searched below it");
  }

  void add_knob(const space::WellKnownParameter& known, const Json& value, const std::string& pointer) {
    if (find_tunable(tunables_, known.name) != nullptr) {
      fail_at(source_, pointer, fmt::format("is set twice, also as {}", known.deepspeed.key + 1),
              "keep one of the two");
    }
    const bool is_all = is_word(value, "all") && known.name == std::string_view(space::kZeroStage);
    if (is_all) {
      add_list(known.name, &known, Json::array({0, 1, 2, 3}), pointer);
    } else if (value.is_array()) {
      add_list(known.name, &known, value, pointer);
    } else if (is_word(value, "auto")) {
      tunables_.push_back({known.name, pointer, DsSetting::kAuto, {}});
    } else {
      tunables_.push_back({known.name, pointer, DsSetting::kFixed, {knob_value(known, value, source_, pointer)}});
    }
  }

  void add_unknown_list(const std::string& name, const Json& list, const std::string& pointer) {
    if (const space::WellKnownParameter* taken = space::find_well_known(name)) {
      const std::string key = taken->deepspeed.key;
      fail_at(source_, pointer, "DeepSpeed knows no list of that name",
              key.empty() ? "remove it" : fmt::format("it reads {}", key));
    }
    add_list(name, nullptr, list, pointer);
  }

  void add_list(const std::string& name, const space::WellKnownParameter* known, const Json& list,
                const std::string& pointer) {
    if (list.empty()) fail_at(source_, pointer, "an empty list leaves nothing to try", "write values, or remove it");
    DsTunable tunable{name, pointer, DsSetting::kList, {}};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string at = fmt::format("{}/{}", pointer, i);
      space::Value value =
          known != nullptr ? knob_value(*known, list[i], source_, at) : plain_value(list[i], source_, at);
      const auto same = [&](const space::Value& other) { return space::same_value(value, other); };
      if (std::none_of(tunable.values.begin(), tunable.values.end(), same)) tunable.values.push_back(std::move(value));
    }
    const auto kind = [](const space::Value& value) {
      return space::is_number(value) ? std::size_t{1} : value.index();
    };
    const auto other = std::find_if(tunable.values.begin(), tunable.values.end(),
                                    [&](const space::Value& v) { return kind(v) != kind(tunable.values.front()); });
    if (other != tunable.values.end()) {
      fail_at(source_, pointer,
              fmt::format("'{}' is of another kind than '{}'", space::to_string(*other),
                          space::to_string(tunable.values.front())),
              "list numbers, texts, or true and false");
    }
    tunables_.push_back(std::move(tunable));
  }

  const std::string& source_;
  std::vector<std::pair<std::string, const space::WellKnownParameter*>> keys_;
  std::vector<DsTunable> tunables_;
};

}  // namespace

std::vector<std::string> spellings_of(const space::WellKnownParameter& knob) {
  std::vector<std::string> spellings;
  for (const char* key : {knob.deepspeed.key, knob.deepspeed.second_key}) {
    if (*key != '\0') spellings.emplace_back(key);
  }
  return spellings;
}

const DsTunable* find_tunable(const std::vector<DsTunable>& tunables, const std::string& name) {
  const auto found = std::find_if(tunables.begin(), tunables.end(), [&](const auto& t) { return t.name == name; });
  return found == tunables.end() ? nullptr : &*found;
}

Json read_ds_config(std::string_view text, const std::string& source) {
  Json config = parse_json(without_hjson_comments(text), source);
  const JsonObject root(config, source, "");  // refuses anything but an object
  tunables_of(config, source);                // refuses sections and values of the wrong kind
  return config;
}

Json load_ds_config(const std::filesystem::path& file) { return read_ds_config(read_text(file), file.string()); }

std::vector<DsTunable> tunables_of(const Json& config, const std::string& source) {
  Walk walk(source);
  walk.object(config, Pointer(), "");
  return walk.take();
}

std::string ds_config_text(const Json& config) { return config.dump(2) + "\n"; }

// Writes a configuration into the user's ds_config.json. A knob's row (space/well_known.cpp) says at which stages it is
// read, and what DeepSpeed asserts about its value.
namespace {

using Pointer = Json::json_pointer;

// The lowest stage that shards parameters. A knob that is read only there has no effect elsewhere.
constexpr std::int64_t kParameterStage = 3;

const space::DeepSpeedKnob& deepspeed_knob(const DsTunable& tunable) {
  static const space::DeepSpeedKnob kUnknown;  // read at every stage
  const space::WellKnownParameter* known = space::find_well_known(tunable.name);
  return known == nullptr ? kUnknown : known->deepspeed;
}

space::Value as_deepspeed_takes_it(const space::DeepSpeedKnob& knob, const space::Value& value) {
  const auto* elems = std::get_if<std::int64_t>(&value);
  const bool is_odd = knob.is_even && elems != nullptr && *elems % 2 != 0;
  return is_odd ? space::Value(*elems + 1) : value;
}

class Writing {
 public:
  Writing(const Json& user, const space::Configuration& configuration, const std::string& source)
      : config_(user),
        configuration_(configuration),
        tunables_(tunables_of(user, source)),
        stage_(configuration.integer(space::kZeroStage, number_in_file(tunables_, space::kZeroStage).value_or(0))) {
    config_.erase("autotuning");
  }

  void change_what_is_there() {
    for (const DsTunable& tunable : tunables_) {
      const space::Value* chosen = configuration_.find(tunable.name);
      const space::DeepSpeedKnob& knob = deepspeed_knob(tunable);
      const bool is_list = tunable.setting == DsSetting::kList;
      Json& place = config_[Pointer(tunable.pointer)];
      if (!is_read(knob) && knob.off && (is_list || configuration_.has(space::kZeroStage))) {
        place = space::to_json(*knob.off);
      } else if (chosen != nullptr && (is_list || takes_the_chosen(knob))) {
        place = space::to_json(as_deepspeed_takes_it(knob, *chosen));
      } else if (is_list) {
        place = space::to_json(tunable.values.front());
      }
    }
  }

  // Keys of the root come before those of sections.
  void add_what_is_new() {
    for (const bool in_section : {false, true}) {
      for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
        const std::string_view key = knob.deepspeed.key;
        if (!key.empty() && (key.rfind('/') > 0) == in_section) add(knob);
      }
    }
  }

  void set_train_batch_size(DsUse use, std::int64_t ranks) {
    const bool is_known = configuration_.has(space::kMicroBatch) && configuration_.has(space::kAccumulation);
    const bool is_auto = config_.contains("train_batch_size") && config_["train_batch_size"] == "auto";
    if (!is_known || (is_auto && use == DsUse::kResult)) return;
    if (use == DsUse::kTrial || tensor_parallel() > 1) {
      config_.erase("train_batch_size");
    } else {
      config_["train_batch_size"] = space::sequences_of_step(configuration_.integer(space::kMicroBatch, 1), ranks,
                                                             configuration_.integer(space::kAccumulation, 1));
    }
  }

  Json take() { return std::move(config_); }

 private:
  bool is_read(const space::DeepSpeedKnob& knob) const { return stage_ >= knob.first_stage; }

  // The file gets the chosen value, even at stage 0, where DeepSpeed reads no bucket. Below stage 3 a knob of stage 3
  // keeps the user's value, because a knob without effect has a canonical value that nobody chose.
  bool takes_the_chosen(const space::DeepSpeedKnob& knob) const {
    return is_read(knob) || (!knob.off && knob.first_stage < kParameterStage);
  }

  std::int64_t tensor_parallel() const {
    return configuration_.integer(space::kTensorParallel,
                                  number_in_file(tunables_, space::kTensorParallel).value_or(1));
  }

  void add(const space::WellKnownParameter& knob) {
    const space::Value* chosen = configuration_.find(knob.name);
    if (chosen == nullptr || find_tunable(tunables_, knob.name) != nullptr) return;
    if (!is_read(knob.deepspeed) || (knob.deepspeed.off && space::same_value(*chosen, *knob.deepspeed.off))) return;
    const Pointer key(knob.deepspeed.key);
    // Copies between pinned memory and the GPU overlap with the computation; DeepSpeed pins by default from 0.19.5 on.
    const bool is_new_offload = knob.deepspeed.is_offload && !config_.contains(key.parent_pointer());
    config_[key] = space::to_json(as_deepspeed_takes_it(knob.deepspeed, *chosen));
    if (is_new_offload) config_[key.parent_pointer() / "pin_memory"] = true;
  }

  Json config_;
  const space::Configuration& configuration_;
  std::vector<DsTunable> tunables_;
  std::int64_t stage_;
};

}  // namespace

Json with_values(const Json& user, const space::Configuration& configuration, DsUse use, const DsRanks& ranks,
                 const std::string& source) {
  const space::Configuration complete = with_batch(user, configuration, ranks, source);
  Writing writing(user, complete, source);
  writing.change_what_is_there();
  writing.add_what_is_new();
  writing.set_train_batch_size(use, counted_ranks(user, ranks, source));
  return writing.take();
}

// The batch of a DeepSpeed job follows DeepSpeed's rule (runtime/config.py, _set_batch_related_parameters):
//
//   train_batch_size = micro_batch * gradient_accumulation_steps * ranks / sequence_parallel_size
//
// with all ranks of the job if the script passes no mpu, although the ranks of one tensor-parallel group must get the
// same sequences. The sequences that a step really learns from are those of ranks / tensor_parallel replicas.
namespace {

[[noreturn]] void refuse(const std::string& source, const std::string& what, const std::string& hint) {
  throw UserError(fmt::format("{}: /train_batch_size: {}", source, what), hint);
}

// `ranks`: without those that share a sequence.
std::int64_t replicas(std::int64_t ranks, const space::Configuration& split, const std::string& source) {
  const std::optional<std::int64_t> dp = space::data_parallel_ranks(ranks, split);
  if (dp && *dp >= 1) return *dp;
  throw UserError(fmt::format("{}: /tensor_parallel/autotp_size: {} does not divide the {}", source,
                              space::ranks_of_replica(split), counted(ranks, "rank")),
                  "choose a divisor of the ranks");
}

// AutoTP accepts 0 and 1 for "off".
std::int64_t tensor_ranks(const std::vector<DsTunable>& tunables) {
  return std::max<std::int64_t>(1, number_in_file(tunables, space::kTensorParallel).value_or(1));
}

// Returns the missing factor: batch = factor * known * groups.
std::int64_t share(std::int64_t batch, std::int64_t known, std::int64_t groups, const std::string& known_as,
                   const std::string& source) {
  if (const std::optional<std::int64_t> factor = space::accumulation_steps(batch, known, groups)) return *factor;
  refuse(source,
         fmt::format("{} a step cannot be made of {} on {}", counted(batch, "sequence"), known_as,
                     counted(groups, "rank")),
         "choose numbers whose product it is");
}

std::string micro_batches(std::int64_t of) { return fmt::format("micro-batches of {}", of); }
std::string micro_steps(std::int64_t count) { return counted(count, "micro-step"); }

// Converts a batch that DeepSpeed counts over all ranks to the sequences from which the replicas of `tensor` ranks
// learn.
std::int64_t counted_once(std::int64_t batch, std::int64_t tensor, const std::string& source) {
  return share(batch, 1, tensor, "equal parts for tensor parallelism", source);
}

std::optional<std::int64_t> chosen(const space::Configuration& configuration, const char* name) {
  return configuration.has(name) ? std::optional(configuration.integer(name, 1)) : std::nullopt;
}

bool is_auto(const std::vector<DsTunable>& tunables, const char* name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  return tunable != nullptr && tunable->setting == DsSetting::kAuto;
}

// Returns a fixed number; empty for a list and for "auto".
std::optional<std::int64_t> fixed(const std::vector<DsTunable>& tunables, const char* name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  return tunable != nullptr && tunable->setting == DsSetting::kFixed ? number_in_file(tunables, name) : std::nullopt;
}

void check_identity(std::int64_t batch, const std::vector<DsTunable>& tunables, std::int64_t ranks,
                    const std::string& source) {
  const std::optional<std::int64_t> micro = fixed(tunables, space::kMicroBatch);
  const std::optional<std::int64_t> accumulation = fixed(tunables, space::kAccumulation);
  if (micro && accumulation && space::sequences_of_step(*micro, ranks, *accumulation) != batch) {
    refuse(source,
           fmt::format("{} is not train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} x {} ranks", batch,
                       *micro, *accumulation, ranks),
           "fix one of them, or start it on another number of ranks");
  }
  if (micro) share(batch, *micro, ranks, micro_batches(*micro), source);
  if (accumulation) share(batch, *accumulation, ranks, micro_steps(*accumulation), source);
}

}  // namespace

std::optional<std::int64_t> number_in_file(const std::vector<DsTunable>& tunables, const std::string& name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  if (tunable == nullptr || tunable->values.empty()) return std::nullopt;
  return std::get<std::int64_t>(tunable->values.front());
}

std::optional<std::int64_t> written_train_batch_size(const Json& config, const std::string& source) {
  const auto found = config.find("train_batch_size");
  if (found == config.end() || found->is_null() || *found == "auto") return std::nullopt;
  const space::Value value = found->is_number() ? space::value_from_json(*found, source) : space::Value(false);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= 1) return *number;
  refuse(source, fmt::format("a whole number was expected, not {}", found->dump()), "write one from 1 on");
}

std::int64_t sequence_ranks_of(const Json& config, const DsRanks& ranks, const std::string& source) {
  const std::string key = fmt::format("/{}", kSequenceRanks);
  const auto found = config.find(kSequenceRanks);
  if (found == config.end() || found->is_null()) return ranks.sharing;
  const space::Value value = found->is_number() ? space::value_from_json(*found, source) : space::Value(false);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 1)
    fail_at(source, key, fmt::format("a whole number was expected, not {}", shown(*found)), "write one from 1 on");
  if (ranks.sharing == 1 || ranks.sharing == *number) return *number;
  fail_at(source, key, fmt::format("{} ranks share a sequence, but {} in the command", *number, ranks.sharing),
          "write the same number in both, or leave it out of the file");
}

std::int64_t counted_ranks(const Json& config, const DsRanks& ranks, const std::string& source) {
  const std::int64_t each = sequence_ranks_of(config, ranks, source);
  if (const auto counted = space::data_parallel_ranks(ranks.all, {{space::kContextParallel, each}})) return *counted;
  fail_at(source, fmt::format("/{}", kSequenceRanks),
          fmt::format("{} ranks cannot share sequences by {}", ranks.all, each), "choose a divisor of the ranks");
}

std::optional<std::int64_t> train_batch_size_of(const Json& config, const DsRanks& all_ranks,
                                                const std::string& source) {
  const std::vector<DsTunable> tunables = tunables_of(config, source);
  const std::int64_t ranks = counted_ranks(config, all_ranks, source);
  const std::int64_t tensor = tensor_ranks(tunables);
  const std::int64_t groups = replicas(ranks, {{space::kTensorParallel, tensor}}, source);
  if (const std::optional<std::int64_t> batch = written_train_batch_size(config, source)) {
    check_identity(*batch, tunables, ranks, source);
    return counted_once(*batch, tensor, source);
  }
  const std::optional<std::int64_t> micro = fixed(tunables, space::kMicroBatch);
  const bool is_open =
      find_tunable(tunables, space::kAccumulation) != nullptr && !fixed(tunables, space::kAccumulation);
  if (!micro || is_open) return std::nullopt;
  return space::sequences_of_step(*micro, groups, fixed(tunables, space::kAccumulation).value_or(1));
}

space::Configuration with_batch(const Json& user, const space::Configuration& configuration, const DsRanks& all_ranks,
                                const std::string& source) {
  const std::vector<DsTunable> tunables = tunables_of(user, source);
  const std::int64_t ranks = counted_ranks(user, all_ranks, source);
  std::optional<std::int64_t> micro = chosen(configuration, space::kMicroBatch);
  std::optional<std::int64_t> accumulation = chosen(configuration, space::kAccumulation);
  if (micro && accumulation) return configuration;
  const std::int64_t tensor = configuration.integer(space::kTensorParallel, tensor_ranks(tunables));
  const std::int64_t stages = configuration.integer(space::kPipelineParallel, 1);
  const std::int64_t groups =
      replicas(ranks, {{space::kTensorParallel, tensor}, {space::kPipelineParallel, stages}}, source);
  std::optional<std::int64_t> batch = written_train_batch_size(user, source);
  if (batch) batch = counted_once(*batch, tensor_ranks(tunables), source);

  const std::optional<std::int64_t> file_accumulation = number_in_file(tunables, space::kAccumulation);
  if (!micro && !is_auto(tunables, space::kMicroBatch)) {
    const std::optional<std::int64_t> in_file = number_in_file(tunables, space::kMicroBatch);
    const bool follows = batch && (accumulation || !in_file);
    const std::int64_t steps = accumulation.value_or(file_accumulation.value_or(1));
    micro = follows ? std::optional(share(*batch, steps, groups, micro_steps(steps), source)) : in_file;
  }
  if (!accumulation && !is_auto(tunables, space::kAccumulation)) {
    accumulation = batch && micro ? std::optional(share(*batch, *micro, groups, micro_batches(*micro), source))
                   : micro        ? std::optional(file_accumulation.value_or(1))
                                  : file_accumulation;
  }
  space::Configuration complete = configuration;
  if (micro) complete.set(space::kMicroBatch, *micro);
  if (accumulation) complete.set(space::kAccumulation, *accumulation);
  return complete;
}

// Base64 with the URL-safe alphabet (RFC 4648, section 5) and padding, which Python's base64.urlsafe_b64decode reads.
// DeepSpeed uses that for a configuration that is not a path (deepspeed/runtime/config.py).
namespace {

std::string base64url(const std::string& text) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::size_t kBytes = 3, kDigits = 4;
  std::string result;
  for (std::size_t begin = 0; begin < text.size(); begin += kBytes) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      const auto byte = begin + i < text.size() ? static_cast<unsigned char>(text[begin + i]) : 0U;
      bits = bits << 8 | byte;
    }
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      const bool is_there = digit == 0 || begin + digit - 1 < text.size();
      result += is_there ? kAlphabet[bits >> 6 * (kDigits - 1 - digit) & 63U] : '=';
    }
  }
  return result;
}

}  // namespace

std::string ds_config_base64(const Json& config) {
  return base64url(config.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace krigtune::deepspeed
