// The command of a trial is the user's command with placeholders for the values that vary; the command that trains has
// the values themselves. Both are written through the same places.
#include "jobs/recipe/rewriting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/command_writer.h"
#include "jobs/recipe/places.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// Steps in addition to the measured ones: differences need one more, and a trial that ends itself may be late.
constexpr std::int64_t kSpareSteps = 2;

constexpr const char* kNotKept =
    "the sequences of a step are not known, so they are not kept: they vary with micro_batch";

// Returns whether the place expresses the parameter's values by true and false.
bool is_yes_or_no(const Place& place) {
  return !place.values.empty() && std::all_of(place.values.begin(), place.values.end(), [](const auto& entry) {
    return entry.second == "true" || entry.second == "false";
  });
}

bool says_itself(const Place& place) {
  return std::all_of(place.values.begin(), place.values.end(),
                     [](const auto& entry) { return space::to_string(entry.first) == entry.second; });
}

std::string as_operand(const space::Value& value) {
  const std::string text = space::to_string(value);
  return std::holds_alternative<std::string>(value) ? fmt::format("'{}'", text) : text;
}

// Returns "{zero_stage == 3}": an expression that is true for the values that the place expresses by true.
std::string yes_or_no(const std::string& parameter, const Place& place) {
  Texts conditions;
  for (const auto& [value, text] : place.values) {
    if (text == "true") conditions.push_back(fmt::format("{} == {}", parameter, as_operand(value)));
  }
  return fmt::format("{{{}}}", join(conditions, " || "));
}

// Returns the text with a placeholder for a parameter that varies; empty if no such text can express it.
std::optional<std::string> varying_text(const std::string& parameter, const Place& place) {
  if (says_itself(place)) return placeholder_of(parameter, place);
  if (is_yes_or_no(place)) return yes_or_no(parameter, place);
  return std::nullopt;
}

using KeyTexts = std::vector<std::pair<std::string, std::string>>;
using FileKeys = std::map<std::size_t, KeyTexts>;  // by the file's position among the command's

void set_key(const RecipeJob& job, const JobFile* file, const std::string& key, const std::string& text,
             FileKeys& keys) {
  if (file != nullptr && file->can_be_copied())
    keys[static_cast<std::size_t>(file - job.files.data())].emplace_back(key, text);
}

// Writes the text to those of the flags and keys that the command has.
void say_where_it_is(const Place& place, const Texts& flags, const Texts& file_keys, const std::string& text,
                     const RecipeJob& job, CommandWriter& words, FileKeys& keys) {
  const Region region = region_of(job.command, place.of_launcher);
  for (const std::string& flag : flags) {
    if (occurrences(job.command.argv, region.begin, region.end, flag).empty()) continue;
    words.set_flag({flag}, place.of_launcher, text);
  }
  for (const std::string& key : file_keys) {
    const JobFile* file = job.file(place.file, key);
    if (file != nullptr && file->values.contains(key)) set_key(job, file, key, text, keys);
  }
}

// Writes the text into the command's words or into a file that they name, and wherever else they state the same.
// `size`: the text of Place::size_flags. Returns false for a place in the environment.
bool say_in_command(const Place& place, const std::string& text, const std::string& size, const RecipeJob& job,
                    CommandWriter& words, FileKeys& keys) {
  for (const std::string& flag : place.quotient_flags) words.remove(flag, place.of_launcher);
  if (!place.flags.empty()) {
    words.set_flag(place.flags, place.of_launcher, text);
  } else if (!place.override_key.empty()) {
    words.set_override(place.override_key, text);
  } else if (!place.tail.empty()) {
    words.set_tail(place.tail, text);
  } else if (place.env.empty()) {
    set_key(job, job.file(place.file, place.key), place.key, text, keys);
  } else {
    return false;
  }
  say_where_it_is(place, place.copy_flags, place.copy_keys, text, job, words, keys);
  say_where_it_is(place, place.size_flags, place.size_keys, size, job, words, keys);
  return true;
}

// Returns a value in JSON that is a word of the command, and creates missing keys.
Json& at_key(Json& json, const std::string& dotted) {
  Json* at = &json;
  std::size_t begin = 0;
  for (std::size_t dot = dotted.find('.'); dot != std::string::npos; dot = dotted.find('.', begin)) {
    at = &(*at)[dotted.substr(begin, dot - begin)];
    begin = dot + 1;
  }
  return (*at)[dotted.substr(begin)];
}

// Returns JSON text with placeholders without quotes and with all other braces doubled.
std::string json_with_placeholders(Json json, const KeyTexts& keys) {
  const auto mark = [](std::size_t i) { return fmt::format("@@{}@@", i); };
  for (std::size_t i = 0; i < keys.size(); ++i) at_key(json, keys[i].first) = mark(i);
  std::string text = with_escaped_braces(json.dump());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string quoted = fmt::format("\"{}\"", mark(i));
    text.replace(text.find(quoted), quoted.size(), keys[i].second);
  }
  return text;
}

std::string json_with_values(Json json, const KeyTexts& keys) {
  for (const auto& [key, value] : keys) {
    at_key(json, key) = space::to_json(space::value_from_text(value));
  }
  return json.dump();
}

std::string value_of_word(const RecipeJob& job, const JobFile& file) {
  const std::string& word = job.command.argv[file.word];
  return file.is_joined ? word.substr(word.find('=') + 1) : word;
}

const Place& place_that_says(const Recipe& recipe, const RecipeJob& job, const std::string& name) {
  const RecipeValue* value = recipe.find(name);
  if (value == nullptr) {
    throw UserError(
        fmt::format("the recipe {} does not know the parameter {}", recipe.name, name),
        fmt::format("krigtune recipes {} lists those that it knows; --vary names a flag for others", recipe.name));
  }
  const Place* place = written_place(*value, job);
  if (place == nullptr) {
    throw UserError(fmt::format("{} cannot be changed in this command", name),
                    fmt::format("leave it out of what varies; krigtune recipes {} shows where it is set", recipe.name));
  }
  return *place;
}

// Writes the runner's block of a session.
class TrialWriter {
 public:
  TrialWriter(const Recipe& recipe, const RecipeJob& job, const Texts& varied)
      : recipe_(recipe), job_(job), varied_(varied), own_(own_values(recipe, job)), words_(recipe, job, true) {}

  RunnerBlock write() {
    remove();
    add();
    for (const std::string& name : varied_) vary(name);
    keep_batch();
    if (!flags_.empty()) words_.add("{flags}", flags_of_launcher_);
    write_files();
    return {block(), remarks_};
  }

 private:
  bool varies(const char* name) const { return is_one_of(std::string_view(name), varied_); }

  void remove() {
    Texts gone;
    for (const std::string& flag : recipe_.remove) {
      for (const std::string& word : words_.remove(flag, false)) gone.push_back(word);
    }
    if (!gone.empty()) remarks_.push_back("trials run without " + shell_line(gone));
  }

  std::string with_steps(std::string text) const {
    const std::string name = "{steps}";
    const std::int64_t steps = recipe_.warmup_steps + recipe_.measure_steps + kSpareSteps;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), std::to_string(steps));
    }
    return text;
  }

  void add() {
    Texts added;
    for (const RecipeWords& one : recipe_.add) {
      if (!applies(one.where, job_)) continue;
      for (const std::string& word : one.words) added.push_back(with_steps(word));
      for (const FlagWords& flag : flags_in(one.words)) {
        if (const auto word = override_in(flag.flag, recipe_.override_prefix)) {
          words_.set_override(word->key, with_steps(word->value));
        } else if (flag.value) {
          words_.set_flag({flag.flag}, false, with_steps(*flag.value));
        } else {
          words_.set_switch(flag.flag, false);
        }
      }
    }
    if (!added.empty()) remarks_.push_back("trials run with " + shell_line(added));
    for (const RecipeKey& key : recipe_.set) {
      if (!applies(key.where, job_)) continue;
      set_key(job_, job_.file(key.file, key.key), key.key, with_steps(key.value), keys_);
    }
  }

  void vary(const std::string& name) {
    const Place& place = place_that_says(recipe_, job_, name);
    if (is_one_of(name, own_.unknown)) {
      throw UserError(
          fmt::format("{} is in the command in a form that the recipe {} does not know", name, recipe_.name),
          "leave it out of what varies");
    }
    if (!place.words.empty()) return vary_words(name, place);
    const std::optional<std::string> text = varying_text(name, place);
    if (text) return say(place, *text, size_placeholder_of(name));
    if (place.flags.empty() && place.override_key.empty() && place.tail.empty()) refuse_words(name, place);
    vary_mapped(name, place);
  }

  void say(const Place& place, const std::string& text, const std::string& size = "") {
    if (!say_in_command(place, text, size, job_, words_, keys_)) env_[place.env] = text;
  }

  // Keeps the size of groups of data-parallel ranks, whose number varies.
  void keep_groups() {
    for (const RecipeValue& parameter : recipe_.parameters) {
      const Place* place = varies(parameter.name.c_str()) ? nullptr : written_place(parameter, job_);
      const space::Value* own = own_.configuration.find(parameter.name);
      if (place == nullptr || !place->is_groups || own == nullptr) continue;
      const std::string size = space::to_string(*own);
      if (size == "0")
        say_where_it_is(*place, place->size_flags, place->size_keys, "{dp}", job_, words_, keys_);
      else
        say(*place, fmt::format("{{dp/{}}}", size), size);
    }
  }

  // For the value that the command has now, the user's own words are used.
  void vary_words(const std::string& name, const Place& place) {
    Texts own_words;
    for (const std::string& flag : flags_of(place)) {
      for (const std::string& word : words_.remove(flag, place.of_launcher)) own_words.push_back(word);
    }
    const space::Value* own = own_.configuration.find(name);
    for (const auto& [value, words] : place.words) {
      const bool is_own = own != nullptr && space::same_value(value, *own) && !own_words.empty();
      flags_[name][space::to_string(value)] = is_own ? own_words : words;
    }
    flags_of_launcher_ = flags_of_launcher_ || place.of_launcher;
  }

  void vary_mapped(const std::string& name, const Place& place) {
    for (const std::string& flag : place.flags) words_.remove(flag, place.of_launcher);
    if (!place.override_key.empty()) words_.remove(place.override_key + "=", false);
    for (const auto& [value, text] : place.values)
      flags_[name][space::to_string(value)] = words_for(place, text, recipe_.override_prefix);
    flags_of_launcher_ = flags_of_launcher_ || place.of_launcher;
  }

  // A key of a file or a variable takes a text with placeholders, and no expression yields one of several words.
  [[noreturn]] static void refuse_words(const std::string& name, const Place& place) {
    throw UserError(fmt::format("{} cannot vary: {} takes words that no expression gives", name,
                                place.env.empty() ? "the key " + place.key : "the variable " + place.env),
                    "leave it out of what varies");
  }

  // Keeps the batch while micro-batch or parallelism vary.
  void keep_batch() {
    const bool splits = std::ranges::any_of(space::rank_divisors(), [&](const char* name) { return varies(name); });
    const bool moves = varies(space::kMicroBatch) || splits;
    if (const Place* place = splits ? written_place(recipe_.data_parallel, job_) : nullptr) {
      say(*place, "{dp}");
    }
    if (splits) keep_groups();
    const bool batch_varies = varies(space::kAccumulation);
    if (!moves && !batch_varies) return;
    if (!recipe_.train_batch_size.places.empty()) write_batch(batch_varies);
    const RecipeValue* steps = recipe_.find(space::kAccumulation);
    const Place* place = steps == nullptr ? nullptr : written_place(*steps, job_);
    if (!own_.train_batch_size) {
      const bool is_open = place == nullptr || !own_.configuration.has(space::kAccumulation);
      if (is_open && recipe_.train_batch_size.places.empty()) remarks_.emplace_back(kNotKept);
      return;
    }
    if (place != nullptr && !batch_varies && own_.configuration.has(space::kMicroBatch))
      say(*place, placeholder_of(space::kAccumulation, *place));
  }

  void write_batch(bool varies) {
    const Place* place = written_place(recipe_.train_batch_size, job_);
    if (place == nullptr) return;
    const Reading said = read_place(*place, job_);
    const std::optional<std::int64_t> number = said.value ? space::integer_of(*said.value) : std::nullopt;
    if (said.is_said && number.value_or(0) >= 1 && !varies) return;
    if (varies) return say(*place, "{micro_batch*dp*gradient_accumulation_steps}");
    if (own_.train_batch_size) return say(*place, std::to_string(*own_.train_batch_size));
    remarks_.emplace_back(kNotKept);
  }

  void write_files() {
    for (const auto& [position, keys] : keys_) {
      const JobFile& file = job_.files[position];
      if (file.path.empty()) {
        words_.set_value_word(file, json_with_placeholders(parse_json(value_of_word(job_, file), file.name), keys));
        continue;
      }
      Json& set = set_[file.path];
      for (const auto& [key, value] : keys) set[file.key_to_set(key)] = value;
      const std::string base = std::filesystem::path(file.path).filename().string();
      words_.set_value_word(file, "{dir}/" + base);
      remarks_.push_back(fmt::format("trials read a copy of {} with other values", file.path));
    }
  }

  // A fixed batch is written as a number, because a session without a workload has no name for it.
  Json kept_checks() const {
    const std::string batch = "{train_batch_size}";
    Json kept = Json::array();
    for (Json check : recipe_.checks) {
      if (check.at("equals") == batch) {
        if (!own_.train_batch_size || varies(space::kAccumulation)) continue;
        check["equals"] = std::to_string(*own_.train_batch_size);
      }
      if (has_values(check.at("equals").get<std::string>())) kept.push_back(std::move(check));
    }
    return kept;
  }

  // Of a session without a workload, too.
  Json kept_measure() const {
    const std::string batch = "train_batch_size";
    Json kept = recipe_.measure;
    for (auto& [name, metric] : kept.items()) {
      if (!metric.contains("times") || !metric["times"].is_string()) continue;
      std::string times = metric["times"].get<std::string>();
      const std::size_t at = times.find(batch);
      if (at == std::string::npos || !own_.train_batch_size) continue;
      metric["times"] = times.replace(at, batch.size(), std::to_string(*own_.train_batch_size));
    }
    return kept;
  }

  // Returns whether every "{name}" of the text is varied, stated by the command, or known of every job.
  bool has_values(const std::string& text) const {
    for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
      const std::size_t end = text.find_first_of("}/*:", open);
      const std::string name = text.substr(open + 1, end - open - 1);
      constexpr std::array<std::string_view, 2> kOfEveryJob = {"dp", "ranks"};
      if (!varies(name.c_str()) && !own_.configuration.has(name) && !is_one_of(name, kOfEveryJob)) return false;
    }
    return true;
  }

  Json block() {
    Json block = {{"kind", "command"}, {"argv", words_.take()}};
    for (const auto* variables : {&recipe_.env, &recipe_.training_env}) {
      for (const RecipeVariable& variable : *variables) {
        if (applies(variable.where, job_)) env_[variable.name] = variable.value;
      }
    }
    if (!env_.empty()) block["env"] = env_;
    if (!flags_.empty()) block["flags"] = flags_;
    if (!set_.empty()) block["set"] = set_;
    if (!recipe_.measure.empty()) {
      block["measure"] = kept_measure();
      block["warmup_steps"] = recipe_.warmup_steps;
      block["measure_steps"] = recipe_.measure_steps;
    }
    if (const Json checks = kept_checks(); !checks.empty()) block["checks"] = checks;
    if (!recipe_.oom_patterns.empty()) block["oom_patterns"] = recipe_.oom_patterns;
    block["recipe"] = recipe_.name;
    return block;
  }

  const Recipe& recipe_;
  const RecipeJob& job_;
  const Texts& varied_;
  const OwnValues own_;
  CommandWriter words_;
  Json env_ = Json::object();
  Json flags_ = Json::object();
  Json set_ = Json::object();
  FileKeys keys_;
  bool flags_of_launcher_ = false;
  Texts remarks_;
};

// Writes the command that trains.
class OptimalWriter {
 public:
  OptimalWriter(const Recipe& recipe, const RecipeJob& job, const space::Configuration& configuration)
      : recipe_(recipe),
        job_(job),
        configuration_(configuration),
        own_(own_values(recipe, job)),
        words_(recipe, job, false) {}

  OptimalCommand write() {
    const bool is_changed = std::any_of(configuration_.begin(), configuration_.end(),
                                        [&](const auto& entry) { return differs(entry.first, entry.second); });
    for (const auto& [name, value] : configuration_) {
      if (differs(name, value) || (is_changed && may_move(name))) change(name, value);
    }
    write_data_ranks();
    if (!keeps_ranks()) write_groups();
    if (!recipe_.train_batch_size.places.empty()) write_batch();
    write_files();
    command_.argv = words_.take();
    for (const RecipeVariable& variable : recipe_.training_env) {
      if (applies(variable.where, job_)) command_.env.emplace_back(variable.name, variable.value);
    }
    return std::move(command_);
  }

 private:
  bool is_written_here(const std::string& name) const {
    const RecipeValue* value = recipe_.find(name);
    if (value == nullptr) return false;
    const bool follows = name == space::kAccumulation && !recipe_.train_batch_size.places.empty();
    return !follows || written_place(*value, job_) != nullptr;
  }

  bool differs(const std::string& name, const space::Value& value) const {
    const space::Value* own = own_.configuration.find(name);
    return is_written_here(name) && (own == nullptr || !space::same_value(*own, value));
  }

  // Returns whether a parameter that the command does not state may change when the rest of the command changes,
  // because its default depends on it.
  bool may_move(const std::string& name) const {
    if (!is_written_here(name)) return false;
    const RecipeValue& value = *recipe_.find(name);
    const Place* place = written_place(value, job_);
    if (place == nullptr || !place->otherwise || read_place(*place, job_).is_said) return false;
    return std::any_of(value.places.begin(), value.places.end(), [&](const Place& other) {
      return other.otherwise && !space::same_value(*other.otherwise, *place->otherwise);
    });
  }

  void change(const std::string& name, const space::Value& value) {
    const Place& place = place_that_says(recipe_, job_, name);
    if (!place.words.empty()) return change_words(name, value, place);
    const RanksToWrite ranks{job_.ranks.value_or(1), data_ranks().value_or(0)};
    const std::optional<std::string> text = text_of(value, place, ranks);
    if (!text) refuse(name, value);
    const std::string size = space::to_string(value);
    say(place, *text, size == "0" ? std::to_string(ranks.data) : size);
  }

  void say(const Place& place, const std::string& text, const std::string& size = "") {
    if (!say_in_command(place, text, size, job_, words_, keys_)) command_.env.emplace_back(place.env, text);
  }

  // Keeps the size of groups of data-parallel ranks, whose number is another one.
  void write_groups() {
    for (const RecipeValue& parameter : recipe_.parameters) {
      const Place* place = written_place(parameter, job_);
      const space::Value* chosen = configuration_.find(parameter.name);
      const space::Value* size = chosen != nullptr ? chosen : own_.configuration.find(parameter.name);
      if (place == nullptr || !place->is_groups || size == nullptr) continue;
      const std::optional<std::int64_t> dp = data_ranks();
      if (dp && space::integer_of(*size) == 0)
        say_where_it_is(*place, place->size_flags, place->size_keys, std::to_string(*dp), job_, words_, keys_);
      else if (dp)
        change(parameter.name, *size);
    }
  }

  [[noreturn]] void refuse(const std::string& name, const space::Value& value) const {
    throw UserError(fmt::format("the recipe {} has no words for {} = {}", recipe_.name, name, space::to_string(value)),
                    "leave that value out of the space");
  }

  void change_words(const std::string& name, const space::Value& value, const Place& place) {
    const auto found = std::find_if(place.words.begin(), place.words.end(),
                                    [&](const auto& entry) { return space::same_value(entry.first, value); });
    if (found == place.words.end()) refuse(name, value);
    for (const std::string& flag : flags_of(place)) words_.remove(flag, place.of_launcher);
    for (const std::string& word : found->second) words_.add(word, place.of_launcher);
  }

  std::int64_t count(const char* name) const {
    return configuration_.integer(name, own_.configuration.integer(name, 1));
  }

  std::optional<std::int64_t> data_ranks() const {
    if (!job_.ranks) return std::nullopt;
    space::Configuration all = own_.configuration;
    for (const auto& [name, value] : configuration_) all.set(name, value);
    return space::data_parallel_ranks(*job_.ranks, all);
  }

  void write_data_ranks() {
    const Place* place = written_place(recipe_.data_parallel, job_);
    const std::optional<std::int64_t> dp = data_ranks();
    if (place == nullptr || !dp || keeps_ranks()) return;
    say(*place, std::to_string(*dp));
  }

  // Writes the sequences per step of the configuration, unless the command already gives the same number.
  void write_batch() {
    const Place* place = written_place(recipe_.train_batch_size, job_);
    if (place == nullptr) return;
    std::optional<std::int64_t> batch = own_.train_batch_size;
    if (const auto dp = configuration_.has(space::kAccumulation) ? data_ranks() : std::nullopt) {
      batch = space::sequences_of_step(count(space::kMicroBatch), *dp, count(space::kAccumulation));
    }
    const Reading said = read_place(*place, job_);
    const bool is_said = said.is_said && said.value && space::integer_of(*said.value) == batch;
    const bool follows = !said.is_said && batch == own_.train_batch_size && keeps(space::kMicroBatch) && keeps_ranks();
    if (batch && !is_said && !follows) say(*place, std::to_string(*batch));
  }

  bool keeps(const char* name) const { return count(name) == own_.configuration.integer(name, 1); }

  bool keeps_ranks() const {
    return std::ranges::all_of(space::rank_divisors(), [&](const char* name) { return keeps(name); });
  }

  void write_files() {
    for (const auto& [position, keys] : keys_) {
      const JobFile& file = job_.files[position];
      if (file.path.empty()) {
        words_.set_value_word(file, json_with_values(parse_json(value_of_word(job_, file), file.name), keys));
        continue;
      }
      for (const auto& [key, value] : keys) command_.set[file.path].emplace_back(file.key_to_set(key), value);
      words_.set_value_word(file, "{dir}/" + std::filesystem::path(file.path).filename().string());
    }
  }

  const Recipe& recipe_;
  const RecipeJob& job_;
  const space::Configuration& configuration_;
  const OwnValues own_;
  CommandWriter words_;
  FileKeys keys_;
  OptimalCommand command_;
};

}  // namespace

const Place* written_place(const RecipeValue& value, const RecipeJob& job) {
  const Place* place = place_of(value, job);
  if (place == nullptr || !place->is_written() || place->is_read_only) return nullptr;
  const bool is_in_file = place->flags.empty() && place->override_key.empty() && place->tail.empty() &&
                          place->words.empty() && place->env.empty();
  const JobFile* file = is_in_file ? job.file(place->file) : nullptr;
  return is_in_file && (file == nullptr || !file->can_be_copied()) ? nullptr : place;
}

RunnerBlock runner_block(const Recipe& recipe, const RecipeJob& job, const Texts& varied) {
  return TrialWriter(recipe, job, varied).write();
}

OptimalCommand optimal_command(const Recipe& recipe, const RecipeJob& job, const space::Configuration& configuration) {
  return OptimalWriter(recipe, job, configuration).write();
}

Texts optimal_words(const Recipe& recipe, const RecipeJob& job, const space::Configuration& configuration) {
  return optimal_command(recipe, job, configuration).argv;
}

}  // namespace krigtune::jobs
