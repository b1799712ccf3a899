// Interprets a command by a recipe: which words are its program, which files it names, which recipe matches it.
#include "jobs/recipe/recipe_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/known_names.h"
#include "jobs/recipe/places.h"
#include "space/expression.h"
#include "space/parallel_layout.h"
#include "workload/hub_models.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

Texts split_at_blanks(const std::string& text) {
  Texts words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string file_name_of(const std::string& word) { return std::filesystem::path(word).filename().string(); }

// Returns the position of the last word of a program such as "trl sft"; empty if it does not occur.
std::optional<std::size_t> find_program(const Texts& argv, const std::string& program) {
  const Texts words = split_at_blanks(program);
  for (std::size_t i = 0; !words.empty() && i + words.size() <= argv.size(); ++i) {
    bool is_here = file_name_of(argv[i]) == words.front();
    for (std::size_t k = 1; k < words.size(); ++k) is_here = is_here && argv[i + k] == words[k];
    if (is_here) return i + words.size() - 1;
  }
  return std::nullopt;
}

bool is_module(const Command& command) {
  if (!command.has_script || command.script == 0) return false;
  const std::string& before = command.argv[command.script - 1];
  return before == "-m" || before == "--module";
}

// Returns what a script of the shell finds in its environment: run_train.sh reads $CONFIG_FILE. Python scripts do not.
std::string variable_of_script(const RecipeJob& job, const std::string& name) {
  const bool is_variable = !name.empty() && name.front() != '-';
  return is_variable && !job.command.has_script && job.inputs.variable ? job.inputs.variable(name) : "";
}

// `wanted` is "--flag" or "--flag value".
bool has_flag(const RecipeJob& job, const std::string& wanted) {
  const Command& command = job.command;
  const Texts words = split_at_blanks(wanted);
  const auto places = occurrences(command.argv, 0, command.argv.size(), words.front());
  const std::string variable = variable_of_script(job, words.front());
  if (words.size() == 1) return !places.empty() || !variable.empty();
  if (places.empty() && !variable.empty()) return is_named_by(words.back(), variable);
  return std::any_of(places.begin(), places.end(), [&](const FlagAt& at) {
    return at.value_word && is_named_by(words.back(), value_at(command.argv, at));
  });
}

bool is_bare(const Command& command, const std::string& flag) {
  const auto places = occurrences(command.argv, 0, command.argv.size(), flag);
  return !places.empty() && !places.back().value_word;
}

// Returns whether a word sets a key below this one: "fsdp_config.sharding_strategy=..." is below "fsdp_config".
bool has_override_below(const RecipeJob& job, const std::string& key) {
  const Region region = region_of(job.command, false);
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const auto word = override_in(job.command.argv[i], job.override_prefix);
    if (word && word->key.rfind(key + ".", 0) == 0) return true;
  }
  return false;
}

// Returns the value of the last word key=value.
std::optional<std::string> override_of(const RecipeJob& job, const std::string& key) {
  std::optional<std::string> value;
  const Region region = region_of(job.command, false);
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const auto word = override_in(job.command.argv[i], job.override_prefix);
    if (word && word->key == key) value = word->value;
  }
  return value;
}

// `wanted` is "key" or "key value"; of a list in a file one element has the value. A word key=value counts more than a
// file.
bool has_key(const RecipeJob& job, const std::string& wanted) {
  const Texts words = split_at_blanks(wanted);
  if (const std::optional<std::string> value = override_of(job, words.front())) {
    return words.size() == 1 || is_named_by(words.back(), *value);
  }
  if (words.size() == 1 && has_override_below(job, words.front())) return true;
  const auto is_there = [&](const auto& entry) {
    if (words.size() == 1) return entry.first == words.front() || entry.first.rfind(words.front() + ".", 0) == 0;
    const bool is_named = entry.first == words.front() || element_free(entry.first) == words.front();
    return is_named && is_named_by(words.back(), space::to_string(entry.second));
  };
  return std::any_of(job.files.begin(), job.files.end(), [&](const JobFile& file) {
    return std::any_of(file.values.begin(), file.values.end(), is_there);
  });
}

bool has_launcher(const Command& command, const std::string& name) {
  return std::any_of(command.stages.begin(), command.stages.end(),
                     [&](const Stage& stage) { return name == to_string(stage.launcher); });
}

template <class Test>
bool any_or_none(const Texts& wanted, Test test) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), test);
}

bool starts_program_of(const CommandPattern& pattern, const Command& command) {
  const bool is_script = command.has_script && !is_module(command);
  const std::string script = is_script ? file_name_of(command.argv[command.script]) : "";
  return any_or_none(pattern.scripts, [&](const auto& one) { return is_script && fits(one, script); }) &&
         std::none_of(pattern.without_scripts.begin(), pattern.without_scripts.end(),
                      [&](const auto& one) { return is_script && fits(one, script); }) &&
         any_or_none(pattern.modules,
                     [&](const auto& one) { return is_module(command) && fits(one, command.argv[command.script]); }) &&
         any_or_none(pattern.programs, [&](const auto& one) { return find_program(command.argv, one).has_value(); });
}

std::vector<JobFile> find_each(const RecipeFile& file, const Command& command) {
  const Region region = region_of(command, file.of_launcher);
  std::vector<JobFile> found;
  for (const FileWord& one : file_words(command.argv, region.begin, region.end, file.directory_flags, file.suffixes)) {
    found.push_back({file.name, one.path, one.word});
  }
  return found;
}

// Finds the word that names a file of the recipe.
std::optional<JobFile> find_job_file(const RecipeFile& file, const RecipeJob& job) {
  const Command& command = job.command;
  const Region region = region_of(command, file.of_launcher);
  const auto has_suffix = [&](const std::string& word) {
    return file.suffixes.empty() || is_one_of(std::filesystem::path(word).extension().string(), file.suffixes);
  };
  std::optional<JobFile> found;
  for (const std::string& flag : file.flags) {
    const std::size_t begin = flag.front() == '-' ? region.begin : 0;  // CONFIG_FILE=x.toml comes before the script
    for (const FlagAt& at : occurrences(command.argv, begin, region.end, flag)) {
      if (!at.value_word) continue;
      const std::string path = value_at(command.argv, at);
      if (path.empty()) continue;
      if (has_suffix(path) || path.front() == '{') found = JobFile{file.name, path, *at.value_word, at.is_joined, {}};
    }
  }
  for (const std::string& name : file.flags) {
    const std::string path = found ? "" : variable_of_script(job, name);
    if (path.empty() || !has_suffix(path)) continue;
    found = JobFile{file.name, path, command.argv.size()};
    found->is_of_environment = true;
  }
  const std::size_t end = file.is_first ? std::min(region.begin + 1, region.end) : region.end;
  for (std::size_t i = region.begin; file.flags.empty() && !found && i < end; ++i) {
    const std::string& word = command.argv[i];
    const bool is_path = !word.empty() && word.front() != '-' && word.find('=') == std::string::npos;
    if (is_path && has_suffix(word)) found = JobFile{file.name, word, i, false, {}};
  }
  return found;
}

std::vector<JobFile> find_job_files(const RecipeFile& file, const RecipeJob& job) {
  if (file.is_each) return find_each(file, job.command);
  std::optional<JobFile> found = find_job_file(file, job);
  return found ? std::vector{std::move(*found)} : std::vector<JobFile>();
}

// Names the keys of the file's top level with underscores.
void take_hyphens(JobFile& file) {
  ConfigValues plain;
  for (const auto& [key, value] : file.values) {
    std::string name = key;
    std::replace(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(name.find('.'), name.size())), '-',
                 '_');
    if (name != key) file.spelled[name] = key;
    plain[name] = value;
  }
  file.values = std::move(plain);
}

// Returns the values of a file that comes with the framework; nullptr if it is none.
const ConfigValues* built_in_values(const RecipeFile& known, const std::string& name) {
  const auto found = std::find_if(known.built_in.begin(), known.built_in.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == known.built_in.end() ? nullptr : &found->second;
}

void read_file_values(JobFile& file, const RecipeFile& known, const std::filesystem::path& directory) {
  if (!file.path.empty() && file.path.front() == '{') {  // transformers accept JSON instead of a file
    file.values = config_values_of(file.path, ".json", "the command's " + file.name);
    file.path.clear();
    return;
  }
  const ConfigValues* built_in = built_in_values(known, file.path);
  std::error_code error;
  file.is_built_in = built_in != nullptr && !std::filesystem::exists(directory / file.path, error);
  file.values = file.is_built_in ? *built_in : read_config_values(directory / file.path);
}

// Returns whether the word names a file that comes with the framework ("qwen3/8B_full"), but with another version.
bool is_of_another_version(const JobFile& file, const RecipeFile& known, const std::filesystem::path& directory) {
  if (known.built_in.empty() || built_in_values(known, file.path) != nullptr) return false;
  constexpr std::array<std::string_view, 5> kSuffixes = {".yaml", ".yml", ".toml", ".json", ".py"};
  std::error_code error;
  return !is_one_of(std::filesystem::path(file.path).extension().string(), kSuffixes) &&
         !std::filesystem::exists(directory / file.path, error);
}

// Returns the key of "${a.b}", as OmegaConf writes a reference to another value; "" for all other values.
std::string key_referred_to(const space::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  const bool is_one = text != nullptr && text->rfind("${", 0) == 0 && text->find('}') + 1 == text->size();
  return is_one ? text->substr(2, text->size() - 3) : "";
}

// References that name no key of the file stay as they are.
void follow_references(const RecipeJob& job, JobFile& file) {
  constexpr int kLongestChain = 5;
  for (auto& [key, value] : file.values) {
    for (int i = 0; i < kLongestChain; ++i) {
      const std::string other = key_referred_to(value);
      if (other.empty()) break;
      const std::optional<std::string> said = override_of(job, other);
      const auto found = file.values.find(other);
      if (!said && found == file.values.end()) break;
      value = said ? space::value_from_text(*said) : found->second;
    }
  }
}

// A command that names its model does not say its layers.
void add_layers_of_preset(std::map<std::string, space::Value>& values) {
  const auto preset = values.find("preset");
  if (preset == values.end() || values.contains("layers")) return;
  if (const auto model = workload::hub_model(space::to_string(preset->second)))
    values.emplace("layers", model->sizes.layers);
}

// Computes what commands divide, of sizes and parameters that this one says.
void read_quotients(const Recipe& recipe, RecipeJob& job) {
  for (const RecipeValue& parameter : recipe.parameters) {
    const Place* place = place_of(parameter, job);
    if (place == nullptr || place->quotient_of.empty()) continue;
    std::map<std::string, space::Value> values;
    for (const auto* all : {&recipe.parameters, &recipe.model}) {
      for (const RecipeValue& one : *all) {
        if (&one == &parameter) continue;
        if (const std::optional<space::Value> value = read_value(one, job)) values.emplace(one.name, *value);
      }
    }
    add_layers_of_preset(values);
    const auto value = space::Expression::parse_value(place->quotient_of).value([&](std::string_view name) {
      const auto found = values.find(std::string(name));
      return found == values.end() ? nullptr : &found->second;
    });
    if (value && space::is_number(*value)) job.quotients[place->quotient_of] = space::as_number(*value);
  }
}

std::optional<std::int64_t> read_data_ranks(const Recipe& recipe, const RecipeJob& job) {
  const bool has_groups = std::ranges::any_of(recipe.parameters, [&](const RecipeValue& parameter) {
    const Place* place = place_of(parameter, job);
    return place != nullptr && place->is_groups;
  });
  if (!has_groups) return std::nullopt;
  space::Configuration layout = recipe.fixed;
  for (const char* name : space::rank_divisors()) {
    const RecipeValue* parameter = recipe.find(name);
    const std::optional<space::Value> value = parameter == nullptr ? std::nullopt : read_value(*parameter, job);
    if (value && !space::integer_of(*value)) return std::nullopt;
    if (value) layout.set(name, *value);
  }
  return job.ranks ? space::data_parallel_ranks(*job.ranks, layout) : std::nullopt;
}

RecipeJob read_leniently(const Recipe& recipe, JobInputs inputs, bool throws) {
  RecipeJob job;
  job.command = read_command(inputs.argv);
  job.inputs = std::move(inputs);
  job.override_prefix = recipe.override_prefix;
  for (const CommandPattern& pattern : recipe.recognise) {
    for (const std::string& program : pattern.programs) {
      if (const auto last = find_program(job.command.argv, program)) job.command.script = *last;
    }
  }
  job.ranks = job.command.ranks ? job.command.ranks : job.inputs.ranks;
  for (const RecipeFile& file : recipe.files) {
    for (JobFile& found : find_job_files(file, job)) {
      if (is_of_another_version(found, file, job.inputs.directory)) {
        job.unread[file.name] = found.path;
        continue;
      }
      try {
        read_file_values(found, file, job.inputs.directory);
        follow_references(job, found);
      } catch (const UserError&) {
        if (throws) throw;
        continue;
      }
      if (found.is_built_in) {  // what the command says itself is not assumed
        std::erase_if(found.values, [&](const auto& entry) {
          return override_of(job, entry.first).has_value() || has_flag(job, "--" + entry.first);
        });
      }
      if (file.takes_hyphens) take_hyphens(found);
      job.files.push_back(std::move(found));
    }
  }
  job.data_ranks = read_data_ranks(recipe, job);
  read_quotients(recipe, job);
  return job;
}

bool knows(const Recipe& recipe, const RecipeJob& job) {
  return std::any_of(recipe.recognise.begin(), recipe.recognise.end(),
                     [&](const CommandPattern& pattern) { return applies(pattern, job); });
}

// Returns whether a pattern that applies names the script, module or program itself, and not only any ("*.py").
bool names_the_program(const Recipe& recipe, const RecipeJob& job) {
  const auto is_a_name = [](const std::string& word) { return word.find('*') == std::string::npos; };
  return std::any_of(recipe.recognise.begin(), recipe.recognise.end(), [&](const CommandPattern& pattern) {
    return applies(pattern, job) &&
           (!pattern.programs.empty() || std::any_of(pattern.scripts.begin(), pattern.scripts.end(), is_a_name) ||
            std::any_of(pattern.modules.begin(), pattern.modules.end(), is_a_name));
  });
}

bool says_any_parameter(const Recipe& recipe, const RecipeJob& job) {
  return std::any_of(recipe.parameters.begin(), recipe.parameters.end(), [&](const RecipeValue& value) {
    const Place* place = place_of(value, job);
    return place != nullptr && read_place(*place, job).is_said;
  });
}

}  // namespace

const JobFile* RecipeJob::file(const std::string& name) const {
  const auto found = std::find_if(files.begin(), files.end(), [&](const JobFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

const JobFile* RecipeJob::file(const std::string& name, const std::string& key) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const JobFile& file) { return file.name == name && file.values.contains(key); });
  return found == files.end() ? file(name) : &*found;
}

std::string JobFile::key_to_set(const std::string& key) const {
  const auto other = spelled.find(key);
  return other != spelled.end() ? other->second : (values.contains(key) ? "" : "+") + key;
}

std::string framework_of(const Recipe& recipe, const RecipeJob& job) {
  const auto other = std::find_if(recipe.frameworks.begin(), recipe.frameworks.end(),
                                  [&](const RecipeFramework& one) { return applies(one.where, job); });
  return other == recipe.frameworks.end() ? recipe.framework : other->framework;
}

bool applies(const CommandPattern& pattern, const RecipeJob& job) {
  const Command& command = job.command;
  const auto has = [&](const std::string& flag) { return has_flag(job, flag); };
  return any_or_none(pattern.launchers, [&](const auto& name) { return has_launcher(command, name); }) &&
         starts_program_of(pattern, command) && std::all_of(pattern.flags.begin(), pattern.flags.end(), has) &&
         any_or_none(pattern.any_flag, has) && std::none_of(pattern.without.begin(), pattern.without.end(), has) &&
         std::all_of(pattern.bare.begin(), pattern.bare.end(), [&](const auto& f) { return is_bare(command, f); }) &&
         std::all_of(pattern.keys.begin(), pattern.keys.end(), [&](const auto& key) { return has_key(job, key); }) &&
         std::none_of(pattern.without_keys.begin(), pattern.without_keys.end(),
                      [&](const auto& key) { return has_key(job, key); });
}

RecipeJob read_job(const Recipe& recipe, JobInputs inputs) {
  if (inputs.argv.empty() || inputs.argv.front().empty()) {
    throw UserError("there is no command", "write it after --: -- torchrun --nproc_per_node 8 train.py");
  }
  RecipeJob job = read_leniently(recipe, std::move(inputs), true);
  if (recipe.is_last_resort || recipe.recognise.empty() || knows(recipe, job) || says_any_parameter(recipe, job)) {
    return job;
  }
  throw UserError(
      fmt::format("the command is not a job of the recipe {}: neither its script nor its flags are there", recipe.name),
      fmt::format("krigtune recipes {} shows what it looks for", recipe.name));
}

RecipeJob read_any_job(const Recipe& recipe, JobInputs inputs) {
  return read_leniently(recipe, std::move(inputs), false);
}

const Recipe* recognise(const std::vector<std::string>& argv, const std::vector<Recipe>& recipes) {
  if (argv.empty()) return nullptr;
  std::vector<const Recipe*> found;
  std::vector<const Recipe*> last_resorts;
  std::vector<const Recipe*> by_name;
  for (const Recipe& recipe : recipes) {
    const RecipeJob job = read_any_job(recipe, {argv, std::filesystem::current_path()});
    if (knows(recipe, job)) (recipe.is_last_resort ? last_resorts : found).push_back(&recipe);
    if (!recipe.is_last_resort && names_the_program(recipe, job)) by_name.push_back(&recipe);
  }
  const std::vector<const Recipe*> all = found;
  std::erase_if(found, [&](const Recipe* one) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Recipe* other) { return is_one_of(one->name, other->before); });
  });
  if (found.size() > 1 && !by_name.empty()) found = by_name;  // "-m axolotl.cli.train x.yml --deepspeed FILE"
  if (found.empty()) found = last_resorts;
  if (found.size() > 1) {
    throw UserError(fmt::format("two recipes know this command: {} and {}", found[0]->name, found[1]->name),
                    fmt::format("name one: --recipe {}", found[0]->name));
  }
  return found.empty() ? nullptr : found.front();
}

}  // namespace krigtune::jobs
