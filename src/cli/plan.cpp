// krigtune plan: everything that can be said before anything runs.
#include <fmt/format.h>

#include <ostream>

#include "document.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/tables_csv.h"
#include "loaded_run.h"
#include "plan_summary.h"
#include "show_config.h"

namespace krigtune {
namespace {

void declare(boost::program_options::options_description& options) {
  options.add_options()("csv", value_named("FILE"), "write a row for each configuration, with its memory, to FILE");
  declare_show_config(options);
}

std::string range_text(const Parameter& parameter) {
  const char* const scale = parameter.scale == Scale::kLog ? ", log scale" : "";
  return fmt::format("any from {} to {}{}", number_text(parameter.range->min), number_text(parameter.range->max),
                     scale);
}

std::string values_text(const Parameter& parameter) {
  if (parameter.continuous()) return range_text(parameter);
  constexpr std::size_t kShown = 12;
  std::vector<std::string> values;
  for (const Value& value : parameter.values) values.push_back(to_string(value));
  if (values.size() > kShown) {
    values[kShown - 2] = "...";
    values[kShown - 1] = values.back();
    values.resize(kShown);
  }
  return join(values, ", ");
}

std::string count_text(const Parameter& parameter) {
  if (parameter.continuous()) return "   real values";
  return fmt::format("{:>7} {}", parameter.values.size(), parameter.values.size() == 1 ? "value " : "values");
}

void print_parameters(std::ostream& out, const Session& session) {
  std::size_t width = 0;
  for (const Parameter& parameter : session.space.parameters()) width = std::max(width, parameter.name.size());
  out << "Parameters\n";
  for (const Parameter& parameter : session.space.parameters()) {
    out << fmt::format("  {:<{}}  {}  {}{}\n", parameter.name, width, count_text(parameter), values_text(parameter),
                       parameter.when ? ", when " + parameter.when->text() : "");
  }
  out << "  baseline (trial 0)  " << (session.baseline ? session.baseline->text() : "none") << '\n';
}

void print_what_fits(std::ostream& out, const PlanSummary& plan, const Session& session) {
  const std::int64_t fit = plan.looked_at - plan.too_large;
  const std::string limit = to_string(*session.usable_per_rank);
  if (plan.is_sample()) {
    out << fmt::format("  of {} drawn at random {} fit into {} a rank ({:.1f} %)\n", plan.looked_at, fit, limit,
                       100.0 * static_cast<double>(fit) / static_cast<double>(plan.looked_at));
    return;
  }
  out << fmt::format("  {:>13}  too large in memory: more than {} a rank\n", -plan.too_large, limit)
      << fmt::format("  {:>13}  fit and may be tried\n", fit);
}

void print_space(std::ostream& out, const PlanSummary& plan, const Session& session) {
  const auto line = [&out](std::int64_t count, const std::string& text) {
    out << fmt::format("  {:>13}  {}\n", count, text);
  };
  out << "\nSpace\n";
  if (plan.configurations) {
    line(plan.lattice, "points of the lattice");
    for (const auto& [reason, count] : plan.excluded) line(-count, reason);
    if (plan.same_meaning > 0) line(-plan.same_meaning, "same as another: they differ in knobs without effect only");
    line(*plan.configurations, "configurations");
  } else {
    out << "  not to be counted: it has parameters of real numbers\n";
    for (const Expression& constraint : session.space.constraints()) out << "  where " << constraint.text() << '\n';
  }
  if (session.usable_per_rank) print_what_fits(out, plan, session);
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (const char c : text.substr(0, text.size() - 1)) result += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return result + "\n";
}

void print_memory(std::ostream& out, const PlanSummary& plan, const Session& session) {
  if (plan.stages.empty()) {
    out << "\nMemory\n  not planned: only the runner bench executes what the plan describes\n";
    return;
  }
  out << fmt::format("\nMemory of one rank, limit {}\n", to_string(*session.usable_per_rank))
      << indented(render(stage_table(plan), TableFormat::kTable))
      << "\nWhere the peak comes from, smallest micro-batch of each stage\n"
      << indented(render(term_table(plan, *session.usable_per_rank), TableFormat::kTable));
}

void print_time(std::ostream& out, const PlanSummary& plan, const Session& session) {
  out << "\nTime\n";
  const RunnerSpec& runner = session.runner;
  switch (runner.kind) {
    case RunnerKind::kReplay:
      out << fmt::format("  {} trials at most, looked up: nothing runs\n", session.budget.trials);
      return;
    case RunnerKind::kNone:
      out << "  yours: trials are asked and told by hand (krigtune ask, krigtune tell)\n";
      return;
    case RunnerKind::kCommand:
      out << fmt::format("  {} trials of your program, each ended after {} at the latest\n", plan.trials,
                         duration_text(runner.command.timeout_s));
      break;
    case RunnerKind::kBench:
      out << fmt::format(
          "  about {}: {} trials of at most {} each ({} warm-up, {} measurement){}\n", duration_text(plan.trials_s),
          plan.trials, duration_text(runner.bench.warmup_s + runner.bench.measure_s),
          duration_text(runner.bench.warmup_s), duration_text(runner.bench.measure_s), emulated_note(session));
      break;
  }
  if (session.budget.hours)
    out << fmt::format("  and no trial begins after {} hours\n", number_text(*session.budget.hours));
}

void say_that_it_is_a_sample(const Context& context, const PlanSummary& plan) {
  if (!plan.is_sample()) return;
  context.log.warning(
      fmt::format("the space is too large to list: {} configurations drawn at random were looked at; "
                  "give its ranges fewer values (\"steps\") to see all",
                  plan.looked_at));
}

int plan_session(const Context& context) {
  const Session session = session_of(context, context.arguments.operand());
  if (context.arguments.flag("show-config")) return show_config(context, session, {});
  const MemoryFilter filter(session);
  const std::optional<std::string> csv = context.arguments.text("csv");
  const std::vector<std::string> columns = session.space.columns();
  std::string text = plan_header(columns);
  ConfigurationVisit add_line;
  if (csv) {
    add_line = [&](const Configuration& configuration, const std::optional<MemoryVerdict>& memory) {
      text += plan_line(configuration, memory, columns);
    };
  }
  const PlanSummary plan = summarise_plan(session, filter, add_line);
  if (csv) write_atomically(*csv, text);
  if (csv || session.usable_per_rank) say_that_it_is_a_sample(context, plan);
  if (context.arguments.flag("json")) {
    Json json = new_document("plan");
    json["session"] = session_name(session);
    json["emulated_network"] = emulated_json(session);
    json.update(to_json(plan, session));
    if (csv) json["csv"] = *csv;
    print(context, json);
  } else {
    print_parameters(context.console.out, session);
    print_space(context.console.out, plan, session);
    print_memory(context.console.out, plan, session);
    print_time(context.console.out, plan, session);
    if (csv) context.console.out << fmt::format("\n{}: {} configurations\n", *csv, plan.looked_at);
  }
  if (plan.looked_at > plan.too_large) return ExitCode::kDone;
  context.log.error("no configuration fits in memory; raise /memory/limit_gib, or widen the space");
  return ExitCode::kNoResult;
}

}  // namespace

Command plan_command() {
  return {"plan",
          "SESSION",
          "Shows the space, what fits in memory and the time that a session takes; runs nothing",
          "Lists every parameter, the size of the space, what is excluded and why, the memory of one rank by\n"
          "ZeRO stage and by term, and the expected time.",
          declare,
          plan_session};
}

}  // namespace krigtune
