#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "space/configuration.h"

// The values in a configuration file of a training job: YAML, TOML or JSON.
namespace krigtune::jobs {

/// Scalars by dotted key: "training.local_batch_size"; list elements by position: "modules.0". Null values are left
/// out.
using ConfigValues = std::map<std::string, space::Value>;

/// Selects the format by the file's suffix: .toml, .json, .py (top-level lines NAME = VALUE, as nanoGPT's), otherwise
/// YAML. Throws UserError with file and line.
ConfigValues read_config_values(const std::filesystem::path& file);
/// `suffix`: ".toml", ".json", ".py", ".yaml"; `source` names the text in errors.
ConfigValues config_values_of(std::string_view text, std::string_view suffix, const std::string& source);

}  // namespace krigtune::jobs
