// krigtune tune: searches for the best configuration.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "core/columns.h"
#include "core/error.h"
#include "core/files.h"
#include "core/processor.h"
#include "core/text.h"
#include "executor/executor.h"
#include "executor/slurm.h"
#include "journal/lock.h"
#include "machine/environment_checks.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/deepspeed_options.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/interrupt.h"
#include "programs/krigtune/job_options.h"
#include "programs/krigtune/prefer.h"
#include "programs/krigtune/progress.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/show_config.h"
#include "programs/krigtune/this_machine.h"
#include "programs/krigtune/tune_summary.h"
#include "report/labels.h"
#include "result/result_files.h"
#include "run/tuner.h"
#include "runner/begun_file.h"
#include "runner/replay.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kLargestSeed = INT64_MAX;
constexpr const char* kFullBudget = "full-budget";
constexpr const char* kKeepGoing = "keep-going";
constexpr const char* kNoInterferenceCheck = "no-interference-check";
constexpr const char* kRepeat = "repeat";
constexpr const char* kNoEarlyEnd = "no-early-end";
constexpr std::int64_t kMostRepeats = 1000;
constexpr const char* kRequeue = "requeue";
constexpr const char* kPendingLimit = "pending-limit";

std::string strategy_help() {
  return fmt::format("one of {} (default: {})", join(search::strategy_names(), ", "),
                     search::to_string(run::LoopOptions().strategy));
}

// Declares the options that say where trials run.
void declare_places(boost::program_options::options_description& options) {
  options.add_options()("executor", value_named("KIND", {executor::executor_names()}),
                        "where trials run: local, slurm or template. The settings of that kind are the session's "
                        "(default: the session's executor, or local)");
  options.add_options()("jobs", value_named("K"),
                        "run K trials at a time (default: the session's, or 1). On this machine the GPUs and cores are "
                        "divided into K slots");
  options.add_options()(kNoInterferenceCheck,
                        "do not measure how much parallel trials disturb each other on this machine");
  options.add_options()(kPendingLimit, value_named("S"),
                        "withdraw a job that has waited S seconds in a scheduler's queue (default: the session's)");
  options.add_options()(
      kRequeue, "for a Slurm batch script: when SIGUSR1 or SIGTERM ends tune, requeue its job, which then continues");
}

void declare_tune(boost::program_options::options_description& options) {
  declare_job(options);
  declare_deepspeed(options);
  declare_deepspeed_tuning(options);
  declare_no_model_run(options);
  options.add_options()("out", value_named("DIR"), "the run directory (default: runs/<session or script>)");
  options.add_options()("strategy", value_named("NAME", {search::strategy_names()}), strategy_help().c_str());
  options.add_options()("trials", value_named("N"),
                        "end after N trials (default: the session's). Trials that DIR has already count");
  options.add_options()("hours", value_named("H"), "end after H hours of trials (default: the session's)");
  options.add_options()(kFullBudget, "spend the whole budget, even if little can be gained");
  options.add_options()(kRepeat, value_named("N"),
                        "at the end measure the best and the baseline, alternately, until each has N measurements. "
                        "They count neither against --trials nor against --hours");
  options.add_options()(kNoEarlyEnd, "measure every trial in full, even if it is clearly worse than the best");
  options.add_options()(kKeepGoing, "continue even if the first trials all fail alike");
  options.add_options()("seed", value_named("N"), "the same seed and results propose the same trials (default: 1)");
  declare_places(options);
  options.add_options()(
      "try", repeated_value_named("JSON"),
      "run this configuration after the baseline. JSON is an object such as '{\"micro_batch\": 8}'; may be repeated");
  declare_warm_start(options);
  options.add_options()("fresh", "move an existing run directory aside, and start over. It becomes DIR.1, DIR.2, ...");
  declare_prefer(options);
  options.add_options()("fail-if-slower-than", value_named("X"),
                        "exit code 1 unless the best is at least X times as fast as the baseline");
  declare_show_config(options);
}

std::filesystem::path run_directory(const Arguments& arguments, const std::filesystem::path& session_file) {
  std::filesystem::path named = run::named_run(arguments.operand());
  if (!named.empty() && !arguments.flag("out")) return named;
  return arguments.text("out", (std::filesystem::path("runs") / session_file.stem()).string());
}

// A run that has results continues with the session that it recorded.
deepspeed::JobSession job_to_tune(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string& operand = arguments.operand();
  const auto directory = run_directory(arguments, operand.empty() ? ds_config_of(arguments) : operand);
  const bool goes_on = !arguments.flag("fresh") && run::holds_results(directory);
  const bool may_launch = !goes_on && !arguments.flag("show-config");
  const deepspeed::JobLaunches asked =
      arguments.flag(kNoModelRun) ? deepspeed::JobLaunches::kNotForModel : deepspeed::JobLaunches::kAsNeeded;
  return deepspeed_session_of(context, directory, may_launch ? asked : deepspeed::JobLaunches::kNone);
}

/// The changes of the session's budget by the command line.
struct BudgetOptions {
  std::optional<std::int64_t> trials;
  std::optional<double> hours;
  bool full = false;  ///< only the budget ends the session
};

/// A session, and what it was read from if that is not its file.
struct ToTune {
  session::Session session;
  std::optional<SessionSource> source;
  /// How it was searched before, if the user named its run.
  run::LoopOptions options = {};
};

// krigtune tune DIR.
ToTune run_to_continue(const Context& context, const std::filesystem::path& directory) {
  const Arguments& arguments = context.arguments;
  if (!arguments.users_command().empty() || arguments.flag(kDeepSpeedOption)) {
    throw UserError(fmt::format("{}: is a run, and continues with the command that it began with", directory.string()),
                    fmt::format("type {} tune {}, or name a session file before the command", context.console.typed_as,
                                directory.string()));
  }
  refuse_deepspeed_options(context);
  refuse_job_options(context);
  run::RunRecord record = run::load_run(directory);
  for (const std::string& warning : record.session.warnings) context.log.warning(warning);
  return {std::move(record.session), std::nullopt, std::move(record.options)};
}

ToTune find_to_tune(const Context& context) {
  const Arguments& arguments = context.arguments;
  if (const auto named = run::named_run(arguments.operand()); !named.empty()) return run_to_continue(context, named);
  const bool is_deepspeed = !ds_config_of(arguments).empty();
  if (!is_deepspeed) refuse_deepspeed_options(context);
  if (is_deepspeed || arguments.users_command().empty()) refuse_job_options(context);
  if (!is_deepspeed && arguments.users_command().empty()) {
    const std::filesystem::path directory = run_directory(arguments, arguments.operand());
    FileSession read = session_of_file(context, arguments.operand(),
                                       arguments.flag("fresh") ? std::filesystem::path() : directory, true);
    for (const std::string& warning : read.session.warnings) context.log.warning(warning);
    return {std::move(read.session), std::move(read.source)};
  }
  const char* const origin = arguments.operand().empty() ? "the command" : "session file or command";
  if (is_deepspeed) {
    deepspeed::JobSession made = job_to_tune(context);
    return {std::move(made.session), SessionSource{std::move(made.json), origin}};
  }
  jobs::JobSession made = job_session_of(context);
  return {std::move(made.session), SessionSource{std::move(made.json), origin}};
}

ToTune read_to_tune(const Context& context) {
  ToTune found = find_to_tune(context);
  show_caveats(context, found.session);
  return found;
}

void apply(const BudgetOptions& budget, session::Session& session) {
  if (budget.trials) session.budget.trials = static_cast<int>(*budget.trials);
  if (budget.hours) session.budget.hours = budget.hours;
  if (!budget.full) return;
  session.budget.regret = 0.0;
  session.budget.least_gain = 0.0;
  session.budget.run_gpu_hours.reset();
}

run::LoopOptions loop_options(const Arguments& arguments, run::LoopOptions options) {
  options.strategy = search::strategy_kind_from(arguments.text("strategy", search::to_string(options.strategy)),
                                                arguments.named("strategy"));
  options.seed = static_cast<std::uint64_t>(
      arguments.integer("seed", 0, kLargestSeed).value_or(static_cast<std::int64_t>(options.seed)));
  return options;
}

// The machine on which trials run. The next job of a scheduler may have other nodes.
std::string machine_of_trials() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return job == nullptr ? host_name() : fmt::format("{}, Slurm job {}", host_name(), job);
}

run::RunOptions run_options(const Arguments& arguments, const run::LoopOptions& before) {
  run::RunOptions options;
  options.machine = machine_of_trials();
  options.loop = loop_options(arguments, before);
  options.keep_going = arguments.flag(kKeepGoing);
  options.may_end_early = !arguments.flag(kNoEarlyEnd);
  options.repeats = static_cast<int>(arguments.integer(kRepeat, 1, kMostRepeats).value_or(0));
  return options;
}

std::vector<space::Configuration> guesses(const Arguments& arguments, const session::Session& session) {
  std::vector<space::Configuration> guesses;
  for (const std::string& text : arguments.texts("try")) guesses.push_back(session::read_try(session, text, "--try"));
  return guesses;
}

std::vector<RunSetting> tune_settings(const run::RunOptions& options, const std::filesystem::path& directory) {
  return {
      {"strategy", search::to_string(options.loop.strategy)}, {"seed", options.loop.seed}, {"out", directory.string()}};
}

// Applies the options that say where trials run.
void apply_executor(const Arguments& arguments, session::Session& session) {
  const auto jobs = arguments.integer("jobs", 1, kMostJobs);
  const std::optional<std::string> kind = arguments.text("executor");
  if (kind && *kind != executor::traits_of(session.executor).name)
    session.executor = executor::executor_of_kind(*kind, arguments.named("executor"));
  if (jobs) executor::set_jobs(session.executor, static_cast<int>(*jobs));
  const std::optional<double> limit_s = arguments.positive_number(kPendingLimit);
  if (limit_s && !executor::set_pending_limit(session.executor, *limit_s)) {
    throw UserError(fmt::format("{}: trials do not wait in a queue here", arguments.named(kPendingLimit)),
                    "use it with --executor slurm, or leave it out");
  }
}

/// The places where the trials of a session run.
struct Placing {
  std::unique_ptr<trial::Executor> executor;
  executor::TrialSizes sizes;
};

// A runner that starts no programs needs no places.
Placing placing_of(const Context& context, const session::Session& session, const std::filesystem::path& directory,
                   const std::atomic<bool>& ending) {
  if (!runner::traits_of(session.runner).runs_programs) {
    const auto* local = std::get_if<executor::LocalSpec>(&session.executor);
    return {executor::make_undivided_executor(local == nullptr ? 1 : local->slots), {}};
  }
  const executor::ExecutorJob job{session.cluster, directory, context.console.clock, &ending,
                                  [&log = context.log](const std::string& line) { log.progress(line); }};
  std::unique_ptr<trial::Executor> executor = executor::make_executor(session.executor, job);
  executor::TrialSizes sizes(session.executor, session.cluster, session.space, *executor,
                             runner::timeout_s(session.runner), runner::traits_of(session.runner).takes_all_ranks);
  return {std::move(executor), std::move(sizes)};
}

// Warns that some slots stay empty, because trials are too large for all of them.
void warn_of_large_trials(const Context& context, const Placing& placing, const session::Session& session) {
  const auto* local = std::get_if<executor::LocalSpec>(&session.executor);
  const std::optional<int> share = placing.executor->usual_gpus();
  const int needed = placing.sizes.least().gpus_per_node;
  if (local == nullptr || !share || *share == 0 || needed <= *share) return;
  context.log.warning(fmt::format("a trial takes {} GPUs, so fewer than {} run at a time", needed, local->slots));
}

// Memory is not divided among slots, so trials together may need more than the machine has.
void warn_of_memory(const Context& context, const Placing& placing, const run::Prepared& prepared) {
  const auto* local = std::get_if<executor::LocalSpec>(&prepared.session.executor);
  if (local == nullptr || local->slots < 2 || !runner::traits_of(prepared.session.runner).runs_programs) return;
  const bool on_processors = placing.executor->usual_gpus().value_or(0) == 0;
  const std::optional<Bytes> most = run::host_memory_of_a_trial(prepared.session, prepared.candidates, on_processors);
  const std::int64_t machine = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  if (!most || machine <= 0) return;
  const std::string warning = run::memory_warning(*most, local->slots, Bytes{machine});
  if (!warning.empty()) context.log.warning(warning);
}

// Trials of a directory that has results keep the user's file with which it began.
void recall_begun_file(const Context& context, session::Session& session, const std::filesystem::path& directory) {
  const bool has_results = !directory.empty() && run::holds_results(directory);
  if (runner::recall_begun_file(session.runner, has_results ? directory : std::filesystem::path())) return;
  context.log.warning(fmt::format(
      "{} has changed since the session began: trials continue with its old content, {}; --fresh starts "
      "over with the new content",
      runner::edited_file(session.runner)->string(), runner::begun_file_in(session.runner, directory).string()));
}

void refuse_second_tune(const std::filesystem::path& directory) {
  if (!journal::TunerClaim::is_held(run::journal_path(directory))) return;
  throw UserError(fmt::format("{}: another krigtune tune is running there", directory.string()),
                  fmt::format("see krigtune watch {}, or choose another directory with --out", directory.string()));
}

// Only directories that krigtune made are moved.
void start_over(const std::filesystem::path& directory, Log& log) {
  if (!std::filesystem::exists(directory)) return;
  if (!run::is_run(directory)) {
    throw UserError(fmt::format("--fresh: '{}' is not a run directory", directory.string()),
                    "choose another directory with --out");
  }
  log.progress("the older run is now in " + run::set_aside(directory).string());
}

// Returns the command that continues the run: as typed, but without --fresh, which would begin again. `option` is added
// to krigtune's own words.
std::string command_to_go_on(const Context& context, const std::string& option = "") {
  std::vector<std::string> words = {context.console.typed_as, "tune"};
  for (const std::string& word : context.arguments.words()) {
    if (word != "--fresh") words.push_back(word);
  }
  if (!option.empty()) words.insert(std::find(words.begin(), words.end(), "--"), "--" + option);
  return shell_line(words);
}

void say_what_is_tuned(const Context& context, const run::Prepared& prepared, const std::filesystem::path& directory) {
  const search::Candidates& candidates = prepared.candidates;
  std::string text = directory.string() + ": ";
  if (candidates.listed()) {
    const std::int64_t all = *candidates.space_count();
    const auto excluded = all - static_cast<std::int64_t>(candidates.size());
    text += counted(all, "configuration");
    if (excluded > 0) text += fmt::format(", {} of them too large for memory", excluded);
  } else {
    text += candidates.space().listable() ? "too many configurations for a list: they are sampled"
                                          : "a space with real ranges: it is sampled";
  }
  if (const std::string label = answer::emulated_label(prepared.session); !label.empty())
    text += "; results are of an " + label;
  context.log.progress(wrapped_lines(visible(text), context.log.width(), 2));
}

int show_it(const Context& context, const session::Session& session, const std::optional<SessionSource>& source,
            const std::vector<RunSetting>& settings) {
  return source ? show_config(context, session, settings, *source) : show_config(context, session, settings);
}

// The first Ctrl-C ends the session after the running trials; the text names them.
std::string ending_text(const Progress& progress) {
  const std::string running = progress.running();
  if (running.empty()) return "ending; no trial is running";
  return fmt::format("ending after {}; Ctrl-C again ends it now, and closed trials are kept", running);
}

// Makes Slurm run the job again if krigtune is its batch script.
void run_job_again(const Context& context) {
  if (!context.arguments.flag(kRequeue)) return;
  // Print this first, because Slurm ends this process after the request.
  context.log.progress("asking Slurm to requeue this job, which then continues");
  const std::string trouble = executor::requeue_this_job(context.console.clock);
  if (trouble.empty()) return;
  context.log.warning(fmt::format("--requeue: {}; submit the job again by hand, and it continues", trouble));
}

// Another program ends this process, and nobody wants the jobs to end: they continue, and the next process adopts them.
// All closed trials are already on disk.
[[noreturn]] void leave_jobs_alone(const Context& context, const std::string& command) {
  context.log.end_status();
  context.log.progress("ended by a signal; submitted jobs continue, and this command collects their results: " +
                       command);
  run_job_again(context);
  std::_Exit(ExitCode::kInterrupted);
}

/// How signals are answered while trials run.
class Ending {
 public:
  explicit Ending(const Context& context)
      : context_(context), interrupt_([this] { say_what_ends(); }, [this] { leave_what_goes_on(); }) {}

  const Interrupt& interrupt() const { return interrupt_; }
  void set_jobs_go_on(bool jobs_go_on) { jobs_go_on_ = jobs_go_on; }
  /// Call it with nullptr before `progress` is destroyed.
  void set_progress(const Progress* progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  }
  /// Call it last, because Slurm then ends this process.
  void run_again_where_asked(run::EndReason reason) const {
    if (reason == run::EndReason::kInterrupted && interrupt_.is_from_outside()) run_job_again(context_);
  }

 private:
  void say_what_ends() {
    const std::lock_guard lock(mutex_);
    if (progress_ != nullptr) context_.log.progress(ending_text(*progress_));
  }
  void leave_what_goes_on() const {
    if (jobs_go_on_) leave_jobs_alone(context_, command_to_go_on(context_));
  }

  const Context& context_;
  std::mutex mutex_;  // guards progress_
  const Progress* progress_ = nullptr;
  std::atomic<bool> jobs_go_on_ = false;
  Interrupt interrupt_;  ///< last, because its thread uses the other members
};

// Passes the places to the options of run_session.
void place_trials(const Context& context, const session::Session& session, const Placing& placing,
                  run::RunOptions& options) {
  options.executor = placing.executor.get();
  options.sizes = placing.sizes;
  options.interference_check = !context.arguments.flag(kNoInterferenceCheck) &&
                               runner::traits_of(session.runner).runs_programs &&
                               executor::traits_of(session.executor).is_this_machine;
}

// A guess that was measured already is not measured again, and the user should not wait for it.
void say_which_tries_are_known(const Context& context, const run::Prepared& prepared, const search::History& history,
                               const std::vector<space::Configuration>& tries) {
  for (const space::Configuration& guess : tries) {
    const journal::Trial* trial = run::trial_of_try(prepared.candidates, history, guess);
    if (trial == nullptr) continue;
    context.log.progress(fmt::format("--try: {} is trial {} and is not run again", guess.text(), trial->number));
  }
}

// Standard deviation from run to run. Two training scripts, each started four to six times on two cores that four more
// programs wanted, had 0.28 and 0.38.
constexpr double kBusyNoise = 0.3;
constexpr const char* kMeasuredWhileBusy =
    "Other programs kept this machine busy when the session began, so a gain of less than a factor of two may be none: "
    "measure the best and your own configuration again (--repeat 5)";

// The last value of a program that runs to its end, such as a validation loss, does not depend on how busy the machine
// is.
bool depends_on_time(const session::Session& session) {
  const trial::MeasureSpec* spec = runner::measure_of(session.runner);
  const trial::Measure* measured = spec == nullptr ? nullptr : spec->find(session.objective.field);
  return measured == nullptr || measured->kind != trial::MeasureKind::kFinal;
}

// Trials on this machine share its processors with whatever else runs there. If others keep it busy, fewer trials are
// ended early, and the returned sentence belongs to the result; otherwise it is "".
std::string expect_noise_if_busy(const Context& context, const session::Session& session, run::RunOptions& options) {
  if (!runner::traits_of(session.runner).runs_programs || !executor::traits_of(session.executor).is_this_machine ||
      !depends_on_time(session))
    return "";
  std::string doubt;
  for (const machine::Finding& finding : machine::look_at_load(machine::this_machine(context.console.clock))) {
    if (finding.health != machine::Health::kWarn) continue;
    doubt = kMeasuredWhileBusy;
    options.rival_noise = kBusyNoise;
    std::string cost = finding.cost;
    std::replace(cost.begin(), cost.end(), '\n', ' ');
    context.log.progress(fmt::format(
        "this machine is busy: {}; {}; only trials that are more than twice as slow are ended early meanwhile",
        finding.what, cost));
  }
  return doubt;
}

// A session that the run itself recorded is called as the run is.
std::string name_of_run(const session::Session& session, const std::filesystem::path& directory) {
  return session.file == run::session_path(directory) ? directory_name(directory) : session_name(session);
}

// Says what is different from the run that goes on.
void settle(const Context& context, const run::Prepared& prepared, const std::filesystem::path& directory,
            const run::RunOptions& options) {
  const std::string change = run::settle(directory, prepared.session, options.loop);
  if (!change.empty()) context.log.progress(change);
}

// Checks for errors before anything is moved or made, runs the trials, and prints how the session ended.
int run_trials(const Context& context, const run::Prepared& prepared, run::RunOptions options,
               const std::filesystem::path& directory, std::optional<double> slowest) {
  Ending ending(context);
  const Placing placing = placing_of(context, prepared.session, directory, ending.interrupt().stop());
  place_trials(context, prepared.session, placing, options);
  ending.set_jobs_go_on(placing.executor->survives());
  warn_of_large_trials(context, placing, prepared.session);
  warn_of_memory(context, placing, prepared);
  const search::History none;
  const std::string name = name_of_run(prepared.session, directory);
  const report::RunView start{prepared.session, none,      name,
                              options.loop,     directory, runner::find_bench(context.console.program)};
  result::ResultFileWriter writer(start,
                                  result::make_recommender(start.session, prepared.candidates, start.options.seed));
  Progress progress(
      prepared.session, context.console.clock, context.log, [&writer] { return writer.best(); },
      placing.executor->capacity(), directory);
  ending.set_progress(&progress);
  const trial::RunnerFactory make_runner = [&] {
    return make_session_runner(prepared.session, context.console, &ending.interrupt().abort());
  };
  make_runner();
  refuse_second_tune(directory);
  if (context.arguments.flag("fresh")) start_over(directory, context.log);
  settle(context, prepared, directory, options);
  say_which_tries_are_known(context, prepared, read_history(context, directory), options.tries);
  const std::string doubt = expect_noise_if_busy(context, prepared.session, options);
  say_what_is_tuned(context, prepared, directory);
  ReportWriter pages(start, prepared, writer, context.console.clock, context.log);
  Observers observers({&writer, &progress, &pages});
  const run::RunResult result = run::run_session(prepared.session, prepared.candidates, make_runner, directory, options,
                                                 context.console.clock, observers, ending.interrupt().stop());
  ending.set_progress(nullptr);
  context.log.end_status();
  pages.write(result.history, end_text(prepared.session, result) + (doubt.empty() ? "" : ". " + doubt));
  const int code = conclude(context, start, writer.best(), result,
                            {slowest, command_to_go_on(context), command_to_go_on(context, kFullBudget),
                             command_to_go_on(context, kKeepGoing), doubt});
  ending.run_again_where_asked(result.reason);
  return code;
}

int tune(const Context& context) {
  const Arguments& arguments = context.arguments;
  run_options(arguments, {});  // refuses what is wrong before the job is looked at
  const std::optional<double> slowest = arguments.positive_number("fail-if-slower-than");
  const BudgetOptions budget{arguments.integer("trials", 1, kMostTrials), arguments.positive_number("hours"),
                             arguments.flag(kFullBudget)};
  auto [session, source, before] = read_to_tune(context);
  run::RunOptions options = run_options(arguments, before);
  apply(budget, session);
  apply_executor(arguments, session);
  apply_prefer(context, session);
  options.tries = guesses(arguments, session);
  const std::filesystem::path directory = run_directory(arguments, session.file);
  if (arguments.flag("show-config")) return show_it(context, session, source, tune_settings(options, directory));
  know_this_machine(context, session, arguments.flag("fresh") ? std::filesystem::path() : directory);
  recall_begun_file(context, session, arguments.flag("fresh") ? std::filesystem::path() : directory);
  const bool goes_on = std::filesystem::exists(run::session_path(directory)) && !arguments.flag("fresh");
  options.loop.earlier = earlier_runs(context, session, directory, goes_on);
  const run::Prepared prepared(std::move(session), options.loop.earlier);
  return run_trials(context, prepared, options, directory, slowest);
}

}  // namespace

Command tune_command() {
  return {
      "tune",
      "SESSION",
      "Finds the fastest configuration by running trials",
      "Trial 0 is the baseline: that of the session, or the values that COMMAND has now. Results are shown relative to "
      "it. The same command continues an interrupted session, and so does krigtune tune DIR; another budget or "
      "strategy "
      "may go on with its trials. Ctrl-C ends the session after the running trial, "
      "Ctrl-C again ends that trial too. krigtune watch DIR shows the session in another shell.\n\n"
      "With -- COMMAND... each trial runs COMMAND, your own training script, with other values: those that its "
      "recipe (krigtune recipes) or --vary names. --metric selects the printed number that counts. SESSION may be "
      "left out, or adds budget, memory and cluster.",
      declare_tune,
      tune,
      kDeepSpeedOption,
      {},
      {"recipe", "final", "warmup-steps", "measure-steps", "hf-config", "tensor-parallel", kNoModelRun, "strategy",
       kNoEarlyEnd, kKeepGoing, "seed", kNoInterferenceCheck, kPendingLimit, kRequeue, kPrefer, "fail-if-slower-than"}};
}

}  // namespace krigtune::cli
