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

/// A key of "flags": the words for each value of one parameter. A single entry without a value gives the words for
/// every value; if the parameter does not exist there are none.
struct JobFlag {
  struct Words {
    std::optional<std::string> value;
    std::vector<std::string> words;
  };
  std::string parameter;
  std::vector<Words> words;
};

/// A key of "templates": a file with placeholders, and its name in the trial's directory.
struct JobTemplate {
  std::string name;
  std::filesystem::path file;  ///< absolute
};

/// A key of "set": a copy of a YAML, TOML or JSON file with some of its values replaced in place (in_place_edit.h).
struct JobSetFile {
  std::string name;                                         ///< as in the session
  std::filesystem::path file;                               ///< absolute; the copy has its base name
  std::vector<std::pair<std::string, std::string>> values;  ///< key ("+key": added if missing) and value
};

/// How a configuration becomes the user's command: the keys flags, templates, set and files of the runner command.
struct JobFiles {
  std::vector<JobFlag> flags;
  std::vector<JobTemplate> templates;
  std::vector<JobSetFile> set;
  /// Contents of the files of templates and set when they were read, by path; a continued run keeps using these.
  std::map<std::string, std::string> contents;
};

/// Returns "templates/conf~1train.yaml": a user's key below a key of a block (RFC 6901).
std::string key_below(const std::string& block, const std::string& key);

/// Adds the keys of JobFiles, whose paths are relative to `base_dir`.
void add_job_files(Block<CommandSpec>& block, const std::filesystem::path& base_dir);

}  // namespace krigtune::runner
