// krigtune report: shows a run directory as one HTML page.
#include "programs/krigtune/report.h"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "journal/lock.h"
#include "page/report/report_page.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/prefer.h"
#include "programs/krigtune/session_state.h"

namespace krigtune::cli {

void write_page(const report::RunView& run, const run::Prepared& prepared, const std::string& state, const Clock& clock,
                const std::filesystem::path& file, report::ComparedCurves compared) {
  const std::filesystem::path place = std::filesystem::absolute(file).lexically_normal().parent_path();
  write_atomically(file, page::report_page({run, prepared.candidates, prepared.filter, state, minute_of(clock), place,
                                            std::move(compared)}));
}

std::string running_state(const std::filesystem::path& directory) {
  return journal::TunerClaim::is_held(run::journal_path(directory)) ? "The session is running" : "No trial is running";
}

namespace {

constexpr double kSecondsBetweenPages = 10.0;
constexpr double kShareOfTime = 0.05;

void declare_report(boost::program_options::options_description& options) {
  options.add_options()("out", typed_value_named("FILE"), "write the page to FILE (default: DIR/report.html)");
  options.add_options()("compare", typed_value_named("DIR"),
                        "show the results of krigtune compare in this DIR beside the trials (default: the run "
                        "directory, or DIR-compare, if it belongs to the same session)");
  declare_prefer(options);
  options.add_options()("open", "open the page in the browser (xdg-open)");
}

void open_page(const Context& context, const std::filesystem::path& file) {
  std::string program = "xdg-open";
  std::string name = file.string();
  const std::array<char*, 3> argv = {program.data(), name.data(), nullptr};
  pid_t process = -1;
  if (posix_spawnp(&process, program.c_str(), nullptr, nullptr, argv.data(), environ) != 0)
    context.log.warning(fmt::format("--open: there is no {} here; open {} yourself", program, name));
}

int report_run(const Context& context) {
  const Arguments& arguments = context.arguments;
  LoadedRun loaded(context, arguments.operand());
  apply_prefer(context, loaded.prepared.session);
  const report::RunView run = loaded.view(context.console);
  require_preferred(context, run.session, run.answer.front);
  const std::filesystem::path file =
      std::filesystem::absolute(arguments.text("out", (loaded.directory / kReportFile).string())).lexically_normal();
  if (std::filesystem::is_directory(file)) {
    throw UserError(fmt::format("{}: '{}' is a directory", arguments.named("out"), file.string()), "name a file in it");
  }
  make_writable_directory(file.parent_path());
  const std::optional<std::string> compare = arguments.text("compare");
  report::ComparedCurves compared =
      compare ? report::compared_curves(*compare, run.session) : report::curves_beside(loaded.directory, run.session);
  write_page(run, loaded.prepared, running_state(loaded.directory), context.console.clock, file, std::move(compared));
  if (arguments.flag("json")) {
    Json json = new_document("report");
    json["file"] = file.string();
    json["best_trial"] = run.answer.best ? Json(run.answer.best->trial) : Json(nullptr);
    print(context, json);
  } else {
    context.console.out << file.string() << '\n';
  }
  if (arguments.flag("open")) open_page(context, file);
  return ExitCode::kDone;
}

}  // namespace

std::string minute_of(const Clock& clock) {
  constexpr std::size_t kMinutes = 16;
  std::string time = local_iso_time(clock.unix_us()).substr(0, kMinutes);
  std::replace(time.begin(), time.end(), 'T', ' ');
  return time;
}

void ReportWriter::trial_ended(const journal::Trial& /*trial*/, const search::History& history) {
  if (clock_.now_s() >= next_s_) write(history, "The session is running");
}

void ReportWriter::write(const search::History& history, const std::string& state) {
  const double begin_s = clock_.now_s();
  const report::RunView run = start_.with(history, results_.best());
  try {
    write_page(run, prepared_, state, clock_, start_.directory / kReportFile,
               report::curves_beside(start_.directory, start_.session));
  } catch (const std::exception& error) {
    log_.warning(fmt::format("{} is not written: {}", kReportFile, error.what()));
  }
  const double took_s = clock_.now_s() - begin_s;
  next_s_ = begin_s + std::max(kSecondsBetweenPages, took_s / kShareOfTime);
}

Command report_command() {
  return {"report",
          "DIR",
          "Writes an HTML page about a run directory",
          "The page shows which configuration to use, how much faster it is and the evidence for it; "
          "then the progress of the search, which parameters matter, memory, where the time of a step "
          "goes, and all trials. It is one file that needs no network. tune writes it too, while it "
          "runs and when it ends.",
          declare_report,
          report_run};
}

}  // namespace krigtune::cli
