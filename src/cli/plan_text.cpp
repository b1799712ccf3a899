// The sections of `krigtune plan` that say what there is: job, parameters, space, memory.
#include "plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/text.h"
#include "krigtune/cost/framework.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/table.h"
#include "krigtune/space/parameter_names.h"
#include "plan_tables.h"

namespace krigtune {
namespace {

std::string range_text(const Parameter& parameter) {
  const char* const scale = parameter.scale == Scale::kLog ? ", log scale" : "";
  return fmt::format("any from {} to {}{}", number_text(parameter.range->min), number_text(parameter.range->max),
                     scale);
}

// As many as fit into a line that begins at column `from`.
std::string values_text(const Parameter& parameter, std::size_t from) {
  if (parameter.continuous()) return range_text(parameter);
  constexpr std::size_t kWidth = 100;
  std::vector<std::string> values;
  for (const Value& value : parameter.values) values.push_back(to_string(value));
  std::vector<std::string> shown = values;
  for (std::size_t kept = values.size() - 1; join(shown, ", ").size() + from > kWidth && kept > 1; --kept) {
    shown.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept - 1));
    shown.insert(shown.end(), {"...", values.back()});
  }
  return join(shown, ", ");
}

std::string values_counted(const Parameter& parameter) {
  if (parameter.continuous()) return "  real values";
  return fmt::format("{:>6} {}", parameter.values.size(), parameter.values.size() == 1 ? "value " : "values");
}

std::string machine_text(const ClusterSpec& cluster) {
  if (!cluster.network) return fmt::format("{} ranks on this machine", cluster.ranks());
  const std::string within = fmt::format("{} within a node", cluster.network->intra.name);
  if (cluster.nodes == 1) return fmt::format("{} x {}, {}", cluster.gpus_per_node, cluster.gpu, within);
  return fmt::format("{} nodes of {} x {}, {}, {} between nodes", cluster.nodes, cluster.gpus_per_node, cluster.gpu,
                     within, cluster.network->inter.name);
}

void print_counts(const PlanText& text) {
  const VerdictCounts& counts = text.study.counts;
  const std::string usable = to_string(*text.session.usable_per_rank);
  const auto line = [&](std::int64_t count, const std::string& what) {
    text.out << fmt::format("  {:>13}  {}\n", count, what);
  };
  if (counts.too_large > 0) line(-counts.too_large, fmt::format("too large for {} a rank: never tried", usable));
  if (counts.uncertain > 0) {
    line(counts.uncertain, fmt::format("uncertain: about {:.0f} of them fit", counts.expected_to_run));
  }
  if (counts.unknown > 0) line(counts.unknown, "whose memory is not modelled");
  line(counts.fit, fmt::format("fit into {} a rank", usable));
}

void print_shares(const PlanText& text) {
  const VerdictCounts& counts = text.study.counts;
  const auto share = [&](std::int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(counts.all());
  };
  text.out << fmt::format("  of {} drawn at random {:.1f} % fit into {} a rank", counts.all(), share(counts.fit),
                          to_string(*text.session.usable_per_rank));
  if (counts.uncertain > 0) text.out << fmt::format(", {:.1f} % are uncertain", share(counts.uncertain));
  text.out << fmt::format(", {:.1f} % are too large\n", share(counts.too_large));
}

}  // namespace

void print_job(const PlanText& text) {
  if (!text.session.workload) return;
  const Workload& workload = *text.session.workload;
  const ModelSpec& model = workload.model;
  text.out << fmt::format("Job\n  {} parameters: {} layers, hidden size {}, {} tokens a sequence\n",
                          count_text(static_cast<double>(parameter_count(model))), model.layers, model.hidden,
                          model.seq_len);
  const std::string batch =
      workload.train_batch_size ? fmt::format(", {} sequences a step", *workload.train_batch_size) : "";
  text.out << fmt::format("  {}, {}{}, trained by {}\n", to_string(workload.precision),
                          workload.optimizer == OptimizerKind::kAdamW ? "AdamW" : "SGD", batch,
                          traits_of(workload.framework).name);
  text.out << fmt::format("  {}\n", machine_text(text.session.cluster));
  text.out << '\n';
}

void print_parameters(const PlanText& text) {
  std::size_t width = 0;
  for (const Parameter& parameter : text.session.space.parameters()) width = std::max(width, parameter.name.size());
  text.out << "Parameters\n";
  for (const Parameter& parameter : text.session.space.parameters()) {
    const std::string begin = fmt::format("  {:<{}}  {}  ", parameter.name, width, values_counted(parameter));
    text.out << begin << values_text(parameter, begin.size())
             << (parameter.when ? ", when " + parameter.when->text() : "") << '\n';
  }
  const Configuration& fixed = text.session.space.facts().fixed;
  if (!fixed.empty()) text.out << wrapped("  fixed: " + fixed.text(), 4);
  text.out << wrapped("  baseline (trial 0): " + (text.session.baseline ? text.session.baseline->text() : "none"), 4);
}

void print_assumptions(const PlanText& text) {
  const std::vector<Assumption>& assumptions = text.session.assumptions;
  if (assumptions.empty()) return;
  text.out << "\nAssumed, because the session does not say\n";
  std::size_t width = 0;
  for (const Assumption& one : assumptions) width = std::max(width, one.name.size() + to_string(one.value).size() + 3);
  for (const Assumption& one : assumptions) {
    const std::string line = fmt::format("  {:<{}}  {}", one.name + " = " + to_string(one.value), width, one.where);
    text.out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  if (assumptions.front().name == "attention") return;
  text.out << wrapped(fmt::format("  Jobs of {} usually do. If yours does not, write \"fixed\": {{\"{}\": {}}}.",
                                  traits_of(text.session.workload->framework).name, assumptions.front().name,
                                  assumptions.front().name == kSequenceParallel ? "false" : "0"),
                      2);
}

void print_space(const PlanText& text) {
  const PlanStudy& study = text.study;
  const auto line = [&](std::int64_t count, const std::string& what) {
    text.out << fmt::format("  {:>13}  {}\n", count, what);
  };
  text.out << "\nSpace\n";
  if (study.configurations) {
    line(study.lattice, "points of the lattice");
    for (const auto& [reason, count] : study.excluded) line(-count, reason);
    if (study.same_meaning > 0) line(-study.same_meaning, "same as another: they differ in knobs without effect only");
    line(*study.configurations, "configurations");
  } else {
    text.out << "  not to be counted: it has parameters of real numbers\n";
    for (const Expression& constraint : text.session.space.constraints()) {
      text.out << "  where " << constraint.text() << '\n';
    }
  }
  if (!text.session.usable_per_rank) return;
  if (study.is_sample()) {
    print_shares(text);
  } else {
    print_counts(text);
  }
}

void print_memory(const PlanText& text) {
  if (text.study.stages.empty()) {
    const char* const why = text.session.workload ? "name a \"gpu\", or give \"limit_gib\" in the block \"memory\""
                                                  : "give a \"workload\" to have it predicted";
    text.out << "\nMemory\n  not known; " << why << '\n';
    return;
  }
  text.out << fmt::format("\nMemory of one rank, {} usable\n", to_string(*text.session.usable_per_rank))
           << indented(render(stage_table(text.study), TableFormat::kTable));
  text.out << "\nWhere it goes at the peak\n"
           << indented(render(term_table(text.answers, *text.session.usable_per_rank), TableFormat::kTable));
  for (const auto& [number, stage] : text.study.stages) {
    text.out << wrapped(fmt::format("  stage {}: {}", number, short_text(text.session, stage.example)), 11);
  }
}

}  // namespace krigtune
