#include "programs/krigtune/ask_tell.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <iterator>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/job_options.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/this_machine.h"
#include "report/labels.h"
#include "report/trial_classes.h"
#include "result/result_files.h"
#include "run/by_hand.h"
#include "runner/command_result.h"
#include "runner/replay.h"
#include "session/objectives.h"
#include "trial/measure_spec.h"

namespace krigtune::cli {

// krigtune ask: proposes trials to users who run them by hand or from a program of their own.

run::RunRecord record_of(const Context& context, const RunRequest& request) {
  const std::filesystem::path& directory = request.directory;
  const bool begun = std::filesystem::exists(run::session_path(directory));
  const bool is_named = !request.session.is_null();
  if (!begun && !is_named) {
    throw UserError(fmt::format("{}: there is no run here yet", directory.string()), request.way_to_name_a_session);
  }
  run::RunRecord record;
  if (begun) record = run::load_run(directory);
  if (is_named) record.session = session_of_json(context, request.session, request.file, directory, false).session;
  // Only the first call prints the session's warnings: a program that asks in a loop need not read them every time.
  if (!begun) {
    for (const std::string& warning : record.session.warnings) context.log.warning(warning);
  }
  record.options.earlier =
      earlier_runs(context, request.warm_start, request.warm_start_called, record.session, directory, begun);
  if (request.strategy) record.options.strategy = *request.strategy;
  if (request.seed) record.options.seed = *request.seed;
  return record;
}

Json asked_json(const journal::Trial& trial) {
  const journal::Proposal& proposal = trial.proposal;
  return {
      {"trial", trial.number},
      {"configuration", space::to_json(proposal.configuration)},
      {"predicted_value", proposal.predicted_value ? json_number(*proposal.predicted_value) : Json(nullptr)},
      {"predicted_memory_bytes", proposal.predicted_memory ? Json(proposal.predicted_memory->count) : Json(nullptr)}};
}

namespace {

constexpr std::int64_t kMostAsked = 1'000'000;

void declare_ask(boost::program_options::options_description& options) {
  options.add_options()("session", typed_value_named("SESSION"),
                        "the session file, for the first call, which creates DIR");
  options.add_options()("count", value_named("N"), "how many trials to propose (default: 1)");
  options.add_options()("strategy", value_named("NAME", {search::strategy_names()}),
                        "as for krigtune tune (default: that of the last call)");
  options.add_options()("seed", value_named("N"),
                        "the same seed and results propose the same trials (default: that of the last call, or 1)");
  declare_warm_start(options);
}

RunRequest run_request(const Arguments& arguments) {
  RunRequest request;
  request.directory = arguments.operand();
  if (const std::optional<std::string> file = arguments.text("session")) {
    request.session = load_json(*file);
    request.file = *file;
  }
  if (const auto word = arguments.text("strategy"))
    request.strategy = search::strategy_kind_from(*word, arguments.named("strategy"));
  if (const auto seed = arguments.integer("seed", 0, INT64_MAX)) request.seed = static_cast<std::uint64_t>(*seed);
  request.warm_start = arguments.texts(kWarmStart);
  request.warm_start_called = fmt::format("--{}", kWarmStart);
  request.way_to_name_a_session =
      fmt::format("name its session: krigtune ask {} --session SESSION", request.directory.string());
  return request;
}

int ask(const Context& context) {
  const auto count = static_cast<int>(context.arguments.integer("count", 1, kMostAsked).value_or(1));
  const std::filesystem::path directory = context.arguments.operand();
  run::RunRecord record = record_of(context, run_request(context.arguments));
  know_this_machine(context, record.session, directory);
  const run::Prepared prepared(record.session, record.options.earlier);
  if (const std::string change = run::settle(directory, prepared.session, record.options, journal::Asker::kHand);
      !change.empty()) {
    context.log.progress(change);
  }
  // With --json print one document when all trials are known. Otherwise print each trial as soon as it is in the
  // journal, so that the reader can begin with it.
  const bool one_document = context.arguments.flag("json");
  Json document = new_document("ask");
  document["trials"] = Json::array();
  const std::vector<journal::Trial> trials =
      run::ask_by_hand(prepared.session, prepared.candidates, directory, record.options, context.console.clock, count,
                       [&](const journal::Trial& trial) {
                         if (one_document) document["trials"].push_back(asked_json(trial));
                         if (!one_document) context.console.out << asked_json(trial).dump() << '\n' << std::flush;
                       });
  if (one_document) print(context, document);
  if (trials.empty()) {
    context.log.error(
        "no trial to propose: all that the strategy wants was tried, or depends on trials that wait for krigtune tell");
    return ExitCode::kNoResult;
  }
  if (static_cast<int>(trials.size()) < count) {
    context.log.progress(fmt::format("only {} of {} trials can be proposed", trials.size(), count));
  }
  return ExitCode::kDone;
}

}  // namespace

Command ask_command() {
  return {"ask",
          "DIR",
          "Proposes trials that you run; tell records their results",
          "The first call names the session with --session and creates DIR; repeating it does no harm. "
          "ask prints one JSON object a line, each as soon as the trial is recorded: \"trial\" (its "
          "number), \"configuration\", \"predicted_value\" and \"predicted_memory_bytes\" (null where there "
          "is no prediction). With --json it prints one document that has all of them under \"trials\".\n\n"
          "Trial 0 is the session's baseline. The session's budget does not limit ask. Any number of "
          "processes may ask, tell and tune in the same DIR at the same time. Exit code 1: no "
          "configuration is left to propose.",
          declare_ask,
          ask};
}

// krigtune tell: ends a trial that krigtune ask proposed.
namespace {

constexpr trial::FailureReason kReasons[] = {trial::FailureReason::kCrash,       trial::FailureReason::kTimeout,
                                             trial::FailureReason::kHang,        trial::FailureReason::kInvalid,
                                             trial::FailureReason::kBadResult,   trial::FailureReason::kEnvironment,
                                             trial::FailureReason::kInterrupted, trial::FailureReason::kNotApplied};

[[noreturn]] void refuse(const std::string& what, const std::string& hint) { throw UserError("tell: " + what, hint); }

trial::FailureReason reason_of(const std::string& word, const std::string& dash) {
  for (const trial::FailureReason reason : kReasons) {
    if (word == trial::to_string(reason)) return reason;
  }
  throw UserError(fmt::format("{}reason: '{}' is not accepted", dash, word), suggestion(word, told_reasons()));
}

std::string checked_status(const std::string& status, const std::string& dash) {
  const std::vector<std::string> known = told_statuses();
  if (std::find(known.begin(), known.end(), status) != known.end()) return status;
  throw UserError(fmt::format("{}status: '{}' is not accepted", dash, status), suggestion(status, known));
}

std::string status_of(const ToldResult& told, const std::string& dash) {
  if (told.status) return checked_status(*told.status, dash);
  if (told.value) return "ok";
  refuse("the result of the trial is missing", fmt::format("give {0}value or {0}status", dash));
}

// Refuses what contradicts the status.
void refuse_contradictions(const ToldResult& told, const std::string& status, const std::string& dash) {
  if (status == "ok" && !told.value)
    refuse(fmt::format("{0}status ok needs {0}value", dash), "give the measured value");
  struct Part {
    const char* name;
    bool is_given;
    const char* status;
  };
  const Part kGoesWith[] = {{"value", told.value.has_value(), "ok"},
                            {"value_sem", told.value_sem.has_value(), "ok"},
                            {"peak_memory_bytes", told.peak_memory_bytes.has_value(), "ok"},
                            {"reason", told.reason.has_value(), "failed"}};
  for (const Part& part : kGoesWith) {
    if (!part.is_given || status == part.status) continue;
    std::string name = part.name;
    if (!dash.empty()) std::replace(name.begin(), name.end(), '_', '-');
    refuse(fmt::format("{0}{1} cannot be combined with {0}status {2}", dash, name, status),
           fmt::format("leave it out, or write {}status {}", dash, part.status));
  }
}

// The value is read like one in a result file, so that one reader interprets both.
trial::Outcome measured(const ToldResult& told, const std::string& metric, const std::string& dash) {
  Json result = told.metrics;
  result[metric] = *told.value;
  if (told.value_sem) result["value_sem"] = *told.value_sem;
  if (told.peak_memory_bytes) result["peak_memory_bytes"] = *told.peak_memory_bytes;
  trial::Outcome outcome = runner::read_command_result(result.dump(), metric);
  if (const auto* failed = std::get_if<trial::Failed>(&outcome)) {
    throw UserError(fmt::format("{}value: {}", dash, failed->last_lines),
                    fmt::format("give the measured value, or {}status failed", dash));
  }
  return outcome;
}

}  // namespace

std::vector<std::string> told_statuses() { return {"ok", "oom", "failed"}; }

std::vector<std::string> told_reasons() {
  std::vector<std::string> words;
  for (const trial::FailureReason reason : kReasons) words.emplace_back(trial::to_string(reason));
  return words;
}

trial::Outcome outcome_told(const ToldResult& told, const std::string& metric, const std::string& dash) {
  const std::string status = status_of(told, dash);
  refuse_contradictions(told, status, dash);
  if (status == "ok") return measured(told, metric, dash);
  if (status == "oom") return trial::OutOfMemory{};
  const std::string reason = told.reason.value_or(trial::to_string(trial::FailureReason::kCrash));
  return trial::Failed{reason_of(reason, dash), 0, told.last_lines};
}

namespace {

// People and programs name objectives as the session does, runners by their fields.
trial::Outcome with_fields(const session::Session& session, trial::Outcome outcome) {
  auto* measured = std::get_if<trial::Measured>(&outcome);
  if (measured == nullptr) return outcome;
  for (const session::Objective& other : session::needed_metrics(session)) {
    const auto named = measured->metrics.find(other.metric);
    if (other.metric == other.field || named == measured->metrics.end()) continue;
    measured->metrics.emplace(other.field, named->second);
    measured->metrics.erase(other.metric);
  }
  return outcome;
}

}  // namespace

trial::Outcome complete_outcome(const session::Session& session, const space::Configuration& configuration,
                                const trial::Outcome& told, const std::string& way) {
  const trial::Outcome reported = with_fields(session, told);
  if (const std::vector<std::string> missing = session::missing_metrics(session, reported); !missing.empty()) {
    refuse(fmt::format("an ok trial needs a number for every objective{}, and {} {} missing",
                       session.limits.empty() ? "" : " and limit", join(missing, ", "),
                       missing.size() == 1 ? "is" : "are"),
           fmt::format("give {}, or the status failed", fmt::format(fmt::runtime(way), missing.front())));
  }
  return session::with_objectives(session, configuration, reported);
}

Json told_json(const session::Session& session, const journal::Trial& trial, const search::History& history) {
  Json json = {{"trial", trial.number}};
  json["configuration"] = space::to_json(trial.proposal.configuration);
  json["status"] = trial::status_text(*trial.outcome);
  json["reason"] = trial::reason_text(*trial.outcome);
  json["metric"] = session.objective.metric;
  const std::optional<double> value = search::value_of(trial, session.objective);
  json["value"] = json_or_null(value);
  if (!session.others.empty()) {
    json["values"] = Json::object();
    for (const session::Objective& objective : session::all_objectives(session))
      json["values"][objective.metric] = json_or_null(search::value_of(trial, objective));
  }
  const answer::TrialGains gains(session.objective, history);
  json["reference_trial"] = gains.reference() ? Json(gains.reference()->trial) : Json(nullptr);
  json["gain"] = json_or_null(gains(trial));
  return json;
}

namespace {

void declare_tell(boost::program_options::options_description& options) {
  options.add_options()("trial", typed_value_named("N"), "the number of the trial, as krigtune ask printed it");
  options.add_options()("status", typed_value_named("STATUS", {told_statuses()}),
                        "ok, oom or failed (default: ok with --value)");
  options.add_options()("value", typed_value_named("X"), "the measured value, in the objective's unit");
  options.add_options()("values", typed_value_named("NAME=X,..."),
                        "the measured numbers by their names, as in throughput=12.3,power_w=280: all of several "
                        "objectives, and any others, which become metrics");
  options.add_options()("peak-memory-bytes", typed_value_named("B"),
                        "with --value: the peak memory of the rank that needed most, such as 6.4e10");
  options.add_options()("reason", typed_value_named("WORD", {told_reasons()}),
                        "why it failed: crash (the default), timeout, hang, invalid, bad_result, environment, "
                        "not_applied; or interrupted: the trial does not count and may be proposed again");
  options.add_options()(
      "result", typed_value_named("FILE"),
      "read the result from FILE, as the runner `command` does, instead of the options above; - is standard input");
}

double value_of(const std::string& text, const char* option) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(number)) return number;
  throw UserError(fmt::format("--{}: '{}' is not accepted", option, text), "write a number");
}

// Adds the numbers of --values. That of the first objective is the value, under its name or that of its field.
void add_values(const std::vector<std::string>& items, const session::Objective& objective, ToldResult& told) {
  for (const std::string& item : items) {
    const std::size_t sign = item.find('=');
    if (sign == std::string::npos || sign == 0)
      throw UserError(fmt::format("--values: '{}' is not NAME=NUMBER", item), "write throughput=12.3,power_w=280");
    const std::string name = item.substr(0, sign);
    const double number = value_of(item.substr(sign + 1), "values");
    const bool is_value = name == objective.metric || name == objective.reported_field();
    const bool is_peak = name == trial::kPeakMemory;
    if ((is_value && told.value) || (is_peak && told.peak_memory_bytes) || told.metrics.contains(name))
      throw UserError(fmt::format("--values: '{}' is given twice", name), "leave one out");
    if (is_value) {
      told.value = number;
    } else if (is_peak) {
      told.peak_memory_bytes = number;
    } else {
      told.metrics[name] = number;
    }
  }
}

trial::Outcome typed_outcome(const Arguments& arguments, const session::Objective& objective) {
  if (!arguments.flag("value") && !arguments.flag("values") && !arguments.flag("status"))
    refuse("the result of the trial is missing", "give --value, --values, --status or --result");
  ToldResult told;
  told.status = arguments.text("status");
  if (const auto value = arguments.text("value")) told.value = value_of(*value, "value");
  told.peak_memory_bytes = arguments.positive_number("peak-memory-bytes");
  add_values(arguments.list("values"), objective, told);
  told.reason = arguments.text("reason");
  return outcome_told(told, objective.reported_field(), "--");
}

trial::Outcome outcome_in_file(const Arguments& arguments, const std::string& metric) {
  for (const char* other : {"value", "values", "peak-memory-bytes", "reason"}) {
    if (arguments.flag(other))
      refuse(fmt::format("--{} cannot be combined with --result, which contains it", other), "leave one out");
  }
  const std::string file = *arguments.text("result");
  const std::string text = file == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_text(file);
  trial::Outcome outcome = runner::read_command_result(text, metric);
  if (!arguments.flag("status")) return outcome;
  const std::string status = checked_status(*arguments.text("status"), "--");
  if (status == trial::status_text(outcome)) return outcome;
  refuse(fmt::format("--status {}, but {} says {}", status, file, trial::status_text(outcome)),
         "leave --status out, or fix the file");
}

// Returns "trial 7: ok, 12.3 samples/s, 1.34x trial 0; best trial 7".
std::string told_text(const session::Session& session, const journal::Trial& trial, const search::History& history,
                      const std::optional<search::Recommendation>& best) {
  std::string text = fmt::format("trial {}: {}", trial.number, trial::status_text(*trial.outcome));
  const std::optional<double> value = search::value_of(trial, session.objective);
  const std::string reason = trial::reason_text(*trial.outcome);
  if (value) {
    text += fmt::format(", {}", report::value_or_named_text(session, *value));
    for (const session::Objective& other : session.others) {
      const std::optional<double> its = search::value_of(trial, other);
      if (its) text += fmt::format(", {} {}", other.metric, report::value_text(session, other, *its));
    }
    const answer::TrialGains gains(session.objective, history);
    text += fmt::format(", {} trial {}", report::gain_text(gains(trial).value()), gains.reference()->trial);
  } else if (!reason.empty()) {
    text += fmt::format(" ({})", reason);
  }
  const std::string trouble = report::last_line_of(trial);
  if (!trouble.empty()) text += ": " + trouble;
  return text + (best ? fmt::format("; best trial {}", best->trial) : "; no trial has succeeded yet");
}

// Returns the outcome with the value in the objective's unit, whose conversion may depend on the configuration. A file
// without a number for each objective is a bad result, as with the runner.
trial::Outcome outcome_of(const session::Session& session, const std::filesystem::path& directory, std::int64_t number,
                          const trial::Outcome& reported, bool is_typed) {
  const search::History history = journal::read_journal(run::journal_path(directory));
  const journal::Trial* trial = search::find_trial(history, number);
  if (trial == nullptr) return reported;
  const space::Configuration& configuration = trial->proposal.configuration;
  return is_typed ? complete_outcome(session, configuration, reported, "--values {}=X")
                  : session::with_objectives(session, configuration, reported);
}

int tell(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::optional<std::int64_t> number = arguments.integer("trial", 0, INT32_MAX);
  if (!number) refuse("--trial is missing", "give the number that krigtune ask printed");
  const std::filesystem::path directory = arguments.operand();
  const run::RunRecord record = run::load_run(directory);
  const session::Objective& objective = record.session.objective;
  const bool is_typed = !arguments.flag("result");
  const trial::Outcome reported =
      is_typed ? typed_outcome(arguments, objective) : outcome_in_file(arguments, objective.reported_field());
  const run::Prepared prepared(record.session, record.options.earlier);
  const session::Session& session = prepared.session;
  const journal::Trial trial =
      run::tell_by_hand(session, directory, static_cast<int>(*number),
                        outcome_of(session, directory, *number, reported, is_typed), context.console.clock);

  const search::History history = journal::read_journal(run::journal_path(directory));
  const report::RunView start{session,        history,   directory_name(directory),
                              record.options, directory, runner::find_bench(context.console.program)};
  result::ResultFileWriter writer(start, result::make_recommender(session, prepared.candidates, record.options.seed));
  writer.write(history);
  const std::optional<search::Recommendation>& best = writer.best();
  if (arguments.flag("json")) {
    Json json = new_document("tell");
    json.update(told_json(session, trial, history));
    json["best_trial"] = best ? Json(best->trial) : Json(nullptr);
    print(context, json);
  }
  context.log.progress(told_text(session, trial, history, best));
  return ExitCode::kDone;
}

}  // namespace

Command tell_command() {
  return {"tell",
          "DIR",
          "Records the result of a trial that krigtune ask proposed",
          "Closes the trial and rewrites trials.csv, best.json and the other files of DIR. FILE contains a "
          "JSON object such as {\"throughput\": 12.3, \"peak_memory_bytes\": 1.2e10, \"status\": \"ok\"}: the "
          "value has the name of the objective's metric, and any further numbers become "
          "metrics. If FILE is not such an object, the trial is closed as failed (bad_result). A trial "
          "can be closed once.",
          declare_tell,
          tell};
}

}  // namespace krigtune::cli
