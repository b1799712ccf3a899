#include "page/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/plan/memory_bars.h"
#include "report/labels.h"
#include "session/memory_filter.h"
#include "space/well_known.h"

namespace krigtune::page {
namespace {

using forecast::Candidate;

constexpr std::size_t kMostMarks = 2000;  // with more marks nothing could be distinguished

std::string verdict_text(const plan::MemoryVerdict& memory) {
  switch (memory.verdict) {
    case plan::Verdict::kFits:
      return "fits";
    case plan::Verdict::kTooLarge:
      return "too large";
    case plan::Verdict::kUncertain:
      break;
  }
  return fmt::format("{:.0f} % likely to fit", 100.0 * memory.probability_fits);
}

std::string what_fits(const PlanSource& source) {
  const forecast::VerdictCounts& counts = source.study.counts;
  HtmlTable shown{source.study.is_sample() ? "Of a sample drawn at random" : "Of all configurations",
                  {"verdict", "configurations"},
                  {}};
  const auto add = [&](const char* verdict, std::int64_t count) {
    if (count > 0) shown.rows.push_back({verdict, fmt::format("{}", count)});
  };
  add("fit", counts.fit);
  add("may fit", counts.uncertain);
  add("too large", counts.too_large);
  add("memory is not predicted", counts.unknown);
  return table(shown);
}

// A cell shows the configuration with the smallest peak, which tells whether any configuration of the cell fits.
std::string memory_map(const PlanSource& source) {
  std::map<std::int64_t, std::map<std::int64_t, const Candidate*>> cells;  // by micro-batch and stage
  std::map<std::int64_t, bool> stages;
  for (const Candidate& one : source.looked_at) {
    if (!one.forecast.memory) continue;
    const space::Configuration part = session::modelled_part(one.configuration);
    const std::int64_t stage = part.integer(space::kZeroStage, 0);
    const Candidate*& cell = cells[part.integer(space::kMicroBatch, 1)][stage];
    stages[stage] = true;
    if (cell == nullptr || one.forecast.memory->predicted.count < cell->forecast.memory->predicted.count) cell = &one;
  }
  if (cells.empty()) return "";
  HtmlTable shown{"The smallest peak of a rank, and whether it fits", {"micro-batch"}, {}};
  for (const auto& [stage, is_there] : stages) shown.columns.push_back(fmt::format("ZeRO stage {}", stage));
  for (const auto& [micro_batch, by_stage] : cells) {
    std::vector<std::string>& row = shown.rows.emplace_back();
    row.push_back(fmt::format("{}", micro_batch));
    for (const auto& [stage, is_there] : stages) {
      const auto found = by_stage.find(stage);
      row.push_back(found == by_stage.end()
                        ? ""
                        : escaped(fmt::format("{}, {}", to_string(found->second->forecast.memory->predicted),
                                              verdict_text(*found->second->forecast.memory))));
    }
  }
  return table(shown);
}

double peak_gib(const Candidate& one) { return to_gib(one.forecast.memory->predicted); }

// Returns those that no other one beats in both speed and memory, in the order of memory.
std::vector<const Candidate*> pareto_front(std::vector<const Candidate*> all) {
  std::sort(all.begin(), all.end(), [](const Candidate* a, const Candidate* b) {
    return std::pair(peak_gib(*a), -a->forecast.samples_per_s) < std::pair(peak_gib(*b), -b->forecast.samples_per_s);
  });
  std::vector<const Candidate*> front;
  for (const Candidate* one : all) {
    if (front.empty() || one->forecast.samples_per_s > front.back()->forecast.samples_per_s) front.push_back(one);
  }
  return front;
}

std::string front_numbers(const PlanSource& source, const std::vector<const Candidate*>& front) {
  HtmlTable shown{"The Pareto front", {"configuration", "peak", "samples/s", "memory"}, {}};
  for (const Candidate* one : front) {
    shown.rows.push_back({user_text(report::short_text(source.session, one->configuration)),
                          escaped(to_string(one->forecast.memory->predicted)),
                          fmt::format("{:.4g}", one->forecast.samples_per_s), verdict_text(*one->forecast.memory)});
  }
  return table(shown);
}

std::string memory_and_speed(const PlanSource& source) {
  std::vector<const Candidate*> known;
  for (const Candidate& one : source.looked_at) {
    if (one.forecast.memory && one.forecast.cost) known.push_back(&one);
  }
  if (known.size() < 2) return "";
  const std::vector<const Candidate*> front = pareto_front(known);
  Marks fits{"fits", Shape::kDot, 0, {}};
  Marks uncertain{"may fit", Shape::kRing, 4, {}};
  Marks too_large{"too large", Shape::kCross, 1, {}};
  std::vector<double> peaks;
  std::vector<double> speeds = {0.0};
  const std::size_t stride = (known.size() + kMostMarks - 1) / kMostMarks;
  for (std::size_t i = 0; i < known.size(); i += stride) {
    const Candidate& one = *known[i];
    peaks.push_back(peak_gib(one));
    speeds.push_back(one.forecast.samples_per_s);
    const plan::Verdict verdict = one.forecast.memory->verdict;
    Marks& kind = verdict == plan::Verdict::kFits ? fits : verdict == plan::Verdict::kTooLarge ? too_large : uncertain;
    kind.marks.push_back(
        {.x = peaks.back(), .y = speeds.back(), .tip = report::short_text(source.session, one.configuration)});
  }
  Line line{.name = "Pareto front", .hue = 2, .x = {}, .y = {}, .steps = true};
  for (const Candidate* one : front) {
    peaks.push_back(peak_gib(*one));
    line.x.push_back(peak_gib(*one));
    line.y.push_back(one->forecast.samples_per_s);
  }
  Chart drawing;
  drawing.title = "Memory against speed";
  drawing.description = "Predicted, a mark for each configuration; the table below has the front";
  drawing.x = axis_around("peak of a rank (GiB)", peaks, true);
  drawing.y = axis_around("samples/s", speeds);
  drawing.lines = {line};
  drawing.marks = {too_large, uncertain, fits};
  const std::string says = stride == 1 ? "" : fmt::format("One mark in {} is drawn.", stride);
  return figure({drawing.title, chart(drawing), says, front_numbers(source, front)});
}

std::string memory_terms(const PlanSource& source) {
  const MemoryUnit unit;
  Bars drawing;
  drawing.title = "Where memory goes, by ZeRO stage";
  drawing.description = "The example of each stage; predicted";
  double longest = 0.0;
  HtmlTable shown{"", {"ZeRO stage", "example", "peak", "at"}, {}};
  for (const auto& [stage, terms] : source.answers.terms) {
    Bar bar{fmt::format("stage {}", stage), memory_parts(terms, unit)};
    longest = std::max(longest, unit.of(terms.peak));
    drawing.bars.push_back(std::move(bar));
    shown.rows.push_back({fmt::format("{}", stage),
                          user_text(report::short_text(source.session, source.study.stages.at(stage).example)),
                          escaped(to_string(terms.peak)), escaped(terms.peak_at)});
  }
  if (drawing.bars.empty()) return "";
  scale_memory(drawing, source.session, unit, longest);
  return figure({drawing.title, bars(drawing), "", table(shown)});
}

std::string best(const PlanSource& source) {
  HtmlTable shown{source.study.best_probably_fit() ? "The fastest that fit more likely than not, as predicted"
                                                   : "None is likely to fit: the likeliest, as predicted",
                  {"configuration", "samples/s", "tokens/s per GPU", "MFU", "step", "peak", "memory"},
                  {}};
  for (const Candidate& one : source.study.best) {
    const auto& used = one.forecast.utilization;
    const auto& memory = one.forecast.memory;
    shown.rows.push_back({user_text(report::short_text(source.session, one.configuration)),
                          fmt::format("{:.4g}", one.forecast.samples_per_s),
                          used ? escaped(report::rate_text(used->tokens_per_s_per_gpu)) : "",
                          used ? escaped(report::share_text(used->mfu)) : "",
                          one.forecast.cost ? escaped(duration_text(one.forecast.cost->step_time_s)) : "",
                          memory ? escaped(to_string(memory->predicted)) : "", memory ? verdict_text(*memory) : ""});
  }
  return shown.rows.empty() ? "" : table(shown);
}

std::string list_of(const std::vector<std::string>& sentences) {
  std::vector<std::string> items;
  for (const std::string& one : sentences) items.push_back(escaped(one));
  return items.empty() ? "" : list(items);
}

// "8.03 billion parameters, 4096 tokens a sequence, on 64 nodes of 8 x h100-80gb. "
std::string job(const session::Session& session) {
  if (!session.workload) return "";
  const workload::ModelSpec& model = session.workload->model;
  const workload::ClusterSpec& cluster = session.cluster;
  const std::string machine =
      cluster.is_local()  ? counted(cluster.ranks(), "rank") + " of this machine"
      : cluster.nodes > 1 ? fmt::format("{} nodes of {} x {}", cluster.nodes, cluster.gpus_per_node, cluster.gpu)
                          : fmt::format("{} x {}", cluster.gpus_per_node, cluster.gpu);
  return fmt::format("{} parameters, {} tokens a sequence, on {}. ",
                     count_text(static_cast<double>(workload::parameter_count(model))), model.seq_len, machine);
}

}  // namespace

std::string plan_page(const PlanSource& source) {
  Document document;
  document.title = fmt::format("krigtune plan: {}", source.name);
  document.header =
      paragraph(fmt::format("{}Predicted; nothing has run. {} looked at. Made {}.", escaped(job(source.session)),
                            counted(source.study.looked_at(), "configuration"), escaped(source.made)));
  document.sections = {{"best", "The fastest", best(source)},
                       {"fits", "What fits", what_fits(source) + memory_map(source)},
                       {"memory", "Memory and speed", figures({memory_and_speed(source), memory_terms(source)})},
                       {"opinion", "Second opinion", list_of(opinion::sentences(source.near))},
                       {"whole-run", "The whole training", list_of(source.whole_run)}};
  document.footer = paragraph("krigtune plan SESSION --csv FILE writes a row for each configuration.");
  return page::document(document);
}

}  // namespace krigtune::page
