// A command trial runs the user's program in a process of its own and keeps its inputs and output in the trial's
// directory.
#include "runner/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/block.h"
#include "core/error.h"
#include "core/json.h"
#include "core/pattern.h"
#include "core/text.h"
#include "runner/command_measure.h"
#include "runner/command_outcome.h"
#include "runner/job_command.h"
#include "trial/failure_text.h"
#include "trial/outcome.h"
#include "trial/program.h"
#include "trial/race.h"
#include "trial/trial_files.h"

namespace krigtune::runner {

std::int64_t trial_number(const std::filesystem::path& dir) {
  const std::string name = dir.filename().string();
  std::int64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

namespace {

constexpr std::size_t kCommandTailBytes = 1 << 20;  // of stdout and of stderr, searched for the cause of a failure
constexpr std::size_t kLargestResult = 1 << 20;

// Programs may write anything there, even a pipe or a link to a device.
void read_result(const std::filesystem::path& file, CommandEnd& end) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    end.result_error = "it wrote no result: " + file.string() + " is not there";
  } else if (!std::filesystem::is_regular_file(file, error) || ::access(file.c_str(), R_OK) != 0) {
    end.result_error = "its result is not a readable file: " + file.string();
  } else if (std::filesystem::file_size(file, error) > kLargestResult) {
    end.result_error = "its result is larger than 1 MiB: " + file.string();
  } else {
    end.result = trial::read_tail(file, kLargestResult);
  }
}

class CommandRunner final : public trial::Runner {
 public:
  CommandRunner(CommandJob job, const Clock& clock)
      : job_(std::move(job)), command_(job_.spec, job_.space), clock_(clock) {
    const std::string& name = job_.spec.argv.front();
    if (name.find_first_of("{}") == std::string::npos)
      trial::refuse_missing_program(name, job_.spec.working_directory, job_.spec.environment);
    trial::refuse_missing_script(job_.spec.argv, job_.spec.working_directory);
    if (!job_.spec.measure.metrics.empty()) refuse_unmeasured(job_);
    for (const std::string& pattern : job_.spec.oom_patterns) patterns_.emplace_back(pattern);
  }

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    const trial::TrialFiles files(context.dir);
    const std::optional<trial::Rival>& rival = context.rival;
    trial::ProcessSpec spec;
    std::optional<CommandMeasure> measure;
    try {
      spec = prepare(configuration, files, context);
      if (!job_.spec.measure.metrics.empty()) {
        // What was found once is found again, so it only comes late.
        const bool may_give_up = !context.in_full && !rival && !has_matched_;
        measure.emplace(job_, configuration, files, spec, clock_).watch(spec, rival, may_give_up);
      }
    } catch (const UserError& error) {  // a value without words, or an undefined expression
      return trial::Failed{trial::FailureReason::kInvalid, 0, error.what()};
    }
    const std::optional<std::int64_t> kills_before = trial::oom_kills_now();
    CommandEnd end;
    trial::ProgressLines progress(progress_file(files));
    if (!measure && rival && rival->metric == job_.metric) {
      spec.enough = [&] {
        const auto line = progress.next(job_.metric);
        if (line) end.bound = bound_by(*line, *rival);
        return end.bound.has_value();
      };
    }
    end.process = context.place.run(spec, clock_);
    trial::write_exit(files, end.process, context.place.where());
    const std::optional<std::int64_t> kills_after = trial::oom_kills_now();
    const bool is_here = !context.place.facts().is_elsewhere;
    if (is_here && kills_before && kills_after) end.oom_kills = *kills_after - *kills_before;
    end.standard_output = trial::read_tail(spec.stdout_file, kCommandTailBytes);
    end.standard_error = trial::read_tail(spec.stderr_file, kCommandTailBytes);
    if (measure) {
      measure->finish(end);
      has_matched_ = has_matched_ || measure->has_matched();
    } else {
      read_result(files.result(), end);
    }
    return command_outcome(end, job_, patterns_);
  }

 private:
  // A program that reports its progress may be ended early.
  static std::filesystem::path progress_file(const trial::TrialFiles& files) {
    return files.result().string() + ".progress";
  }

  std::optional<double> bound_by(const std::map<std::string, double>& line, const trial::Rival& rival) const {
    const auto sem = line.find("value_sem");
    const auto steps = line.find("steps");
    if (sem == line.end() || steps == line.end()) return std::nullopt;
    return trial::bound_of_a_loser({line.at(job_.metric), sem->second, static_cast<std::int64_t>(steps->second)},
                                   rival);
  }

  // {port} is the port of the place or, without one, a port that is free now.
  trial::TrialNames names_of(const trial::TrialFiles& files, const trial::Place& place) const {
    const trial::PlaceFacts facts = place.facts();
    const bool needs_port = facts.port == 0 && command_.uses("port");
    return {.dir = files.dir.string(),
            .config = files.config().string(),
            .result = files.result().string(),
            .trial = trial_number(files.dir),
            .port = needs_port ? trial::free_port() : facts.port,
            .slot = facts.slot,
            .gpus = trial::gpu_list(facts.gpus)};
  }

  bool reports_steps() const {
    const std::vector<trial::Measure>& metrics = job_.spec.measure.metrics;
    return std::any_of(metrics.begin(), metrics.end(),
                       [](const trial::Measure& one) { return one.from == trial::kStepsFile; });
  }

  trial::ProcessSpec prepare(const space::Configuration& configuration, const trial::TrialFiles& files,
                             const trial::RunContext& context) const {
    const JobCommand::Start start = command_.start(configuration, names_of(files, context.place));
    if (!context.adopted) {
      std::error_code ignored;
      std::filesystem::remove_all(files.result(), ignored);  // from an earlier run of the same trial
      std::filesystem::remove_all(progress_file(files), ignored);
      write_job_files(start, files.dir);
    }
    trial::ProcessSpec spec;
    spec.argv = start.argv;
    spec.timeout_s = job_.spec.timeout_s;
    spec.grace_s = job_.spec.grace_s;
    spec.stop = job_.stop;
    spec.working_directory = job_.spec.working_directory;
    spec.environment = start.environment;
    if (reports_steps()) spec.environment.emplace_back(trial::kStepsVariable, (files.dir / "steps.jsonl").string());
    spec.no_progress_s = job_.spec.no_progress_s;
    spec.progress_files = {files.result(), progress_file(files)};
    trial::write_inputs(files, space::to_json(configuration), spec, context.adopted);
    return spec;
  }

  CommandJob job_;
  JobCommand command_;
  const Clock& clock_;
  std::vector<Pattern> patterns_;
  bool has_matched_ = false;  ///< in one of its trials
};

}  // namespace

namespace {

// libstdc++ compiles patterns recursively; one of this length cannot overflow the stack.
constexpr std::size_t kLongestPattern = 500;

std::string indexed(const std::string& key, std::size_t index) { return fmt::format("{}/{}", key, index); }

constexpr int kLargestExitCode = 255;

void read_exit_codes(JsonObject& block, CommandSpec& spec) {
  const Json* codes = block.find("oom_exit_codes");
  if (codes == nullptr) return;
  const auto is_code = [](const Json& code) {
    return code.is_number_integer() && code.get<double>() >= 1 && code.get<double>() <= kLargestExitCode;
  };
  if (!codes->is_array() || !std::all_of(codes->begin(), codes->end(), is_code)) {
    block.fail("oom_exit_codes", "a list of exit codes was expected", "write [3], each from 1 to 255");
  }
  for (const Json& code : *codes) spec.oom_exit_codes.push_back(code.get<int>());
}

void read_patterns(JsonObject& block, CommandSpec& spec) {
  spec.oom_patterns = block.texts("oom_patterns");
  for (std::size_t i = 0; i < spec.oom_patterns.size(); ++i) {
    const std::string& pattern = spec.oom_patterns[i];
    const std::string key = indexed("oom_patterns", i);
    if (pattern.size() > kLongestPattern) block.fail(key, "is too long", "give 500 characters at most");
    if (pattern.empty()) block.fail(key, "is empty and would match every line", "remove it");
    try {
      static_cast<void>(Pattern(pattern));
    } catch (const std::regex_error& error) {
      block.fail(key, fmt::format("'{}' is not a regular expression: {}", pattern, trouble_with_pattern(error)),
                 "write one as in JavaScript, without back-references");
    }
  }
}

Block<CommandSpec> command_block(const std::filesystem::path& base_dir) {
  Block<CommandSpec> block("A program of yours, one process for each trial");
  block
      .key("argv", &CommandSpec::argv, trial::command_words(R"(["python", "run.py", "{config}", "{result}"])"),
           "program and arguments, without a shell. Placeholders: {micro_batch} and every other parameter, {dp}, "
           "{ranks} and other facts, {config}, {result}, {dir}, {trial}, {port}, {slot}, {gpus}; {bucket / 1e6:.0f}; "
           "{{ and }} are braces")
      .required();
  trial::add_surroundings(block, base_dir);
  add_job_files(block, base_dir);
  block.key("timeout_s", &CommandSpec::timeout_s, trial::time_limit(), "time limit of a trial in seconds");
  block.key("grace_s", &CommandSpec::grace_s, trial::grace(), "seconds between SIGTERM and SIGKILL");
  block.key("no_progress_s", &CommandSpec::no_progress_s, trial::time_limit(),
            "seconds without output after which a trial counts as hung (default: no limit)");
  block.custom("oom_exit_codes", schema::list(from_to(1, kLargestExitCode).applied_to(schema::integer())),
               "exit codes that mean out of memory", read_exit_codes,
               [](const CommandSpec& spec) { return Json(spec.oom_exit_codes); });
  block.custom("oom_patterns", schema::list(schema::not_empty(schema::text())),
               "regular expressions (ECMAScript) in its output that mean out of memory", read_patterns,
               [](const CommandSpec& spec) { return Json(spec.oom_patterns); });
  trial::add_measure_keys(block, &CommandSpec::measure);
  block.key("recipe", &CommandSpec::recipe, text_or_null(),
            "name or file of the recipe that made argv of the user's command");
  block.custom(
      "command", schema::list(schema::text()),
      "with a recipe: the user's own command, of which cmd_optimal.txt is made; placeholders as in argv",
      [](JsonObject& object, CommandSpec& spec) { spec.users_command = object.texts("command"); },
      [](const CommandSpec& spec) { return spec.users_command.empty() ? Json() : Json(spec.users_command); });
  return block;
}

void check_command(const CommandSpec& spec, const space::Space& space,
                   const std::optional<space::Configuration>& baseline, const JsonObject& block) {
  check_job(spec, space, baseline, block);
  refuse_wrong_placeholders(spec.measure, space, block);
}

}  // namespace

std::optional<std::vector<std::string>> CommandSpec::measured_names() const {
  if (measure.metrics.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const trial::Measure& one : measure.metrics) names.push_back(one.name);
  return names;
}

trial::RunnerEntry<CommandSpec> CommandSpec::entry() {
  return {{.name = "command",
           .runs_programs = true,
           .starts_a_command = true,
           .words = {.how_to_measure = R"(add "{}" to the runner's "measure")",
                     .after_bad_result =
                         R"(the program must write {{"{}": NUMBER}} to the file that it is given as {{result}})"}},
          command_block,
          [](const CommandSpec& spec, const trial::RunnerJob& job) {
            return make_command_runner({spec, job.field, job.stop, job.space}, job.clock);
          },
          check_command};
}

std::unique_ptr<trial::Runner> make_command_runner(CommandJob job, const Clock& clock) {
  return std::make_unique<CommandRunner>(std::move(job), clock);
}

}  // namespace krigtune::runner
