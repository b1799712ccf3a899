// krigtune export: writes the best configuration, or that of a trial, as files for other tools.
#include "result/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/prefer.h"
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
      fmt::format("one or more of {}, separated by commas (required)", join(format_names(), ", ")).c_str());
  options.add_options()("spreadsheet-safe",
                        "with csv: put an apostrophe before each text that a spreadsheet would read as a formula");
  options.add_options()("trial", typed_value_named("N"), "export this trial instead of the best configuration");
  declare_prefer(options);
  options.add_options()("out", typed_value_named("FOLDER"), "write the files to FOLDER (default: DIR/export)");
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
  if (const journal::Trial* found = search::find_trial(history, number)) return *found;
  throw UserError(fmt::format("{}: the run has no trial {}", where, number), "krigtune results lists them");
}

// Returns the run as if that trial were the only one.
report::RunView only(const report::RunView& run, const search::History& the_trial) {
  search::Recommendation chosen;
  chosen.trial = the_trial.front().number;
  chosen.configuration = the_trial.front().proposal.configuration;
  return run.with(the_trial, answer::answer_of(run.session, the_trial, chosen));
}

result::Export made_of(const report::RunView& run, const std::vector<result::ExportFormat>& formats,
                       const std::filesystem::path& directory) {
  result::Export all;
  std::set<std::string> names;
  for (const result::ExportFormat& format : formats) {
    result::Export made = format.make(run, directory);
    for (result::ExportedFile& file : made.files) {
      if (names.insert(file.name).second) all.files.push_back(std::move(file));
    }
    for (result::Omission& one : made.omissions) {
      const bool is_there = std::any_of(all.omissions.begin(), all.omissions.end(), [&](const auto& other) {
        return other.file == one.file && other.setting == one.setting;
      });
      if (!is_there) all.omissions.push_back(std::move(one));
    }
  }
  return all;
}

void make_spreadsheet_safe(result::Export& made) {
  bool has_table = false;
  for (result::ExportedFile& file : made.files) {
    if (!file.name.ends_with(".csv")) continue;
    file.text = spreadsheet_safe(file.text);
    has_table = true;
  }
  if (!has_table) throw UserError("--spreadsheet-safe applies only to CSV", "add --format csv, or leave it out");
}

// In a folder that the user names: the hash of every file there, as the last export left it.
constexpr const char* kHashes = ".krigtune_export.json";

std::string hash_of(const std::string& text) {
  Fnv1a64 hash;
  hash.add(text.data(), text.size());
  return hash.hex();
}

Json hashes_in(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path file = directory / kHashes;
  if (!std::filesystem::is_regular_file(file, error)) return Json::object();
  Json hashes = json_or_discarded(read_text(file));
  return hashes.is_object() ? hashes : Json::object();
}

// A file of the user is not replaced, nor one that the user has changed since it was exported. Records what this export
// is about to write.
void refuse_to_overwrite(const std::filesystem::path& directory, const std::vector<result::ExportedFile>& files) {
  Json hashes = hashes_in(directory);
  for (const result::ExportedFile& file : files) {
    const std::filesystem::path path = directory / file.name;
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      const std::string hash = hash_of(read_text(path));
      if (hash != hash_of(file.text) && hashes.value(file.name, Json()) != hash) {
        throw UserError(
            fmt::format("export: '{}' exists, and krigtune export did not write it as it is now", path.string()),
            "move it away, or choose another folder with --out");
      }
    }
    hashes[file.name] = hash_of(file.text);
  }
  make_writable_directory(directory);
  write_derived(directory / kHashes, hashes.dump(1) + "\n");
}

// MLflow's store has about twenty files for each trial. All can be made again from the journal, so they are synced
// together.
void write_files(const std::filesystem::path& directory, const std::vector<result::ExportedFile>& files) {
  make_writable_directory(directory);
  for (const result::ExportedFile& file : files) {
    const std::filesystem::path path = directory / file.name;
    if (!std::filesystem::exists(path.parent_path())) make_writable_directory(path.parent_path());
    write_derived(path, file.text);
  }
  sync_file_system(directory);
}

void print_text(std::ostream& out, const report::RunView& run, const std::filesystem::path& directory,
                const result::Export& made) {
  if (run.answer.best)
    out << fmt::format("trial {}: {}\n", run.answer.best->trial, run.answer.best->configuration.text());
  for (const result::ExportedFile& file : made.files) {
    if (!file.use.empty()) out << fmt::format("{}: {}\n", (directory / file.name).string(), file.use);
  }
  for (const result::Omission& one : made.omissions) {
    out << fmt::format("{} cannot express {} = {}: {}\n", one.file, one.setting, space::to_string(one.value), one.why);
  }
}

void print_export(const Context& context, const report::RunView& run, const std::filesystem::path& directory,
                  const result::Export& made) {
  if (!context.arguments.flag("json")) return print_text(context.console.out, run, directory, made);
  Json json = new_document("export");
  json["trial"] = run.answer.best ? Json(run.answer.best->trial) : Json(nullptr);
  json["configuration"] = run.answer.best ? space::to_json(run.answer.best->configuration) : Json(nullptr);
  json["files"] = Json::array();
  for (const result::ExportedFile& file : made.files) {
    json["files"].push_back({{"file", (directory / file.name).string()}, {"use", file.use}});
  }
  json["omissions"] = Json::array();
  for (const result::Omission& one : made.omissions) {
    json["omissions"].push_back(
        {{"file", one.file}, {"setting", one.setting}, {"value", space::to_json(one.value)}, {"why", one.why}});
  }
  print(context, json);
}

// The model of very many trials is conditioned on a part of them, which need not have the pick.
bool recommends_the_pick(const report::RunView& run) {
  const answer::Answer& answer = run.answer;
  return !answer.pick || !answer.best || answer.front[*answer.pick].configuration == answer.best->configuration;
}

int export_run(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::vector<result::ExportFormat> formats = formats_of(arguments);
  std::optional<std::int64_t> number = arguments.integer("trial", 0, kHighestTrial);
  LoadedRun loaded(context, arguments.operand());
  apply_prefer(context, loaded.prepared.session);
  if (arguments.text(kPrefer) && number) throw UserError("--prefer and --trial cannot be combined", "leave one out");
  const report::RunView whole = loaded.view(context.console);
  require_preferred(context, whole.session, whole.answer.front);
  if (!number && !recommends_the_pick(whole)) number = whole.answer.front[*whole.answer.pick].trial;
  search::History the_trial;
  if (number) the_trial.push_back(trial_of(loaded.history, *number, arguments.named("trial")));
  const report::RunView run = number ? only(whole, the_trial) : whole;
  if (!run.answer.best && !std::all_of(formats.begin(), formats.end(), [](const auto& one) { return one.of_trials; })) {
    context.log.error(
        "no trial has succeeded yet, so there is no best one; name another with --trial, or export all trials (csv, "
        "json, tensorboard, mlflow)");
    return ExitCode::kNoResult;
  }
  const std::filesystem::path directory =
      std::filesystem::absolute(arguments.text("out", (loaded.directory / "export").string())).lexically_normal();
  result::Export made = made_of(run, formats, directory);
  if (arguments.flag("spreadsheet-safe")) make_spreadsheet_safe(made);
  if (directory != std::filesystem::absolute(loaded.directory / "export").lexically_normal())
    refuse_to_overwrite(directory, made.files);
  write_files(directory, made.files);
  print_export(context, run, directory, made);
  return ExitCode::kDone;
}

}  // namespace

Command export_command() {
  return {"export",
          "DIR",
          "Writes the best configuration as files for other tools",
          "DIR is a run directory; the files go to DIR/export. For the best configuration or a trial: "
          "ds_config.json (DeepSpeed), configurations for accelerate launch (FSDP or DeepSpeed), a "
          "torchtitan job file, Megatron-LM flags, the predicted step as a trace for Perfetto. For all "
          "trials: TensorBoard event files, MLflow runs, a summary in Markdown, CSV, JSON. export lists "
          "the settings that a format cannot express.",
          declare_export,
          export_run};
}

}  // namespace krigtune::cli
