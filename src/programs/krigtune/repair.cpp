// krigtune repair: finds what is wrong with the record of a run directory, and fixes it.
#include "run/repair.h"

#include <fmt/format.h>

#include "core/text.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/document.h"

namespace krigtune::cli {
namespace {

void declare_repair(boost::program_options::options_description& options) {
  options.add_options()("look", "only show what is wrong");
}

Json repair_json(const run::Repair& repair, const std::filesystem::path& kept, bool is_repaired) {
  Json json = new_document("repair");
  json["findings"] = repair.findings;
  json["trials"] = repair.trials.size();
  json["recovered_from_trials_csv"] = repair.recovered;
  json["repaired"] = is_repaired;
  json["kept"] = kept.empty() ? Json(nullptr) : Json(kept.string());
  return json;
}

int repair_run(const Context& context) {
  const std::filesystem::path directory = context.arguments.operand();
  const run::RunRecord record = run::load_run(directory);
  const run::Repair repair = run::examine(record, directory);
  const bool is_repaired = !repair.findings.empty() && !context.arguments.flag("look");
  const std::filesystem::path kept =
      is_repaired ? run::apply(repair, record, directory, context.console.clock) : std::filesystem::path();
  if (context.arguments.flag("json")) {
    print(context, repair_json(repair, kept, is_repaired));
    return ExitCode::kDone;
  }
  for (const std::string& finding : repair.findings) context.log.progress(finding);
  if (repair.findings.empty()) context.log.progress(directory.string() + ": nothing is wrong with its journal");
  if (!is_repaired) return ExitCode::kDone;
  context.log.progress(fmt::format("{}: the journal is rebuilt with {}, {} of them from trials.csv{}",
                                   directory.string(), counted(std::ssize(repair.trials), "trial"), repair.recovered,
                                   kept.empty() ? "" : "; the old one is kept as " + kept.string()));
  return ExitCode::kDone;
}

}  // namespace

Command repair_command() {
  return {"repair",
          "DIR",
          "Rebuilds the damaged or lost journal of a run directory",
          "Uses the readable lines of the journal, and trials.csv for what they lack. Trials that were "
          "running when tune died are closed as interrupted. The old journal is kept, and the same tune "
          "command then continues.",
          declare_repair,
          repair_run};
}

}  // namespace krigtune::cli
