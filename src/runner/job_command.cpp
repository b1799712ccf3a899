// Turns a configuration into the user's command: placeholders in argv, in the environment and in files are filled in,
// values of a parameter become words, and values in configuration files are replaced in place.
#include "runner/job_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "runner/command.h"
#include "runner/in_place_edit.h"
#include "runner/job_files.h"
#include "space/well_known.h"

namespace krigtune::runner {
namespace {

using Placeholders = trial::PlaceholderText;

constexpr const char* kFlagsWord = "{flags}";

std::string word_key(const std::string& list, std::size_t index) { return fmt::format("{}/{}", list, index); }

struct FlagWords {
  std::string key;  ///< in the block
  const space::Parameter* parameter = nullptr;
  std::string name;
  std::vector<std::pair<std::optional<std::string>, std::vector<Placeholders>>> words;
};

struct SetValue {
  std::string key;   ///< in the block
  std::string path;  ///< in the file
  IfMissing if_missing = IfMissing::kRefuse;
  Placeholders value;
};

struct SetDocument {
  std::string name;
  std::string file;  ///< for messages
  FileFormat format = FileFormat::kYaml;
  std::string text;
  std::vector<SetValue> values;
};

bool is_value(const std::string& text, const space::Value& value) {
  return space::to_string(value) == text || space::same_value(space::value_from_text(text), value);
}

// A text that is a single placeholder of kind text stays text even if it looks like a number. Everything else has the
// type that its text suggests.
NewValue new_value(const Placeholders& value, const std::string& filled) {
  return {filled, value.kind() == space::Kind::kText};
}

}  // namespace

struct JobCommand::Parts {
  Parts(const CommandSpec& spec, const space::Space& of, const JsonObject* block);

  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& hint) const {
    if (block_ != nullptr) block_->fail(key, what, hint);
    throw UserError(fmt::format("/runner/{}: {}", key, what), hint);
  }

  // Rethrows the errors of `compute` with their key.
  template <class Compute>
  auto at(const std::string& key, const std::string& prefix, Compute compute) const {
    try {
      return compute();
    } catch (const UserError& error) {
      fail(key, prefix + error.what(), "");
    }
  }

  Placeholders parsed(const std::string& key, const std::string& text) const {
    return at(key, "", [&] { return Placeholders(text, names.known()); });
  }

  std::string filled(const std::string& key, const Placeholders& text, const trial::NamedValues& values) const {
    return at(key, "", [&] { return text.filled(trial::lookup_in(values)); });
  }

  /// The values of an arbitrary configuration, for checks.
  trial::NamedValues example() const { return names.values({}, {}); }

  std::vector<std::string> filled_argv(const trial::NamedValues& values,
                                       const space::Configuration& configuration) const;
  void add_flags(std::vector<std::string>& words, const trial::NamedValues& values,
                 const space::Configuration& configuration) const;
  std::string filled_document(const SetDocument& document, const trial::NamedValues& values) const;
  std::vector<std::string> used_names() const;
  bool hands_over_config() const;

  space::Space space;
  trial::JobNames names;
  std::vector<Placeholders> argv;  ///< without the word {flags}
  std::size_t flags_at = 0;        ///< before this word
  std::vector<std::pair<std::string, Placeholders>> environment;
  std::vector<FlagWords> flags;
  std::vector<std::pair<std::string, Placeholders>> templates;
  std::vector<SetDocument> set;

 private:
  void read_argv(const std::vector<std::string>& words);
  FlagWords flag_words(const JobFlag& flag) const;
  void check_covered(const FlagWords& flag) const;
  SetDocument document_of(const JobSetFile& entry) const;
  void check_document(const SetDocument& document) const;
  const std::string& content_of(const std::filesystem::path& file) const { return contents_.at(file.string()); }

  const JsonObject* block_;
  std::map<std::string, std::string> contents_;
};

JobCommand::Parts::Parts(const CommandSpec& spec, const space::Space& of, const JsonObject* block)
    : space(of), names(of), block_(block), contents_(spec.job.contents) {
  read_argv(spec.argv);
  for (const auto& [name, value] : spec.environment)
    environment.emplace_back(name, parsed(key_below("env", name), value));
  for (const JobFlag& flag : spec.job.flags) flags.push_back(flag_words(flag));
  for (const JobTemplate& entry : spec.job.templates) {
    const std::string key = key_below("templates", entry.name);
    templates.emplace_back(entry.name, at(key, entry.file.string() + ": ",
                                          [&] { return Placeholders(content_of(entry.file), names.known()); }));
  }
  for (const JobSetFile& entry : spec.job.set) set.push_back(document_of(entry));
  for (const SetDocument& document : set) check_document(document);
}

void JobCommand::Parts::read_argv(const std::vector<std::string>& words) {
  const auto place = std::find(words.begin(), words.end(), kFlagsWord);
  flags_at = static_cast<std::size_t>(place - words.begin());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string key = word_key("argv", i);
    if (i == flags_at && i > 0) continue;
    if (words[i] == kFlagsWord)
      fail(key, i == 0 ? "'{flags}' is not a program" : "'{flags}' is there twice", "keep one");
    const std::size_t within = words[i].find(kFlagsWord);
    if (within != std::string::npos && (within == 0 || words[i][within - 1] != '{'))
      fail(key, "'{flags}' is a word of its own", "write it as an element of argv");
    argv.push_back(parsed(key, words[i]));
  }
}

FlagWords JobCommand::Parts::flag_words(const JobFlag& flag) const {
  FlagWords result{key_below("flags", flag.parameter), space.find(flag.parameter), flag.parameter, {}};
  const trial::NamedValues known = example();
  if (!known.contains(flag.parameter)) {
    std::vector<std::string> parameters = space.columns();
    for (const auto& [name, value] : space.facts().fixed) parameters.push_back(name);
    fail(result.key, fmt::format("'{}' is not a parameter of the space", flag.parameter),
         suggestion(flag.parameter, parameters));
  }
  for (const JobFlag::Words& entry : flag.words) {
    std::vector<Placeholders> words;
    const std::string key = entry.value ? key_below(result.key, *entry.value) : result.key;
    for (std::size_t i = 0; i < entry.words.size(); ++i) words.push_back(parsed(word_key(key, i), entry.words[i]));
    result.words.emplace_back(entry.value, std::move(words));
  }
  check_covered(result);
  return result;
}

void JobCommand::Parts::check_covered(const FlagWords& flag) const {
  if (flag.parameter == nullptr || (flag.words.size() == 1 && !flag.words.front().first)) return;
  if (flag.parameter->continuous()) {
    fail(flag.key, fmt::format("'{}' is a range of real numbers, which has no list of values", flag.name),
         fmt::format(R"(write ["--flag", "{{{}}}"])", flag.name));
  }
  for (const space::Value& value : flag.parameter->values) {
    const bool is_there = std::any_of(flag.words.begin(), flag.words.end(),
                                      [&](const auto& entry) { return is_value(*entry.first, value); });
    if (is_there) continue;
    fail(flag.key, fmt::format("has no words for the value {}", space::to_string(value)),
         fmt::format("add \"{}\": [...], or [] for none", space::to_string(value)));
  }
}

SetDocument JobCommand::Parts::document_of(const JobSetFile& entry) const {
  SetDocument document{
      entry.file.filename().string(), entry.file.string(), *file_format_of(entry.file), content_of(entry.file), {}};
  const std::string key = key_below("set", entry.name);
  for (const auto& [name, value] : entry.values) {
    const bool adds = name.rfind('+', 0) == 0;
    const std::string value_key = key_below(key, name);
    document.values.push_back({value_key, adds ? name.substr(1) : name, adds ? IfMissing::kAdd : IfMissing::kRefuse,
                               parsed(value_key, value)});
  }
  return document;
}

// Whether all keys of the file exist does not depend on their values, so it can be checked now.
void JobCommand::Parts::check_document(const SetDocument& document) const {
  std::string text = document.text;
  for (const SetValue& value : document.values) {
    text = at(value.key, document.file + ": ",
              [&] { return with_value(document.format, text, value.path, {"1"}, value.if_missing); });
  }
}

std::string JobCommand::Parts::filled_document(const SetDocument& document, const trial::NamedValues& values) const {
  std::string text = document.text;
  for (const SetValue& value : document.values) {
    const std::string filled_value = filled(value.key, value.value, values);
    text = at(value.key, document.file + ": ", [&] {
      return with_value(document.format, text, value.path, new_value(value.value, filled_value), value.if_missing);
    });
  }
  return text;
}

void JobCommand::Parts::add_flags(std::vector<std::string>& words, const trial::NamedValues& values,
                                  const space::Configuration& configuration) const {
  for (const FlagWords& flag : flags) {
    const bool is_absent = flag.parameter != nullptr && flag.parameter->when && !configuration.has(flag.name);
    if (is_absent) continue;
    const space::Value& value = values.at(flag.name);
    const auto entry = std::find_if(flag.words.begin(), flag.words.end(),
                                    [&](const auto& e) { return !e.first || is_value(*e.first, value); });
    if (entry == flag.words.end()) {
      fail(flag.key, fmt::format("has no words for the value {}", space::to_string(value)),
           fmt::format("add \"{}\": [...], or [] for none", space::to_string(value)));
    }
    for (const Placeholders& word : entry->second) words.push_back(filled(flag.key, word, values));
  }
}

std::vector<std::string> JobCommand::Parts::filled_argv(const trial::NamedValues& values,
                                                        const space::Configuration& configuration) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i == flags_at) add_flags(words, values, configuration);
    words.push_back(filled(word_key("argv", i < flags_at ? i : i + 1), argv[i], values));
  }
  if (flags_at >= argv.size()) add_flags(words, values, configuration);
  return words;
}

std::vector<std::string> JobCommand::Parts::used_names() const {
  std::vector<std::string> used;
  const auto add = [&](const Placeholders& text) {
    const std::vector<std::string> more = text.names();
    used.insert(used.end(), more.begin(), more.end());
  };
  for (const Placeholders& word : argv) add(word);
  for (const auto& [name, value] : environment) add(value);
  for (const FlagWords& flag : flags) {
    used.push_back(flag.name);
    for (const auto& [value, words] : flag.words) std::for_each(words.begin(), words.end(), add);
  }
  for (const auto& [name, text] : templates) add(text);
  for (const SetDocument& document : set) {
    for (const SetValue& value : document.values) add(value.value);
  }
  return used;
}

// Returns whether the job reads the whole configuration from the config.json of each trial's directory.
bool JobCommand::Parts::hands_over_config() const {
  const auto names_file = [](const Placeholders& text) {
    return is_one_of("config", text.names()) || text.text().find("{dir}/config.json") != std::string::npos;
  };
  return std::any_of(argv.begin(), argv.end(), names_file) ||
         std::any_of(environment.begin(), environment.end(), [&](const auto& e) { return names_file(e.second); }) ||
         std::any_of(templates.begin(), templates.end(), [&](const auto& e) { return names_file(e.second); }) ||
         is_one_of("config", used_names());
}

JobCommand::JobCommand(const CommandSpec& spec, const space::Space& space, const JsonObject* block)
    : parts_(std::make_unique<const Parts>(spec, space, block)) {}
JobCommand::~JobCommand() = default;
JobCommand::JobCommand(JobCommand&&) noexcept = default;

JobCommand::Start JobCommand::start(const space::Configuration& configuration, const trial::TrialNames& trial) const {
  const trial::NamedValues values = parts_->names.values(configuration, trial);
  Start start;
  start.argv = parts_->filled_argv(values, configuration);
  for (const auto& [name, value] : parts_->environment)
    start.environment.emplace_back(name, parts_->filled(key_below("env", name), value, values));
  for (const auto& [name, text] : parts_->templates)
    start.files.emplace_back(name, parts_->filled(key_below("templates", name), text, values));
  for (const SetDocument& document : parts_->set)
    start.files.emplace_back(document.name, parts_->filled_document(document, values));
  return start;
}

bool JobCommand::uses(const std::string& name) const { return is_one_of(name, parts_->used_names()); }

void JobCommand::refuse_unused_parameters() const {
  if (parts_->hands_over_config()) return;
  const std::vector<std::string> used = parts_->used_names();
  const space::Space& space = parts_->space;
  for (const space::Parameter& parameter : space.parameters()) {
    const std::string& name = parameter.name;
    const bool follows = name == space::kAccumulation && space.facts().accumulation_follows();
    if (follows || (is_one_of(name, used) && !trial::is_name_of_trial(name))) continue;
    parts_->fail("argv", fmt::format("'{}' appears nowhere, so every trial would measure the same", name),
                 trial::is_name_of_trial(name)
                     ? fmt::format("call it otherwise: {{{}}} is the trial's own", name)
                     : fmt::format("write {{{}}} in argv, env, flags, templates or set, or {{config}} in argv", name));
  }
}

void check_job(const CommandSpec& spec, const space::Space& space, const std::optional<space::Configuration>& baseline,
               const JsonObject& block) {
  constexpr int kTried = 16;
  const JobCommand command(spec, space, &block);
  command.refuse_unused_parameters();
  if (baseline) command.start(*baseline, {});
  Rng rng(1, 0);
  for (int i = 0; i < kTried; ++i) command.start(space.sample(rng), {});
}

void write_job_files(const JobCommand::Start& start, const std::filesystem::path& directory) {
  for (const auto& [name, text] : start.files) {
    const std::filesystem::path file = directory / name;
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    write_atomically(file, text);
  }
}

}  // namespace krigtune::runner
