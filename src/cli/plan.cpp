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

std::string values_text(const Parameter& parameter) {
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

void print_parameters(std::ostream& out, const Session& session) {
  std::size_t width = 0;
  for (const Parameter& parameter : session.space.parameters()) width = std::max(width, parameter.name.size());
  out << "Parameters\n";
  for (const Parameter& parameter : session.space.parameters()) {
    out << fmt::format("  {:<{}}  {:>3} {}  {}\n", parameter.name, width, parameter.values.size(),
                       parameter.values.size() == 1 ? "value " : "values", values_text(parameter));
  }
  out << "  baseline (trial 0)  " << (session.baseline ? session.baseline->text() : "none") << '\n';
}

void print_space(std::ostream& out, const PlanSummary& plan, const Session& session) {
  const auto line = [&out](std::int64_t count, const std::string& text) {
    out << fmt::format("  {:>9}  {}\n", count, text);
  };
  out << "\nSpace\n";
  line(plan.lattice, "points of the lattice");
  for (const auto& [reason, count] : plan.excluded) line(-count, reason);
  if (plan.same_meaning > 0) line(-plan.same_meaning, "same as another: they differ in knobs without effect only");
  line(plan.configurations, "configurations");
  if (session.usable_per_rank) {
    line(-plan.too_large, fmt::format("too large in memory: more than {} a rank", to_string(*session.usable_per_rank)));
    line(plan.configurations - plan.too_large, "fit and may be tried");
  }
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (const char c : text.substr(0, text.size() - 1)) result += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return result + "\n";
}

void print_memory(std::ostream& out, const PlanSummary& plan, const Session& session) {
  if (plan.stages.empty()) {
    out << "\nMemory\n  not planned: the runner looks results up in a table\n";
    return;
  }
  out << fmt::format("\nMemory of one rank, limit {}\n", to_string(*session.usable_per_rank))
      << indented(render(stage_table(plan), TableFormat::kTable))
      << "\nWhere the peak comes from, smallest micro-batch of each stage\n"
      << indented(render(term_table(plan, *session.usable_per_rank), TableFormat::kTable));
}

void print_time(std::ostream& out, const PlanSummary& plan, const Session& session) {
  out << "\nTime\n";
  if (session.runner.kind == RunnerKind::kReplay) {
    out << fmt::format("  {} trials at most, looked up: nothing runs\n", session.budget.trials);
    return;
  }
  const double each_s = session.runner.bench.warmup_s + session.runner.bench.measure_s;
  out << fmt::format("  about {}: {:.0f} trials of at most {} each ({} warm-up, {} measurement){}\n",
                     duration_text(plan.trials_s), plan.trials_s / each_s, duration_text(each_s),
                     duration_text(session.runner.bench.warmup_s), duration_text(session.runner.bench.measure_s),
                     emulated_note(session));
  if (session.budget.hours)
    out << fmt::format("  and no trial begins after {} hours\n", number_text(*session.budget.hours));
}

int plan_session(const Context& context) {
  const Session session = session_of(context, context.arguments.operand());
  if (context.arguments.flag("show-config")) return show_config(context, session, {});
  const MemoryFilter filter(session);
  const std::optional<std::string> csv = context.arguments.text("csv");
  const std::vector<std::string> columns = session.space.columns();
  std::string text = plan_header(columns);
  const PlanSummary plan = summarise_plan(
      session, filter, [&](const Configuration& configuration, const std::optional<MemoryVerdict>& memory) {
        if (csv) text += plan_line(configuration, memory, columns);
      });
  if (csv) write_atomically(*csv, text);
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
    if (csv) context.console.out << fmt::format("\n{}: {} configurations\n", *csv, plan.configurations);
  }
  if (plan.configurations > plan.too_large) return ExitCode::kDone;
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
