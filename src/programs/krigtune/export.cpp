// krigtune export: the best configuration, or a trial's, as files of other tools.
#include "result/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/session_state.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kHighestTrial = 1'000'000'000;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const result::ExportFormat& format : result::export_formats()) names.emplace_back(format.name);
  return names;
}

void declare_export(boost::program_options::options_description& options) {
  options.add_options()(
      "format", typed_value_named("FORMATS", {format_names(), true}),
      fmt::format("any of {}; several with commas between (required)", join(format_names(), ", ")).c_str());
  options.add_options()("trial", typed_value_named("N"), "that trial's configuration instead of the best");
  options.add_options()("out", typed_value_named("FOLDER"), "where the files go (default: DIR/export)");
}

std::vector<result::ExportFormat> formats_of(const Arguments& arguments) {
  std::vector<result::ExportFormat> formats;
  for (const std::string& name : arguments.list("format")) {
    formats.push_back(result::export_format_from(name, arguments.named("format")));
  }
  if (formats.empty()) throw UserError("--format is missing", "name one of " + join(format_names(), ", "));
  return formats;
}

const journal::Trial& trial_of(const search::History& history, std::int64_t number, const std::string& where) {
  const auto found =
      std::find_if(history.begin(), history.end(), [&](const journal::Trial& trial) { return trial.number == number; });
  if (found != history.end()) return *found;
  throw UserError(fmt::format("{}: the run has no trial {}", where, number), "krigtune results lists them");
}

// The run as if that trial were all there is.
report::RunView only(const report::RunView& run, const search::History& the_trial) {
  search::Recommendation chosen;
  chosen.trial = the_trial.front().number;
  chosen.configuration = the_trial.front().proposal.configuration;
  return {run.session, the_trial, run.name, run.options, run.directory, run.bench, chosen};
}

std::vector<result::ExportedFile> files_of(const report::RunView& run, const std::vector<result::ExportFormat>& formats,
                                           const std::filesystem::path& directory) {
  std::vector<result::ExportedFile> files;
  for (const result::ExportFormat& format : formats) {
    for (result::ExportedFile& file : format.files(run, directory)) {
      const bool is_there = std::any_of(files.begin(), files.end(),
                                        [&](const result::ExportedFile& other) { return other.name == file.name; });
      if (!is_there) files.push_back(std::move(file));
    }
  }
  return files;
}

void print_files(const Context& context, const report::RunView& run, const std::filesystem::path& directory,
                 const std::vector<result::ExportedFile>& files) {
  if (!context.arguments.flag("json")) {
    context.console.out << fmt::format("trial {}: {}\n", run.best->trial, run.best->configuration.text());
    for (const result::ExportedFile& file : files) {
      context.console.out << fmt::format("{}: {}\n", (directory / file.name).string(), file.use);
    }
    return;
  }
  Json json = new_document("export");
  json["trial"] = run.best->trial;
  json["configuration"] = space::to_json(run.best->configuration);
  json["files"] = Json::array();
  for (const result::ExportedFile& file : files) {
    json["files"].push_back({{"file", (directory / file.name).string()}, {"use", file.use}});
  }
  print(context, json);
}

int export_run(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::vector<result::ExportFormat> formats = formats_of(arguments);
  const std::optional<std::int64_t> number = arguments.integer("trial", 0, kHighestTrial);
  const LoadedRun loaded(context, arguments.operand());
  search::History the_trial;
  if (number) the_trial.push_back(trial_of(loaded.history, *number, arguments.named("trial")));
  const report::RunView whole = loaded.view(context.console);
  const report::RunView run = number ? only(whole, the_trial) : whole;
  if (!run.best) {
    context.log.error("no trial is ok yet, so there is no best one; name another with --trial");
    return ExitCode::kNoResult;
  }
  const std::filesystem::path directory =
      std::filesystem::absolute(arguments.text("out", (loaded.directory / "export").string())).lexically_normal();
  const std::vector<result::ExportedFile> files = files_of(run, formats, directory);
  make_writable_directory(directory);
  for (const result::ExportedFile& file : files) write_atomically(directory / file.name, file.text);
  print_files(context, run, directory, files);
  return ExitCode::kDone;
}

}  // namespace

Command export_command() {
  return {"export",
          "DIR",
          "Writes the best configuration, or a trial's, as files of other tools",
          "DIR is a run directory. The files go to DIR/export: ds_config.json for DeepSpeed, configurations for\n"
          "accelerate launch (with DeepSpeed, and the nearest that FSDP has), the trials as CSV.",
          declare_export,
          export_run};
}

}  // namespace krigtune::cli
