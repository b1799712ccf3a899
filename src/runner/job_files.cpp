// The session keys that turn a configuration into a command with its files: they are read, checked and written here.
#include "runner/job_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "runner/command.h"
#include "runner/in_place_edit.h"

namespace krigtune::runner {

std::string key_below(const std::string& block, const std::string& key) {
  std::string pointer = block + "/";
  for (const char c : key) pointer += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return pointer;
}

namespace {

constexpr std::uintmax_t kLargestJobFile = std::uintmax_t{1} << 22;

// Files that krigtune itself writes into a trial's directory or a run directory.
constexpr const char* kOwnFiles[] = {"config.json",
                                     "result.json",
                                     "cmd.txt",
                                     "env.txt",
                                     "exit.json",
                                     "stdout.log",
                                     "stderr.log",
                                     "session.json",
                                     "journal.log",
                                     "trials.csv",
                                     "best.json",
                                     "config_optimal.json",
                                     "cmd_optimal.txt",
                                     "predictions.csv",
                                     "ds_config_optimal.json",
                                     "report.html",
                                     "result_optimal.json",
                                     "changes.md",
                                     "result.json.progress",
                                     "trials"};

std::vector<std::string> text_list(const JsonObject& block, const std::string& key, const Json& json) {
  const bool is_list =
      json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& word) { return word.is_string(); });
  if (!is_list) block.fail(key, "a list of words was expected", R"(write ["--flag", "value"], or [])");
  return json.get<std::vector<std::string>>();
}

const Json& object_at(const JsonObject& block, const std::string& key, const Json& json, const char* example) {
  if (!json.is_object()) block.fail(key, "an object was expected", fmt::format("write {}", example));
  return json;
}

void read_flags(JsonObject& block, CommandSpec& spec) {
  const Json* flags = block.find("flags");
  if (flags == nullptr) return;
  constexpr const char* kExample = R"({"PARAMETER": {"VALUE": ["--flag"]}})";
  for (const auto& [parameter, words] : object_at(block, "flags", *flags, kExample).items()) {
    const std::string key = key_below("flags", parameter);
    JobFlag flag{parameter, {}};
    if (words.is_array()) {
      flag.words.push_back({std::nullopt, text_list(block, key, words)});
    } else {
      for (const auto& [value, list] : object_at(block, key, words, R"({"VALUE": ["--flag"]})").items())
        flag.words.push_back({value, text_list(block, key_below(key, value), list)});
    }
    spec.job.flags.push_back(std::move(flag));
  }
}

Json flags_json(const CommandSpec& spec) {
  Json flags = Json::object();
  for (const JobFlag& flag : spec.job.flags) {
    Json& words = flags[flag.parameter] = Json::object();
    for (const JobFlag::Words& entry : flag.words) {
      if (entry.value) words[*entry.value] = entry.words;
      if (!entry.value) words = entry.words;
    }
  }
  return flags;
}

// Reads the file, or takes its contents at the start of the run if the session has them.
void read_contents(JsonObject& block, const std::string& key, const std::filesystem::path& file, CommandSpec& spec) {
  const Json* known = block.find("files");
  if (known != nullptr && known->is_object() && known->contains(file.string()) &&
      known->at(file.string()).is_string()) {
    spec.job.contents[file.string()] = known->at(file.string()).get<std::string>();
    return;
  }
  try {
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) > kLargestJobFile)
      throw UserError(fmt::format("'{}' is larger than 4 MiB", file.string()), "name a smaller file");
    std::string text = read_text(file);
    static_cast<void>(Json(text).dump());  // throws if session.json cannot contain it
    spec.job.contents[file.string()] = std::move(text);
  } catch (const UserError& error) {
    block.fail(key, error.what(), "");
  } catch (const Json::exception&) {
    block.fail(key, fmt::format("'{}' is not UTF-8 text", file.string()), "name a text file");
  }
}

std::filesystem::path job_file(const std::filesystem::path& base_dir, const std::string& name) {
  return std::filesystem::absolute(base_dir / name).lexically_normal();
}

// Checks that a name is inside the directory and not used by anything else.
void check_job_file_name(const JsonObject& block, const std::string& key, const std::string& name,
                         const CommandSpec& spec) {
  const std::filesystem::path path = std::filesystem::path(name).lexically_normal();
  const bool is_inside = !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
                         path.has_filename() && *path.begin() != ".." && path != ".";
  if (!is_inside)
    block.fail(key, "is not the name of a file in the trial's directory", "write for example \"train.yaml\"");
  if (is_one_of(path.begin()->string(), kOwnFiles)) {
    block.fail(key, fmt::format("'{}' is a file of krigtune's own", path.begin()->string()), "choose another name");
  }
  const auto is_taken = [&](const std::filesystem::path& other) { return other.lexically_normal() == path; };
  const std::vector<JobTemplate>& templates = spec.job.templates;
  const std::vector<JobSetFile>& set = spec.job.set;
  if (std::any_of(templates.begin(), templates.end(), [&](const JobTemplate& other) { return is_taken(other.name); }) ||
      std::any_of(set.begin(), set.end(), [&](const JobSetFile& other) { return is_taken(other.file.filename()); })) {
    block.fail(key, fmt::format("'{}' is written twice", path.string()), "choose another name");
  }
}

void read_templates(JsonObject& block, CommandSpec& spec, const std::filesystem::path& base_dir) {
  const Json* templates = block.find("templates");
  if (templates == nullptr) return;
  constexpr const char* kExample = R"({"train.yaml": "train.template.yaml"})";
  for (const auto& [name, file] : object_at(block, "templates", *templates, kExample).items()) {
    const std::string key = key_below("templates", name);
    check_job_file_name(block, key, name, spec);
    if (!file.is_string()) block.fail(key, "the name of a file was expected", fmt::format("write {}", kExample));
    spec.job.templates.push_back({name, job_file(base_dir, file.get<std::string>())});
    read_contents(block, key, spec.job.templates.back().file, spec);
  }
}

Json templates_json(const CommandSpec& spec) {
  Json templates = Json::object();
  for (const JobTemplate& entry : spec.job.templates) templates[entry.name] = entry.file.string();
  return templates;
}

std::string set_text(const JsonObject& block, const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  block.fail(key, "a text, a number, true or false was expected", "write \"{micro_batch}\"");
}

void read_set(JsonObject& block, CommandSpec& spec, const std::filesystem::path& base_dir) {
  const Json* set = block.find("set");
  if (set == nullptr) return;
  constexpr const char* kExample = R"({"train.yaml": {"training.batch_size": "{micro_batch}"}})";
  for (const auto& [name, values] : object_at(block, "set", *set, kExample).items()) {
    const std::string key = key_below("set", name);
    JobSetFile entry{name, job_file(base_dir, name), {}};
    check_job_file_name(block, key, entry.file.filename().string(), spec);
    if (!file_format_of(entry.file))
      block.fail(key, "is not a YAML, TOML or JSON file by its name",
                 "name a .yaml, .yml, .toml or .json file, or use \"templates\"");
    for (const auto& [place, value] : object_at(block, key, values, R"({"KEY": "{micro_batch}"})").items()) {
      const std::string text = set_text(block, key_below(key, place), value);
      const std::string names = fmt::format(".{}.", place.substr(place.rfind('+', 0) == 0 ? 1 : 0));
      if (names.find("..") != std::string::npos)
        block.fail(key_below(key, place), "is not a key",
                   "write names with dots between them: \"training.batch_size\"");
      entry.values.emplace_back(place, text);
    }
    spec.job.set.push_back(std::move(entry));
    read_contents(block, key, spec.job.set.back().file, spec);
  }
}

Json set_json(const CommandSpec& spec) {
  Json set = Json::object();
  for (const JobSetFile& entry : spec.job.set) {
    Json& values = set[entry.file.string()] = Json::object();
    for (const auto& [key, value] : entry.values) values[key] = value;
  }
  return set;
}

void check_known_contents(JsonObject& block, CommandSpec& /*spec*/) {
  const Json* files = block.find("files");
  if (files == nullptr) return;
  for (const auto& [name, text] : object_at(block, "files", *files, R"({"/path": "text"})").items()) {
    if (!text.is_string()) block.fail(key_below("files", name), "a text was expected", "leave \"files\" out");
  }
}

}  // namespace

void add_job_files(Block<CommandSpec>& block, const std::filesystem::path& base_dir) {
  const Json words = schema::list(schema::text());
  block.custom("flags", schema::map(schema::either({words, schema::map(words)})),
               "parameter -> value -> words, which replace the word {flags} of argv or are appended; a list is used "
               "for every value, and left out if the parameter does not exist",
               read_flags, flags_json);
  block.custom(
      "templates", schema::map(schema::text()),
      "name in the trial's directory ({dir}/name) -> file with placeholders, relative to the session",
      [base_dir](JsonObject& object, CommandSpec& spec) { read_templates(object, spec, base_dir); }, templates_json);
  block.custom(
      "set", schema::map(schema::map(schema::scalar())),
      "YAML, TOML or JSON file, relative to the session -> key -> value with placeholders; the trial's directory gets "
      "a copy with these values under the file's base name; \"+key\" adds a missing key",
      [base_dir](JsonObject& object, CommandSpec& spec) { read_set(object, spec, base_dir); }, set_json);
  block.custom("files", schema::map(schema::text()),
               "contents of the files of templates and set, by path; a run's session.json has them, so that the run "
               "continues with what they were when it began",
               check_known_contents, [](const CommandSpec& spec) { return Json(spec.job.contents); });
}

}  // namespace krigtune::runner
