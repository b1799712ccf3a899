#pragma once
#include "krigtune/core/json.h"
#include "krigtune/report/export.h"

namespace krigtune {

// One exporter a file; export.cpp is their registry.
std::vector<ExportedFile> export_deepspeed(const RunView& run, const std::filesystem::path& directory);
std::vector<ExportedFile> export_accelerate(const RunView& run, const std::filesystem::path& directory);
std::vector<ExportedFile> export_csv(const RunView& run, const std::filesystem::path& directory);

inline constexpr const char* kDsConfigFile = "ds_config.json";

/// run.best as DeepSpeed reads it. Throws UserError: the session says nothing of a training.
Json exported_ds_config(const RunView& run);

}  // namespace krigtune
