#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "krigtune/runner/deepspeed/deepspeed_spec.h"

// The user's ds_config.json as the session began with it: people go on editing the file, and a trial must mean the same
// at the end of a session as at its beginning.
namespace krigtune {

/// As load_ds_config (ds_config.h), of spec.ds_config_text, or where that is empty of the file as it is now.
nlohmann::ordered_json begun_ds_config(const DeepSpeedSpec& spec);

/// The run directory's copy of the file: ds_config_begun.json.
std::filesystem::path begun_ds_config_path(const std::filesystem::path& run_directory);

/// Whether the file is another one by now, or gone. False where the text of the beginning is not known.
bool has_changed_since(const DeepSpeedSpec& spec);

}  // namespace krigtune
