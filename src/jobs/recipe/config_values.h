#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "space/configuration.h"

// What a configuration file of a training job says: YAML, TOML or JSON.
namespace krigtune::jobs {

/// Scalars by dotted key: "training.local_batch_size"; elements of a list by their position: "modules.0". What is null
/// is not there.
using ConfigValues = std::map<std::string, space::Value>;

/// By the file's suffix: .toml, .json, else YAML. Throws UserError with file and line.
ConfigValues read_config_values(const std::filesystem::path& file);
/// `suffix`: ".toml", ".json", ".yaml"; `source` names the text in errors.
ConfigValues config_values_of(std::string_view text, std::string_view suffix, const std::string& source);

}  // namespace krigtune::jobs
