#include "krigtune/runner/deepspeed/ds_begun.h"

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/ds_config.h"

namespace krigtune {

Json begun_ds_config(const DeepSpeedSpec& spec) {
  if (spec.ds_config_text.empty()) return load_ds_config(spec.ds_config);
  return read_ds_config(spec.ds_config_text, spec.ds_config.string());
}

std::filesystem::path begun_ds_config_path(const std::filesystem::path& run_directory) {
  return run_directory / "ds_config_begun.json";
}

bool has_changed_since(const DeepSpeedSpec& spec) {
  if (spec.ds_config_text.empty()) return false;
  try {
    return read_text(spec.ds_config) != spec.ds_config_text;
  } catch (const UserError&) {
    return true;
  }
}

}  // namespace krigtune
