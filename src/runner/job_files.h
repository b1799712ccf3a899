#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/block.h"

namespace krigtune::runner {

struct CommandSpec;

/// A key of "flags": the words that stand for the values of one parameter. One entry without a value: these words for
/// every value, and none where the parameter does not exist.
struct JobFlag {
  struct Words {
    std::optional<std::string> value;
    std::vector<std::string> words;
  };
  std::string parameter;
  std::vector<Words> words;
};

/// A key of "templates": a file with placeholders, under a name in the trial's directory.
struct JobTemplate {
  std::string name;
  std::filesystem::path file;  ///< absolute
};

/// A key of "set": a copy of a YAML, TOML or JSON file with some of its values replaced in place (in_place_edit.h).
struct JobSetFile {
  std::string name;                                         ///< as the session has it
  std::filesystem::path file;                               ///< absolute; the copy has its base name
  std::vector<std::pair<std::string, std::string>> values;  ///< key ("+key": added where it is missing) and value
};

/// What turns a configuration into the user's command: the keys flags, templates, set and files of the runner command.
struct JobFiles {
  std::vector<JobFlag> flags;
  std::vector<JobTemplate> templates;
  std::vector<JobSetFile> set;
  /// What the files of templates and set said when they were read, by path: a run goes on with that.
  std::map<std::string, std::string> contents;
};

/// "templates/conf~1train.yaml": a key of the user's below a key of a block (RFC 6901).
std::string key_below(const std::string& block, const std::string& key);

/// The keys of JobFiles, whose paths are relative to `base_dir`.
void add_job_files(Block<CommandSpec>& block, const std::filesystem::path& base_dir);

}  // namespace krigtune::runner
