// Reads the user's ds_config.json. Names of keys, and what stands under them, are those of space/well_known.h.
#include "krigtune/runner/deepspeed/ds_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ds_knobs.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

using Pointer = Json::json_pointer;

// Sections whose lists say something else than "try these". The stock autotuner, which exempts the first alone, takes
// the others apart too.
constexpr std::array kListsByNature = {"/optimizer",
                                       "/scheduler",
                                       "/autotuning",
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

// As JSON, cut where it is long: it is quoted in one line.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump();
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// Where the first comment of hjson begins, outside of strings; npos: there is none.
std::size_t first_comment(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view two = text.substr(i, 2);
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '#' || two == "//" || two == "/*"))
      return i;
  }
  return std::string_view::npos;
}

void refuse_hjson(std::string_view text, const std::string& source) {
  if (Json::accept(text)) return;
  const std::size_t at = first_comment(text);
  if (at != std::string_view::npos) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    throw UserError(fmt::format("{}: line {}: a comment, which the readers of Hugging Face do not take", source, line),
                    "remove it: the file goes to your script as JSON");
  }
  parse_json(text, source);  // says what is wrong, unless that is a trailing comma
  throw UserError(fmt::format("{}: a comma before a closing bracket, which is no JSON", source), "remove it");
}

// One object under one name: the path from the root, for people and for expressions.
std::string path_name(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

bool is_word(const Json& value, const char* word) { return value.is_string() && value.get<std::string>() == word; }

Value whole_number(const WellKnownParameter& knob, const Json& json, const std::string& source,
                   const std::string& pointer) {
  // AutoTP takes 0 and 1 for "off".
  const std::int64_t least = knob.name == std::string_view(kTensorParallel) ? 0 : knob.smallest;
  const std::int64_t most = knob.deepspeed.largest;
  Value value = json.is_number() ? value_from_json(json, source) : Value(false);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= least && *number <= most) return value;
  const bool is_size = most == std::numeric_limits<std::int64_t>::max();
  fail_at(source, pointer, fmt::format("a whole number was expected, not {}", shown(json)),
          is_size ? fmt::format("write one from {} on, or \"auto\"", least)
                  : fmt::format("write one from {} to {}", least, most));
}

// One value of a knob, of the kind that its default has.
Value knob_value(const WellKnownParameter& knob, const Json& json, const std::string& source,
                 const std::string& pointer) {
  if (std::holds_alternative<std::int64_t>(knob.default_value)) return whole_number(knob, json, source, pointer);
  if (std::holds_alternative<bool>(knob.default_value)) {
    if (json.is_boolean()) return json.get<bool>();
    fail_at(source, pointer, fmt::format("true or false was expected, not {}", shown(json)), "write true or false");
  }
  if (std::holds_alternative<double>(knob.default_value)) {
    if (json.is_number()) return value_from_json(json, source);
    fail_at(source, pointer, fmt::format("a number was expected, not {}", shown(json)), "write one, or \"auto\"");
  }
  const Json words = parse_json(knob.default_range, knob.name);
  if (std::find(words.begin(), words.end(), json) != words.end()) return json.get<std::string>();
  if (knob.deepspeed.is_offload) {
    fail_at(source, pointer, fmt::format("{} is no place to offload to", shown(json)), "write none, cpu or nvme");
  }
  fail_at(source, pointer, fmt::format("{} is none of its words", shown(json)),
          fmt::format("write one of {}", knob.default_range));
}

// A value of a list under a key that krigtune does not know.
Value plain_value(const Json& json, const std::string& source, const std::string& pointer) {
  if (is_word(json, "auto")) fail_at(source, pointer, "\"auto\" within a list", "write values, or \"auto\" alone");
  return value_from_json(json, fmt::format("{}: {}", source, pointer));
}

class Walk {
 public:
  explicit Walk(const std::string& source) : source_(source) {
    for (const WellKnownParameter& knob : well_known_parameters()) {
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
      if (const WellKnownParameter* known = knob_at(pointer)) {
        add_knob(*known, value, pointer);
      } else if (value.is_object()) {
        object(value, here, path_name(path, key));
      } else if (holds_knobs(pointer)) {
        fail_at(source_, pointer, fmt::format("an object was expected, not {}", shown(value)), mend_of(pointer));
      } else if (value.is_array()) {
        if (pointer == "/train_batch_size") return refuse_batch_list();
        add_unknown_list(path_name(path, key), value, pointer);
      }
    }
  }

  std::vector<DsTunable> take() { return std::move(tunables_); }

 private:
  const WellKnownParameter* knob_at(const std::string& pointer) const {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const auto& key) { return key.first == pointer; });
    return found == keys_.end() ? nullptr : found->second;
  }

  bool holds_knobs(const std::string& pointer) const {
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const auto& key) { return key.first.rfind(pointer + "/", 0) == 0; });
  }

  void refuse_old_name(const std::string& pointer, const Json& value) const {
    for (const WellKnownParameter& knob : well_known_parameters()) {
      if (pointer != knob.deepspeed.old_key) continue;
      fail_at(source_, pointer, "a name of old, which trials cannot stand beside",
              value == true ? fmt::format(R"(write "{}": {{"device": "cpu"}})", knob.name) : "remove it");
    }
  }

  static std::string mend_of(const std::string& pointer) {
    if (pointer == "/zero_optimization") return R"(write {"stage": "all"} for every stage, {"stage": 2} for one)";
    return pointer.find("offload") == std::string::npos ? "write { ... }" : R"(write {"device": ["none", "cpu"]})";
  }

  [[noreturn]] void refuse_batch_list() const {
    fail_at(source_, "/train_batch_size", "the batch of a step is no tunable: it decides what the model learns",
            "write one number; micro-batch and accumulation are searched below it");
  }

  void add_knob(const WellKnownParameter& known, const Json& value, const std::string& pointer) {
    if (find_tunable(tunables_, known.name) != nullptr) {
      fail_at(source_, pointer, fmt::format("stands there a second time, as {}", known.deepspeed.key + 1),
              "keep one of the two");
    }
    const bool is_all = is_word(value, "all") && known.name == std::string_view(kZeroStage);
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
    if (const WellKnownParameter* taken = find_well_known(name)) {
      const std::string key = taken->deepspeed.key;
      fail_at(source_, pointer, "DeepSpeed knows no list of that name",
              key.empty() ? "remove it" : fmt::format("it reads {}", key));
    }
    add_list(name, nullptr, list, pointer);
  }

  void add_list(const std::string& name, const WellKnownParameter* known, const Json& list,
                const std::string& pointer) {
    if (list.empty()) fail_at(source_, pointer, "an empty list leaves nothing to try", "write values, or remove it");
    DsTunable tunable{name, pointer, DsSetting::kList, {}};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string at = fmt::format("{}/{}", pointer, i);
      Value value = known != nullptr ? knob_value(*known, list[i], source_, at) : plain_value(list[i], source_, at);
      const auto same = [&](const Value& other) { return same_value(value, other); };
      if (std::none_of(tunable.values.begin(), tunable.values.end(), same)) tunable.values.push_back(std::move(value));
    }
    const auto kind = [](const Value& value) { return is_number(value) ? std::size_t{1} : value.index(); };
    const auto other = std::find_if(tunable.values.begin(), tunable.values.end(),
                                    [&](const Value& v) { return kind(v) != kind(tunable.values.front()); });
    if (other != tunable.values.end()) {
      fail_at(source_, pointer,
              fmt::format("'{}' is of another kind than '{}'", to_string(*other), to_string(tunable.values.front())),
              "list numbers, texts, or true and false");
    }
    tunables_.push_back(std::move(tunable));
  }

  const std::string& source_;
  std::vector<std::pair<std::string, const WellKnownParameter*>> keys_;
  std::vector<DsTunable> tunables_;
};

}  // namespace

std::vector<std::string> spellings_of(const WellKnownParameter& knob) {
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
  refuse_hjson(text, source);
  Json config = parse_json(text, source);
  const JsonObject root(config, source, "");  // refuses what is none
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

}  // namespace krigtune
