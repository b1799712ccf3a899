#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "report/run_view.h"

namespace krigtune::result {

/// A file of another tool's, made of a configuration.
struct ExportedFile {
  std::string name;
  std::string text;
  std::string use;  ///< one line: what to do with it
};

/// What a run can be written as: one file of code and one line in the registry.
struct ExportFormat {
  const char* name;
  const char* summary;  ///< one line
  /// Of run.best. `directory`: where the files will lie, absolute. Throws UserError where the run has no such thing.
  std::vector<ExportedFile> (*files)(const report::RunView& run, const std::filesystem::path& directory);
};

std::vector<ExportFormat> export_formats();
/// Throws UserError with what there is; `where` says where the name stood.
ExportFormat export_format_from(const std::string& name, const std::string& where);

// One exporter a file; export.cpp is their registry.
std::vector<ExportedFile> export_deepspeed(const report::RunView& run, const std::filesystem::path& directory);
std::vector<ExportedFile> export_accelerate(const report::RunView& run, const std::filesystem::path& directory);
std::vector<ExportedFile> export_csv(const report::RunView& run, const std::filesystem::path& directory);

inline constexpr const char* kDsConfigFile = "ds_config.json";

/// run.best as DeepSpeed reads it. Throws UserError: the session says nothing of a training.
Json exported_ds_config(const report::RunView& run);

}  // namespace krigtune::result
