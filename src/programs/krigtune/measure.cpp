// krigtune measure: shows what the session's "measure", or a regular expression that the user is writing, finds in a
// log.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/recipe.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/measure_text.h"
#include "report/table.h"
#include "runner/command_measure.h"
#include "runner/runner.h"
#include "session/session.h"
#include "trial/failure_text.h"
#include "trial/measure_reader.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kMostShownMatches = 1'000'000;
constexpr std::int64_t kUsuallyShown = 20;

void declare_measure(boost::program_options::options_description& options) {
  options.add_options()("log", typed_value_named("FILE"),
                        "what a job wrote: its stdout or stderr, JSON lines, CSV, or a TensorBoard event file");
  options.add_options()("regex", repeated_value_named("NAME=REGEX"),
                        "look for this expression, as in 'loss=loss: ([0-9.]+)'; may be repeated; replaces the "
                        "session's expression of that name");
  options.add_options()("session", typed_value_named("SESSION"),
                        "use the expressions under /runner/measure of this session");
  options.add_options()("recipe", typed_value_named("RECIPE"),
                        "use the expressions of this recipe (krigtune recipes), or of your own recipe file");
  options.add_options()("lines", typed_value_named("N"),
                        fmt::format("show N matches at most (default: {})", kUsuallyShown).c_str());
}

// What to look for, and what is known about the job.
struct Wanted {
  trial::MeasureSpec spec;
  trial::MeasureFacts facts;
  std::string objective;  // "": the first one that can be computed
};

void take_session(const std::filesystem::path& file, Wanted& wanted) {
  const session::Session session = session::load_session(file);
  const trial::MeasureSpec* spec = runner::measure_of(session.runner);
  if (spec == nullptr) {
    throw UserError(
        fmt::format("{}: /runner/kind: only the runner 'command' measures by what a program prints", file.string()),
        "give --regex NAME=REGEX instead");
  }
  wanted.spec = *spec;
  wanted.facts = runner::measure_facts(session.space.facts(), {});
  wanted.objective = session.objective.field;
}

}  // namespace

trial::MeasureSpec measures_of_recipe(const std::string& name) {
  const jobs::Recipe recipe = jobs::find_recipe(name);
  const Json keys = {{"measure", recipe.measure}, {"checks", recipe.checks}};
  JsonObject block(keys, "the recipe " + recipe.name, "");
  trial::MeasureSpec spec;
  spec.metrics = trial::read_measures(block, "measure");
  spec.checks = trial::read_checks(block, "checks");
  spec.warmup_steps = recipe.warmup_steps;
  spec.measure_steps = recipe.measure_steps;
  return spec;
}

namespace {

void take_regex(const std::string& text, Wanted& wanted) {
  const trial::Measure measure = trial::measure_from_text(text, "--regex");
  const auto known = std::find_if(wanted.spec.metrics.begin(), wanted.spec.metrics.end(),
                                  [&](const trial::Measure& other) { return other.name == measure.name; });
  if (known == wanted.spec.metrics.end()) {
    wanted.spec.metrics.push_back(measure);
  } else {
    known->how = trial::MeasureHow::kRegex;
    known->pattern = measure.pattern;
  }
}

Wanted wanted_by(const Arguments& arguments) {
  Wanted wanted;
  const auto session = arguments.text("session");
  const auto recipe = arguments.text("recipe");
  if (session && recipe) throw UserError("--recipe beside --session: the session says what is looked for", "give one");
  if (session) take_session(*session, wanted);
  if (recipe) wanted.spec = measures_of_recipe(*recipe);
  for (const std::string& text : arguments.texts("regex")) take_regex(text, wanted);
  if (wanted.spec.metrics.empty()) {
    throw UserError(session  ? "the session has no /runner/measure"
                    : recipe ? fmt::format("the recipe {} measures nothing", *recipe)
                             : "there is no expression to look for",
                    "give --regex NAME=REGEX, as in --regex 'step_time_s=time: ([0-9.]+)'");
  }
  if (!wanted.objective.empty() && trial::Measurement(wanted.spec, wanted.facts).can_tell(wanted.objective))
    return wanted;
  wanted.objective = wanted.spec.metrics.front().name;
  for (const char* name : {trial::kStepTime, trial::kSamplesRate, trial::kTokensRate}) {
    if (trial::Measurement(wanted.spec, wanted.facts).can_tell(name)) wanted.objective = name;
  }
  return wanted;
}

std::filesystem::path log_of(const Arguments& arguments) {
  const auto file = arguments.text("log");
  if (!file)
    throw UserError("--log is missing", "name the file with the job's output: krigtune measure --log stdout.log");
  std::error_code error;
  std::filesystem::path path = *file;
  if (!std::filesystem::exists(path, error))
    throw UserError(fmt::format("--log: '{}' does not exist", *file), "check the path");
  if (!std::filesystem::is_regular_file(path, error))
    throw UserError(fmt::format("--log: '{}' is not a file", *file), "name one");
  return path;
}

// The results from one log.
struct ReadLog {
  std::vector<ShownMatch> shown;
  std::int64_t lines = 0;
  std::int64_t matches = 0;
};

std::string name_of(const trial::MeasureSpec& spec, const trial::LineMatch& match) {
  if (!match.is_check) return spec.metrics[match.metric].name;
  const trial::PrintedCheck& check = spec.checks[match.metric];
  return "check of " + (check.what.empty() ? check.regex : check.what);
}

ShownMatch shown_match(const trial::MeasureSpec& spec, std::int64_t number, const std::string& line,
                       const trial::LineMatch& match) {
  ShownMatch shown{number, line, match.found, name_of(spec, match), ""};
  if (match.is_check) {
    shown.means = fmt::format("{}, must be {}", match.found.value, spec.checks[match.metric].equals);
  } else if (spec.metrics[match.metric].how == trial::MeasureHow::kWall) {
    shown.means = "its time counts";
  } else if (!match.value) {
    shown.means = "is not a number";
  } else {
    const std::string unit = trial::unit_of_measure(shown.name);
    shown.means = fmt::format("{:.6g}", *match.value * spec.metrics[match.metric].times) +
                  (unit.empty() ? "" : " " + unit) +
                  (spec.metrics[match.metric].per == trial::MeasureScope::kGpu ? " a GPU" : "");
  }
  return shown;
}

ReadLog read_log(const std::filesystem::path& file, trial::Measurement& measurement, std::int64_t most_shown) {
  ReadLog log;
  const auto take = [&](const std::string& line, const std::vector<trial::LineMatch>& found) {
    ++log.lines;
    for (const trial::LineMatch& match : found) {
      ++log.matches;
      const bool is_shown = static_cast<std::int64_t>(log.shown.size()) < most_shown;
      if (is_shown) log.shown.push_back(shown_match(measurement.spec(), log.lines, line, match));
    }
  };
  trial::measure_file(measurement, file, take);
  for (std::size_t i = 0; i < measurement.spec().metrics.size(); ++i) {
    if (log.lines == 0) log.matches += measurement.matches(i);  // from an event file
  }
  return log;
}

report::Cell value_cell(std::optional<double> value) {
  return report::number_cell(value, value ? fmt::format("{:.6g}", *value) : "-");
}

report::Table metrics_table(const trial::Measurement& measurement) {
  report::Table table{"metrics",
                      {{"metric", "metric"},
                       {"lines", "lines", true},
                       {"steps", "steps", true},
                       {"median", "median", true},
                       {"last", "last", true},
                       {"unit", "unit"}},
                      {},
                      {}};
  const trial::MeasureSpec& spec = measurement.spec();
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::int64_t lines = measurement.matches(i);
    const std::vector<double> values = measurement.step_values(i);
    const bool has_steps = !values.empty();
    table.rows.push_back({report::text_cell(spec.metrics[i].name),
                          report::number_cell(static_cast<double>(lines), std::to_string(lines)),
                          report::number_cell(static_cast<double>(values.size()), std::to_string(values.size())),
                          value_cell(has_steps ? std::optional(trial::middle(values)) : std::nullopt),
                          value_cell(lines > 0 ? std::optional(measurement.last(i)) : std::nullopt),
                          report::text_cell(trial::unit_of_measure(spec.metrics[i].name))});
  }
  return table;
}

// Returns "throughput: 23.5 samples/s, from 10 steps behind 5 of the warm-up".
std::string result_sentence(const trial::Measurement& measurement, const std::string& objective) {
  if (!measurement.fault().empty()) return "a trial with this line would fail: " + measurement.fault();
  const auto value = measurement.value_of(objective);
  if (!value) return measurement.why_nothing(objective);
  const std::string unit = trial::unit_of_measure(objective);
  std::string sentence = fmt::format("{}: {:.6g}{}", objective, value->value, unit.empty() ? "" : " " + unit);
  if (value->sem > 0.0) sentence += fmt::format(" (standard error {:.2g})", value->sem);
  if (measurement.counts_steps(objective)) {
    sentence += fmt::format(", from {} after {} of the warm-up", counted(value->steps, "step"),
                            measurement.spec().warmup_steps);
  }
  return sentence;
}

void print_text(const Context& context, const std::filesystem::path& file, const ReadLog& log,
                const trial::Measurement& measurement, const std::string& objective) {
  std::ostream& out = context.console.out;
  for (const ShownMatch& match : log.shown) {
    const bool live = context.console.out_is_terminal;
    out << match_text(match, live ? context.console.width : kWidthOfFiles, live && context.console.colors);
  }
  const auto shown = static_cast<std::int64_t>(log.shown.size());
  if (log.lines > 0 && log.matches > shown) out << fmt::format("... {} more matches\n", log.matches - shown);
  if (!log.shown.empty()) out << '\n';
  out << report::render(metrics_table(measurement), report::TableFormat::kTable) << '\n'
      << result_sentence(measurement, objective) << '\n';
  for (const std::string& warning : measurement.warnings(objective)) context.log.warning(warning);
  if (log.matches == 0)
    context.log.error(fmt::format("{}: nothing matched in {}", file.string(), counted(log.lines, "line")));
}

Json document_of(const std::filesystem::path& file, const ReadLog& log, const trial::Measurement& measurement,
                 const std::string& objective) {
  Json json = new_document("measure");
  json["log"] = file.string();
  json["lines"] = log.lines;
  json["matches"] = Json::array();
  for (const ShownMatch& match : log.shown) {
    json["matches"].push_back({{"line", match.number},
                               {"metric", match.name},
                               {"begin", match.found.begin},
                               {"length", match.found.length},
                               {"printed", trial::printable(match.found.value)}});
  }
  json["match_count"] = log.matches;
  json["metrics"] = report::rows_json(metrics_table(measurement));
  const auto value = measurement.value_of(objective);
  json["result"] = {{"objective", objective},
                    {"value", value ? json_number(value->value) : Json(nullptr)},
                    {"value_sem", value ? json_number(value->sem) : Json(nullptr)},
                    {"steps", value ? Json(value->steps) : Json(nullptr)},
                    {"sentence", result_sentence(measurement, objective)}};
  json["closest"] = Json::object();
  for (std::size_t i = 0; i < measurement.spec().metrics.size(); ++i) {
    const std::vector<std::string> lines = measurement.closest(i);
    if (measurement.matches(i) == 0 && !lines.empty()) json["closest"][measurement.spec().metrics[i].name] = lines;
  }
  json["warnings"] = measurement.warnings(objective);
  return json;
}

int measure(const Context& context) {
  const std::filesystem::path file = log_of(context.arguments);
  const Wanted wanted = wanted_by(context.arguments);
  const std::int64_t most_shown = context.arguments.integer("lines", 0, kMostShownMatches).value_or(kUsuallyShown);
  trial::Measurement measurement(wanted.spec, wanted.facts);
  const ReadLog log = read_log(file, measurement, most_shown);
  if (context.arguments.flag("json")) {
    print(context, document_of(file, log, measurement, wanted.objective));
  } else {
    print_text(context, file, log, measurement, wanted.objective);
  }
  return log.matches > 0 ? ExitCode::kDone : ExitCode::kNoResult;
}

}  // namespace

Command measure_command() {
  return {"measure",
          "",
          "Shows what krigtune would measure in a job's log",
          "Prints each matching line with its number marked, then the resulting metrics. Use --regex to "
          "try a regular expression (ECMAScript, with one group around the number) before you write it "
          "into a session. Metrics with a known meaning: step_time_s, tokens_per_s, samples_per_s, "
          "tokens, samples, flops_per_s, loss, iteration, peak_memory_bytes. Exit code 1: nothing "
          "matched; the most similar line is shown. See docs/measure.md.",
          declare_measure,
          measure};
}

}  // namespace krigtune::cli
