#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "report/run_view.h"

// What `krigtune export` writes: a run, or one of its configurations, as files of other tools.
//
//   for (const ExportFormat& format : export_formats()) {
//     const Export made = format.make(run, directory);
//     for (const ExportedFile& file : made.files) write_derived(directory / file.name, file.text);
//   }
namespace krigtune::result {

/// A file of another tool.
struct ExportedFile {
  std::string name;  ///< relative to the folder of the export; may contain subfolders
  std::string text;
  std::string use;  ///< one line: how to use it; "": another file's line covers it
};

/// A setting of the configuration that a file cannot express; the user of the file must know it.
struct Omission {
  std::string file;     ///< "ds_config.json"
  std::string setting;  ///< the parameter's name
  space::Value value;
  std::string why;  ///< a clause, with the remedy if known
};

struct Export {
  std::vector<ExportedFile> files;
  std::vector<Omission> omissions = {};
};

/// A format in which a run can be written: one source file and one line in the registry.
struct ExportFormat {
  const char* name;
  const char* summary;  ///< one line
  bool of_trials;       ///< it exports trials and does not need run.answer.best
  /// Exports run.answer.best or all trials. `directory`: absolute path of the files. Throws UserError if the run does
  /// not have them.
  Export (*make)(const report::RunView& run, const std::filesystem::path& directory);
};

std::vector<ExportFormat> export_formats();
/// Throws UserError with the available formats; for a format that cannot be written, with the reason and what to use
/// instead. `where` says where the name was given.
ExportFormat export_format_from(const std::string& name, const std::string& where);

// One exporter per source file; export.cpp is their registry.
Export export_deepspeed(const report::RunView& run, const std::filesystem::path& directory);
Export export_accelerate(const report::RunView& run, const std::filesystem::path& directory);
Export export_torchtitan(const report::RunView& run, const std::filesystem::path& directory);
Export export_megatron(const report::RunView& run, const std::filesystem::path& directory);
Export export_trace(const report::RunView& run, const std::filesystem::path& directory);
Export export_tensorboard(const report::RunView& run, const std::filesystem::path& directory);
Export export_mlflow(const report::RunView& run, const std::filesystem::path& directory);
Export export_markdown(const report::RunView& run, const std::filesystem::path& directory);
Export export_csv(const report::RunView& run, const std::filesystem::path& directory);
Export export_json(const report::RunView& run, const std::filesystem::path& directory);

inline constexpr const char* kDsConfigFile = "ds_config.json";

/// Returns run.answer.best in DeepSpeed's format. Throws UserError if the session describes no training job.
Json exported_ds_config(const report::RunView& run);

/// Returns whether run.answer.best is the model's recommendation. A trial requested by its number has no posterior.
bool is_recommended(const report::RunView& run);

/// Returns how many of `ranks` ranks have their own micro-batch; 1 if they cannot be divided this way.
std::int64_t data_ranks_of(const space::Configuration& configuration, std::int64_t ranks);

/// Returns whether the parameter has no effect with the other settings, according to the well-known parameters.
bool has_no_effect(const space::Configuration& configuration, const std::string& parameter);
/// Returns whether a training job behaves the same without the setting, because it turns a feature off (no offload, one
/// pipeline stage, no recomputation) or has no effect with the others. Then leaving it out is not an omission. False
/// for the user's own parameters.
bool asks_for_nothing(const space::Configuration& configuration, const std::string& parameter);

}  // namespace krigtune::result
