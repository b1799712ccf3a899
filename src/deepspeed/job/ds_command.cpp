// Reads the user's command. Options are those of deepspeed/launcher/runner.py (DeepSpeed 0.19), torch.distributed.run,
// accelerate launch, srun and Open MPI's mpirun; options that are not needed are ignored.
#include "deepspeed/job/ds_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_trial.h"
#include "jobs/command/ranks.h"
#include "jobs/command/words.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"
#include "trial/placeholders.h"

namespace krigtune::deepspeed {

using jobs::FlagAt;
using jobs::occurrences;
using jobs::value_at;

namespace {

// Flags of transformers' TrainingArguments that few other programs have. Together with `--deepspeed FILE`, which
// DeepSpeed's own arguments do not have, they reveal a script of the Trainer. Written as --per-device-train-batch-size
// they are of a script that makes its TrainingArguments itself, by click for example, and takes no others.
constexpr std::array<std::string_view, 5> kTrainerFlags = {
    "--per_device_train_batch_size", "--per_device_eval_batch_size", "--gradient_accumulation_steps", "--do_train",
    "--output_dir"};

// A word that names a configuration.
struct Named {
  std::size_t word;
  std::string value;
};

bool looks_like_text(const std::string& value) {
  // '{"', "{ " and "{\n" in base64 begin with these letters.
  const bool is_base64 = value.find_first_of("./") == std::string::npos && value.size() > 40 &&
                         (value.rfind("eyJ", 0) == 0 || value.rfind("eyA", 0) == 0 || value.rfind("ewog", 0) == 0);
  return is_base64 || value.find('{') != std::string::npos;
}

std::vector<Named> values_of(const std::vector<std::string>& argv, std::size_t begin, std::size_t end,
                             std::string_view flag) {
  std::vector<Named> named;
  for (const FlagAt& at : occurrences(argv, begin, end, flag)) {
    if (at.value_word) named.push_back({*at.value_word, value_at(argv, at)});
  }
  return named;
}

void append(std::vector<Named>& all, const std::vector<Named>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Whether the file is the Trainer's depends on how the command names it.
void find_trainer(DsCommand& command, bool is_short) {
  const std::vector<std::string>& argv = command.argv;
  for (const std::string_view flag : kTrainerFlags) {
    const std::vector<FlagAt> places = occurrences(argv, command.script + 1, argv.size(), flag);
    command.is_trainers = command.is_trainers || (is_short && !places.empty());
    command.takes_trainer_flags =
        command.takes_trainer_flags || (is_short && std::any_of(places.begin(), places.end(), [&](const FlagAt& at) {
                                          return argv[at.word].rfind(flag, 0) == 0;
                                        }));
  }
}

void find_config(DsCommand& command) {
  const std::vector<std::string>& argv = command.argv;
  std::vector<Named> named = values_of(argv, command.script + 1, argv.size(), "--deepspeed_config");
  std::vector<Named> short_form = values_of(argv, command.script + 1, argv.size(), "--deepspeed");
  if (!named.empty()) {  // `--deepspeed` is then a switch, and the next word belongs to the script
    std::erase_if(short_form, [](const Named& n) { return std::filesystem::path(n.value).extension() != ".json"; });
  }
  const bool is_short = named.empty() && !short_form.empty();
  append(named, short_form);
  command.is_accelerates = named.empty();
  append(named, values_of(argv, 0, command.script, "--deepspeed_config_file"));
  const bool has_switch = !occurrences(argv, command.script + 1, argv.size(), "--deepspeed").empty();
  const auto stage = occurrences(argv, command.script + 1, argv.size(), "--zero_stage");
  if (named.empty() && has_switch && !stage.empty()) {
    throw UserError(
        "the script makes its DeepSpeed configuration from flags (--zero_stage): there is no file to tune",
        "tune the flags: krigtune tune --vary 'zero_stage=--zero_stage:2,3' --vary 'micro_batch=FLAG:1,2,4' "
        "--metric REGEX -- COMMAND");
  }
  if (named.empty()) {
    throw UserError("the command names no DeepSpeed configuration",
                    "add --deepspeed_config FILE or --deepspeed FILE to the script's words, or "
                    "--deepspeed_config_file FILE to accelerate launch");
  }
  command.config = named.front().value;
  for (const Named& one : named) {
    if (one.value != command.config) {
      throw UserError(fmt::format("the command names two DeepSpeed configurations: {} and {}", command.config,
                                  one.value.substr(0, 60)),
                      "keep one");
    }
    command.config_words.push_back(one.word);
  }
  if (command.config.empty() || looks_like_text(command.config)) {
    throw UserError("the command contains the DeepSpeed configuration itself, not the name of its file",
                    "write it to a file and name that");
  }
  find_trainer(command, is_short);
}

void refuse_stock_tuner(const DsCommand& command) {
  if (jobs::occurrences(command.argv, 0, command.script, "--autotuning").empty()) return;
  throw UserError("the command starts DeepSpeed's own autotuner (--autotuning)", "remove that option");
}

}  // namespace

namespace {

// What accelerate launch is told.
struct AccelerateWords {
  explicit AccelerateWords(const std::vector<std::string>& words) {
    const jobs::Command command = jobs::read_command(words);
    const jobs::Stage* stage = jobs::rank_stage(command);
    if (stage == nullptr || stage->launcher != jobs::Launcher::kAccelerate) return;
    const jobs::LauncherOptions options{words, stage->begin + 1, stage->end};
    begin = stage->begin + 1;
    names_config = options.has({"--deepspeed_config_file"});
    sequence_ranks = options.count({"--parallelism_config_sp_size"});
    const std::optional<std::string> file = options.text({"--config_file"});
    std::error_code error;
    if (file && std::filesystem::is_regular_file(*file, error)) config_file = read_text(*file);
  }

  std::size_t begin = 0;  ///< of its words; 0: it starts no ranks
  bool names_config = false;
  std::optional<std::int64_t> sequence_ranks;  ///< by a flag
  std::string config_file;                     ///< the contents of its --config_file
};

// If accelerate launch finds the configuration in its --config_file, gives it to accelerate as a flag, which counts
// more and which trials can change.
void name_config_of_accelerate(const AccelerateWords& told, std::vector<std::string>& words) {
  if (told.begin == 0 || told.names_config) return;
  const auto config = jobs::accelerate_setting(told.config_file, "deepspeed_config_file");
  if (!config || config->empty() || *config == "none" || *config == "null") return;
  std::size_t at = told.begin;
  if (at < words.size() && words[at] == "launch") ++at;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), {"--deepspeed_config_file", *config});
}

// Accelerate starts DeepSpeed with groups of so many ranks (Accelerate 1.15: parallelism_config.py; accelerator.py,
// _prepare_deepspeed, which counts the batch by what is left). Its flag counts more than its file.
std::int64_t sequence_ranks_of(const AccelerateWords& told) {
  if (told.sequence_ranks) return *told.sequence_ranks;
  const auto said = jobs::accelerate_setting(told.config_file, "parallelism_config_sp_size");
  return said ? jobs::count_in(*said).value_or(1) : 1;
}

}  // namespace

DsCommand read_ds_command(const std::vector<std::string>& argv) {
  if (argv.empty() || argv.front().empty()) {
    throw UserError("there is no command", "write it after --: -- deepspeed train.py --deepspeed_config FILE");
  }
  std::vector<std::string> words = argv;
  if (jobs::is_assignment(words.front())) words.insert(words.begin(), "env");  // which a shell does not need
  const AccelerateWords told(words);
  name_config_of_accelerate(told, words);
  DsCommand command;
  static_cast<jobs::Command&>(command) = jobs::read_command(words);
  refuse_stock_tuner(command);
  find_config(command);
  command.sequence_ranks = sequence_ranks_of(told);
  return command;
}

// Flags of the training script that must agree with ds_config.json. The Hugging Face Trainer refuses to run if its
// TrainingArguments differ from the configuration (transformers, integrations/deepspeed.py, trainer_config_process).
namespace {

// The words that argparse's boolean converters accept (transformers, hf_argparser.string_to_bool).
constexpr std::array<std::string_view, 5> kYes = {"true", "yes", "t", "y", "1"};
constexpr std::array<std::string_view, 5> kNo = {"false", "no", "f", "n", "0"};

// Makes "/zero_optimization/stage" and "zero_optimization.stage" equal.
std::string dotted(std::string key) {
  std::replace(key.begin(), key.end(), '/', '.');
  return key.rfind('.', 0) == 0 ? key.substr(1) : key;
}

// Returns the parameter that a key of arg_mappings means: by its name, its path, or the last part of a path if that is
// unique.
std::string parameter_of(const std::string& key) {
  if (space::find_well_known(key) != nullptr) return key;
  const std::string path = dotted(key);
  std::vector<std::string> by_last_part;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const std::string known_path = dotted(known.deepspeed.key);
    if (known_path.empty()) continue;
    if (known_path == path) return known.name;
    if (known_path.substr(known_path.rfind('.') + 1) == path) by_last_part.emplace_back(known.name);
  }
  return by_last_part.size() == 1 ? by_last_part.front() : path;
}

// Finds a value by its name or, for a key that krigtune does not know, by a path that ends in it.
const space::Value* find_value(const space::Configuration& values, const std::string& name) {
  if (const space::Value* exact = values.find(name)) return exact;
  const std::string ending = "." + name;
  for (const auto& [path, value] : values) {
    if (path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0) {
      return &value;
    }
  }
  return nullptr;
}

// Writes booleans like Python: argparse's own bool("false") would be true, and transformers accepts these two words.
std::string as_word(const space::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  return space::to_string(value);
}

bool wants_switch(const space::Value& value, const FlagMapping& mapping) {
  const std::string word = space::to_string(value);
  if (word == "none" || word == "full") return word == "full";
  throw UserError(
      fmt::format("{} '{}' cannot be said by the flag {}, which says yes or no", mapping.name, word, mapping.flag),
      "let the parameter be none or full");
}

class Rewriting {
 public:
  explicit Rewriting(const DsCommand& command) : words_(command.argv), begin_(command.script + 1) {}

  void set_config(const DsCommand& command, const std::string& config) {
    for (const std::size_t word : command.config_words) {
      const bool is_joined = words_[word] != command.config;
      words_[word] = is_joined ? words_[word].substr(0, words_[word].find('=') + 1) + config : config;
    }
  }

  void set_flag(const FlagMapping& mapping, const std::string& value) {
    const std::vector<FlagAt> places = occurrences(words_, begin_, words_.size(), mapping.flag);
    for (const FlagAt& at : places) {
      if (!at.value_word) refuse_bare(mapping.flag);
      std::string& word = words_[*at.value_word];
      word = at.is_joined ? word.substr(0, word.find('=') + 1) + value : value;
    }
    if (places.empty() && mapping.appended) words_.insert(words_.end(), {mapping.flag, value});
  }

  void set_switch(const FlagMapping& mapping, bool on) {
    std::vector<FlagAt> places = occurrences(words_, begin_, words_.size(), mapping.flag);
    if (on && places.empty() && mapping.appended) words_.push_back(mapping.flag);
    std::reverse(places.begin(), places.end());  // from the end, because a removal moves only what follows it
    for (const FlagAt& at : places) {
      const std::string value = at.value_word ? value_at(words_, at) : "";
      const bool has_value = is_one_of(lower_case(value), kYes) || is_one_of(lower_case(value), kNo);
      if (!on) {
        take_away(at.word, has_value && !at.is_joined ? 2 : 1);
      } else if (is_one_of(lower_case(value), kNo)) {
        std::string& word = words_[*at.value_word];
        word = at.is_joined ? word.substr(0, word.find('=') + 1) + "True" : "True";
      }
    }
  }

  std::vector<std::string> take() { return std::move(words_); }

  [[noreturn]] static void refuse_bare(const std::string& flag) {
    throw UserError(fmt::format("the command's flag {} has no value", flag), "write one after it");
  }

 private:
  void take_away(std::size_t word, std::ptrdiff_t count) {
    const auto first = words_.begin() + static_cast<std::ptrdiff_t>(word);
    words_.erase(first, first + count);
  }

  std::vector<std::string> words_;
  std::size_t begin_;
};

}  // namespace

std::vector<FlagMapping> flag_mappings(const DsCommand& command,
                                       const std::vector<std::pair<std::string, std::string>>& arg_mappings) {
  std::vector<FlagMapping> mappings;
  const auto is_mapped = [&](const std::string& name) {
    return std::any_of(mappings.begin(), mappings.end(), [&](const FlagMapping& m) { return m.name == name; });
  };
  for (const auto& [key, flag] : arg_mappings) {
    FlagMapping mapping{parameter_of(trimmed(key)), trimmed(flag), true};
    if (mapping.flag.rfind('-', 0) != 0) {
      throw UserError(fmt::format("arg_mappings: {}: '{}' is not a flag", trimmed(key), mapping.flag),
                      "begin it with --");
    }
    if (is_mapped(mapping.name)) {
      throw UserError(fmt::format("arg_mappings: '{}' is mapped twice", mapping.name), "keep one of them");
    }
    mappings.push_back(std::move(mapping));
  }
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const std::string flag = known.deepspeed.trainer_flag;
    if (!flag.empty() && !is_mapped(known.name)) mappings.push_back({known.name, flag, command.takes_trainer_flags});
  }
  return mappings;
}

space::Configuration values_of_flags(const DsCommand& command, const std::vector<FlagMapping>& mappings) {
  space::Configuration values;
  for (const FlagMapping& mapping : mappings) {
    const auto places = occurrences(command.argv, command.script + 1, command.argv.size(), mapping.flag);
    if (mapping.name == space::kCheckpointing) {
      if (places.empty() && !mapping.appended) continue;
      const bool on = !places.empty() &&
                      !(places.back().value_word && is_one_of(lower_case(value_at(command.argv, places.back())), kNo));
      values.set(mapping.name, std::string(on ? "full" : "none"));
    } else if (!places.empty()) {
      if (!places.back().value_word) Rewriting::refuse_bare(mapping.flag);
      values.set(mapping.name, space::value_from_text(value_at(command.argv, places.back())));
    }
  }
  return values;
}

std::vector<std::string> rewritten(const DsCommand& command, const std::string& config,
                                   const space::Configuration& values, const std::vector<FlagMapping>& mappings) {
  Rewriting rewriting(command);
  rewriting.set_config(command, config);
  for (const FlagMapping& mapping : mappings) {
    const space::Value* value = find_value(values, mapping.name);
    if (value == nullptr) continue;
    if (mapping.name == space::kCheckpointing) {
      rewriting.set_switch(mapping, wants_switch(*value, mapping));
    } else {
      rewriting.set_flag(mapping, as_word(*value));
    }
  }
  return rewriting.take();
}

// Starting a job at a place: deepspeed/launcher/runner.py uses CUDA_VISIBLE_DEVICES only without --include, --exclude,
// --num_gpus and --num_nodes, and all launchers use port 29500 unless they are given another one.
namespace {

class LauncherWords {
 public:
  LauncherWords(std::vector<std::string> words, const jobs::Stage& stage)
      : words_(std::move(words)), begin_(stage.begin + 1), end_(stage.end) {
    if (begin_ < end_ && words_[begin_] == "launch") ++begin_;  // a word of accelerate
  }

  bool has(std::string_view flag) const { return !occurrences(words_, begin_, end_, flag).empty(); }

  void take_away(std::string_view flag) {
    std::vector<FlagAt> places = occurrences(words_, begin_, end_, flag);
    std::reverse(places.begin(), places.end());
    for (const FlagAt& at : places) {
      const std::ptrdiff_t count = at.value_word && !at.is_joined ? 2 : 1;
      const auto first = words_.begin() + static_cast<std::ptrdiff_t>(at.word);
      words_.erase(first, first + count);
      end_ -= static_cast<std::size_t>(count);
    }
  }

  void set(const std::string& flag, const std::string& value) {
    take_away(flag);
    words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(begin_), {flag, value});
    end_ += 2;
  }

  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
  std::size_t begin_;
  std::size_t end_;
};

}  // namespace

std::vector<std::string> started_at(std::vector<std::string> argv, const DsCommand& command,
                                    const trial::PlaceFacts& place) {
  const jobs::Stage* stage = jobs::rank_stage(command);
  if (stage == nullptr || place.port == 0) return argv;
  const std::string port = std::to_string(place.port);
  LauncherWords words(std::move(argv), *stage);
  if (stage->launcher == jobs::Launcher::kTorchrun && !words.has("--standalone") && !words.has("--rdzv_endpoint"))
    words.set("--master_port", port);
  if (stage->launcher == jobs::Launcher::kAccelerate) words.set("--main_process_port", port);
  if (stage->launcher != jobs::Launcher::kDeepSpeed) return words.take();
  words.set("--master_port", port);
  if (place.gpus.empty()) return words.take();
  for (const char* other : {"-i", "--exclude", "-e", "--num_gpus", "--num_nodes"}) words.take_away(other);
  words.set("--include", "localhost:" + trial::gpu_list(place.gpus));
  return words.take();
}

// The batch of a job whose ds_config.json leaves it to the script's flags, as with the Hugging Face Trainer.

space::Configuration at_the_flags_batch(space::Configuration configuration, const DsCommand& command,
                                        const std::vector<FlagMapping>& mappings, const Json& user,
                                        const DsRanks& ranks, const std::string& source) {
  const space::Configuration said = values_of_flags(command, mappings);
  const bool one = configuration.has(space::kMicroBatch) != configuration.has(space::kAccumulation);
  if (!one || !said.has(space::kMicroBatch) || train_batch_size_of(user, ranks, source)) return configuration;
  const char* given = configuration.has(space::kMicroBatch) ? space::kMicroBatch : space::kAccumulation;
  const char* other = given == space::kMicroBatch ? space::kAccumulation : space::kMicroBatch;
  const space::Value* steps = said.find(space::kAccumulation);
  const double batch =
      space::as_number(*said.find(space::kMicroBatch)) * (steps == nullptr ? 1.0 : space::as_number(*steps));
  const double rest = batch / space::as_number(*configuration.find(given));
  if (rest != std::trunc(rest)) {
    throw UserError(fmt::format("the flags' batch of {} a rank is not a multiple of {} {}", batch, given,
                                space::to_string(*configuration.find(given))),
                    "leave that value out of the space");
  }
  configuration.set(other, space::number_value(rest));
  return configuration;
}

std::optional<std::int64_t> batch_of(const space::Configuration& configuration, const DsCommand& command,
                                     const std::vector<FlagMapping>& mappings, const Json& user, const DsRanks& ranks,
                                     const std::string& source) {
  const space::Configuration chosen = at_the_flags_batch(configuration, command, mappings, user, ranks, source);
  const space::Configuration complete = with_batch(user, chosen, ranks, source);
  const space::Configuration said = values_of_flags(command, mappings);
  const auto count = [&](const char* name) -> std::optional<double> {
    const space::Value* value = complete.find(name);
    if (value == nullptr) value = said.find(name);
    return value == nullptr ? std::nullopt : std::optional(space::as_number(*value));
  };
  const std::optional<double> micro = count(space::kMicroBatch);
  if (!micro) return std::nullopt;
  const std::int64_t tensor = configuration.integer(space::kTensorParallel, tensor_parallel_of(user));
  const std::int64_t stages = configuration.integer(space::kPipelineParallel, 1);
  const auto model_ranks = static_cast<double>(
      space::ranks_of_replica({{space::kTensorParallel, tensor}, {space::kPipelineParallel, stages}}));
  const auto counted = static_cast<double>(counted_ranks(user, ranks, source));
  return std::llround(*micro * count(space::kAccumulation).value_or(1.0) * counted / model_ranks);
}

}  // namespace krigtune::deepspeed
