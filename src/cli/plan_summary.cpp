#include "plan_summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace krigtune {
namespace {

// Planning a large model's step takes milliseconds; naming a configuration takes a microsecond.
constexpr std::int64_t kMostPlanned = 20'000;
constexpr std::int64_t kMostListed = 1'000'000;
constexpr int kSampled = 2'000;
constexpr std::uint64_t kSampleSeed = 1;

Cell bytes_cell(std::int64_t bytes) { return {to_string(Bytes{bytes}), Value(bytes)}; }

Cell count_cell(std::int64_t count) { return {fmt::format("{}", count), Value(count)}; }

void add(StageMemory& stage, const Configuration& configuration, const MemoryCheck& check) {
  const std::int64_t peak = check.report.peak_bytes;
  const bool first = stage.configurations == 0;
  ++stage.configurations;
  if (check.verdict.verdict != Verdict::kTooLarge) ++stage.fit;
  stage.smallest_peak_bytes = first ? peak : std::min(stage.smallest_peak_bytes, peak);
  stage.largest_peak_bytes = std::max(stage.largest_peak_bytes, peak);
  const auto size = [](const Configuration& of, std::int64_t bytes) {
    return std::pair(of.integer("micro_batch", 1), bytes);
  };
  if (first || size(configuration, peak) < size(stage.small, stage.small_report.peak_bytes)) {
    stage.small = configuration;
    stage.small_report = check.report;
  }
}

// Sets what counting alone says.
void count_space(const Session& session, PlanSummary& plan) {
  std::int64_t left = 0;
  for (const ExclusionCount& excluded : session.space.exclusions()) {
    if (excluded.reason == Exclusion::kNone) {
      left = excluded.count;
    } else if (excluded.count > 0) {
      const bool no_row = excluded.reason == Exclusion::kRestricted && session.table != nullptr;
      const std::string reason = no_row ? "not in the table" : to_string(excluded.reason);
      plan.excluded.emplace_back(excluded.constraint.empty() ? reason : reason + " " + excluded.constraint,
                                 excluded.count);
    }
  }
  plan.configurations = session.space.count();
  plan.same_meaning = left - *plan.configurations;
}

Json stage_json(const StageMemory& stage, Bytes usable) {
  Json terms = Json::object();
  for (int term = 0; term < kTermCount; ++term) {
    terms[to_string(static_cast<Term>(term))] = stage.small_report.term_bytes[static_cast<std::size_t>(term)];
  }
  terms["fragmentation"] = stage.small_report.fragmentation_bytes;
  return {{"configurations", stage.configurations},
          {"fit", stage.fit},
          {"smallest_peak_bytes", stage.smallest_peak_bytes},
          {"largest_peak_bytes", stage.largest_peak_bytes},
          {"smallest_micro_batch",
           {{"configuration", to_json(stage.small)},
            {"peak_bytes", stage.small_report.peak_bytes},
            {"peak_at", stage.small_report.peak_at},
            {"headroom_bytes", usable.count - stage.small_report.peak_bytes},
            {"terms", terms}}}};
}

}  // namespace

PlanSummary summarise_plan(const Session& session, const MemoryFilter& filter, const ConfigurationVisit& visit) {
  PlanSummary plan;
  const Space& space = session.space;
  plan.lattice = space.lattice_count();
  if (space.listable()) count_space(session, plan);
  const auto look_at = [&](const Configuration& configuration) {
    ++plan.looked_at;
    const std::optional<MemoryCheck> check = filter.check(configuration);
    if (check) add(plan.stages[configuration.integer("zero_stage", 0)], configuration, *check);
    if (check && check->verdict.verdict == Verdict::kTooLarge) ++plan.too_large;
    if (visit) visit(configuration, check ? std::optional(check->verdict) : std::nullopt);
    return true;
  };
  const bool in_a_moment = !visit && filter.knows_memory();
  if (plan.configurations && *plan.configurations <= (in_a_moment ? kMostPlanned : kMostListed)) {
    space.for_each(look_at);
  } else {
    Rng rng(kSampleSeed, 0);
    for (int i = 0; i < kSampled; ++i) look_at(space.sample(rng));
  }
  plan.trials = session.budget.trials;
  if (!plan.is_sample()) {
    plan.trials = std::min(plan.trials, plan.looked_at - plan.too_large + (session.baseline ? 1 : 0));
  }
  if (session.runner.kind == RunnerKind::kBench) {
    const BenchSpec& bench = session.runner.bench;
    plan.trials_s = static_cast<double>(plan.trials) * (bench.warmup_s + bench.measure_s);
  }
  return plan;
}

Table stage_table(const PlanSummary& plan) {
  Table table{"stages",
              {{"zero_stage", "ZeRO stage", true},
               {"configurations", "configurations", true},
               {"fit", "fit", true},
               {"smallest_peak_bytes", "smallest peak", true},
               {"largest_peak_bytes", "largest peak", true}},
              {},
              {}};
  for (const auto& [number, stage] : plan.stages) {
    table.rows.push_back({count_cell(number), count_cell(stage.configurations), count_cell(stage.fit),
                          bytes_cell(stage.smallest_peak_bytes), bytes_cell(stage.largest_peak_bytes)});
  }
  return table;
}

Table term_table(const PlanSummary& plan, Bytes usable) {
  Table table{"terms", {{"term", "term"}}, {}, {}};
  for (const auto& [number, stage] : plan.stages) {
    const std::string name = fmt::format("stage {}", number);
    table.columns.push_back({name, name, true});
  }
  const auto add_row = [&](const std::string& title, const auto& bytes_of) {
    std::vector<Cell> row = {text_cell(title)};
    for (const auto& [number, stage] : plan.stages) row.push_back(bytes_cell(bytes_of(stage)));
    table.rows.push_back(std::move(row));
  };
  for (std::size_t term = 0; term < kTermCount; ++term) {
    add_row(to_string(static_cast<Term>(term)),
            [term](const StageMemory& s) { return s.small_report.term_bytes[term]; });
  }
  add_row("fragmentation", [](const StageMemory& s) { return s.small_report.fragmentation_bytes; });
  add_row("peak", [](const StageMemory& s) { return s.small_report.peak_bytes; });
  add_row("headroom", [usable](const StageMemory& s) { return usable.count - s.small_report.peak_bytes; });
  return table;
}

Json to_json(const PlanSummary& plan, const Session& session) {
  Json json;
  json["parameters"] = Json::object();
  for (const Parameter& parameter : session.space.parameters()) json["parameters"][parameter.name] = to_json(parameter);
  json["lattice_points"] = plan.lattice;
  json["excluded"] = Json::object();
  for (const auto& [reason, count] : plan.excluded) json["excluded"][reason] = count;
  json["same_meaning"] = plan.same_meaning;
  json["configurations"] = plan.configurations ? Json(*plan.configurations) : Json(nullptr);
  json["looked_at"] = plan.looked_at;
  json["too_large"] = plan.too_large;
  json["to_be_tried"] = plan.is_sample() ? Json(nullptr) : Json(plan.looked_at - plan.too_large);
  json["usable_bytes_per_rank"] = session.usable_per_rank ? Json(session.usable_per_rank->count) : Json(nullptr);
  json["memory_by_zero_stage"] = Json::object();
  for (const auto& [number, stage] : plan.stages) {
    json["memory_by_zero_stage"][fmt::format("{}", number)] = stage_json(stage, *session.usable_per_rank);
  }
  json["baseline"] = session.baseline ? to_json(*session.baseline) : Json(nullptr);
  json["trials"] = session.budget.trials;
  json["expected_s"] = plan.trials_s > 0.0 ? json_number(plan.trials_s) : Json(nullptr);
  return json;
}

}  // namespace krigtune
