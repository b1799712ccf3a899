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

/// A file of another tool's.
struct ExportedFile {
  std::string name;  ///< relative to the folder of the export; it may name folders below it
  std::string text;
  std::string use;  ///< one line: what to do with it; "": it belongs to a file that says so
};

/// A setting of the configuration that a file has no words for. Whoever uses the file must know.
struct Omission {
  std::string file;     ///< "ds_config.json"
  std::string setting;  ///< the parameter's name
  space::Value value;
  std::string why;  ///< a clause, with what to do where that is known
};

struct Export {
  std::vector<ExportedFile> files;
  std::vector<Omission> omissions = {};
};

/// What a run can be written as: one file of code and one line in the registry.
struct ExportFormat {
  const char* name;
  const char* summary;  ///< one line
  bool of_trials;       ///< it needs no run.best
  /// Of run.best, or of all trials. `directory`: where the files will lie, absolute. Throws UserError where the run has
  /// no such thing.
  Export (*make)(const report::RunView& run, const std::filesystem::path& directory);
};

std::vector<ExportFormat> export_formats();
/// Throws UserError with what there is, and for a format that cannot be written with the reason and what to use
/// instead; `where` says where the name stood.
ExportFormat export_format_from(const std::string& name, const std::string& where);

// One exporter a file; export.cpp is their registry.
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

/// run.best as DeepSpeed reads it. Throws UserError: the session says nothing of a training.
Json exported_ds_config(const report::RunView& run);

/// Whether run.best is what the model recommends. A trial that was asked for by its number has no posterior.
bool is_recommended(const report::RunView& run);

/// A parameter of recipes: ranks that share a sequence, beside those of tensor_parallel.
inline constexpr const char* kContextParallel = "context_parallel";

/// Ranks with a micro-batch of their own, of so many in all; 1 where these do not split so.
std::int64_t data_ranks_of(const space::Configuration& configuration, std::int64_t ranks);

/// Whether it changes nothing beside the other settings, as the well-known parameters say.
bool has_no_effect(const space::Configuration& configuration, const std::string& parameter);
/// Whether a training that is not told the setting does the same: it asks for nothing (no offload, one pipeline stage,
/// nothing recomputed), or has no effect beside the others. Then it is no omission. False for parameters that nobody
/// but the user knows.
bool asks_for_nothing(const space::Configuration& configuration, const std::string& parameter);

}  // namespace krigtune::result
