#include "compare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "document.h"
#include "krigtune/report/comparison.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/table.h"
#include "loaded_run.h"
#include "regret_chart.h"

namespace krigtune {
namespace {

constexpr const char* kFiles[] = {"comparison.csv", "comparison_summary.csv", "comparison_pairs.csv", "comparison.svg"};

// Only real trials take time that tells something.
bool shows_time(const Session& session) { return traits_of(session.runner).runs_programs; }

std::vector<Column> summary_columns(const Session& session, const CompareOptions& options) {
  std::vector<Column> columns = {{"strategy", "strategy"},
                                 {"seeds", "runs", true},
                                 {"trials_to_5pct_median", "trials to 5 %", true},
                                 {"trials_to_1pct_median", "trials to 1 %", true},
                                 {"failed_first_20_mean", "failed of first 20", true}};
  for (const int trials : kComparedAt) {
    if (trials > options.trials) continue;
    columns.push_back(
        {fmt::format("best_over_optimum_at_{}", trials), fmt::format("best/optimum at {}", trials), true});
  }
  if (!shows_time(session)) return columns;
  columns.push_back({"seconds_to_5pct_median", "time to 5 %", true});
  columns.push_back({"seconds_median", "time in all", true});
  return columns;
}

// "7 (5 to 9)": median and quartiles; beyond the budget it was not reached.
std::string trials_to_text(const SeedStatistics& statistics, const StrategySummary& summary, int budget) {
  const auto trials = [budget](double count) {
    return count > budget ? fmt::format(">{}", budget) : fmt::format("{:.4g}", count);
  };
  if (summary.seeds == 1) return trials(statistics.median);
  return fmt::format("{} ({} to {})", trials(statistics.median), trials(statistics.q25), trials(statistics.q75));
}

// Where fewer than half of the runs came there, their time is not known: at least that of the whole runs.
std::string seconds_to_text(double seconds, bool is_reached) {
  return fmt::format("{}{:.4g} s", is_reached ? "" : ">", seconds);
}

Table summary_table(const Session& session, const Comparison& comparison, const CompareOptions& options) {
  Table table{"strategies", summary_columns(session, options), {}, {}};
  for (const StrategySummary& summary : comparison.summary) {
    std::vector<Cell> row = {
        text_cell(to_string(summary.strategy)), number_cell(summary.seeds, fmt::format("{}", summary.seeds)),
        number_cell(summary.trials_to_5pct.median, trials_to_text(summary.trials_to_5pct, summary, options.trials)),
        number_cell(summary.trials_to_1pct.median, trials_to_text(summary.trials_to_1pct, summary, options.trials)),
        number_cell(summary.failed_first_20_mean, fmt::format("{:.1f}", summary.failed_first_20_mean))};
    for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
      if (kComparedAt[i] > options.trials) continue;
      const std::optional<double>& quotient = summary.best_over_optimum_at[i];
      row.push_back(number_cell(quotient, quotient ? fmt::format("{:.3f}", *quotient) : ""));
    }
    if (shows_time(session)) {
      const bool is_reached = summary.trials_to_5pct.median <= options.trials;
      row.push_back(
          number_cell(summary.seconds_to_5pct.median, seconds_to_text(summary.seconds_to_5pct.median, is_reached)));
      row.push_back(number_cell(summary.seconds.median, seconds_to_text(summary.seconds.median, true)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void print_sentences(std::ostream& out, const Comparison& comparison, int budget) {
  for (const double within : kComparedWithin) {
    const std::vector<std::string> sentences = comparison_sentences(comparison, within, budget);
    if (sentences.empty()) continue;
    out << fmt::format("\nto come within {:g} % of the optimum\n", within * 100.0);
    for (const std::string& sentence : sentences) out << "  " << sentence << '\n';
  }
}

Json pairs_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const PairedComparison& pair : comparison.pairs) {
    Json json = {{"strategy", to_string(pair.first)},
                 {"other", to_string(pair.other)},
                 {"within", pair.within},
                 {"pairs", pair.pairs},
                 {"trials_mean", pair.first_mean},
                 {"other_trials_mean", pair.other_mean},
                 {"never", pair.first_unreached},
                 {"other_never", pair.other_unreached},
                 {"ratio", pair.ratio},
                 {"ratio_lower_95", json_or_null(pair.lower_95)},
                 {"ratio_upper_95", json_or_null(pair.upper_95)},
                 {"wins", pair.wins},
                 {"ties", pair.ties},
                 {"losses", pair.losses}};
    json["signed_rank_p"] = pair.lower_95 ? Json(pair.signed_rank_p) : Json(nullptr);
    json["sign_p"] = pair.lower_95 ? Json(pair.sign_p) : Json(nullptr);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

void print_comparison(const Context& context, const Session& session, const Comparison& comparison,
                      const CompareOptions& options) {
  std::ostream& out = context.console.out;
  if (comparison.summary.empty()) {
    out << "no run is whole\n";
    return;
  }
  out << render(summary_table(session, comparison, options), TableFormat::kTable);
  if (comparison.optimum) {
    out << fmt::format("optimum {}: {}{}\n", named_value_text(session, *comparison.optimum),
                       comparison.optimum_is_known ? "of the table" : "the best of all runs here",
                       emulated_note(session));
  }
  print_sentences(out, comparison, options.trials);
  out << '\n' << regret_chart(comparison, options.trials, context.console.width);
  out << fmt::format("\nfiles  {}:", options.directory.string());
  for (const char* file : kFiles) out << ' ' << file;
  out << '\n';
}

Json comparison_json(const Session& session, const Comparison& comparison, const CompareOptions& options) {
  Json json = new_document("compare");
  json["session"] = session_name(session);
  json["seed"] = options.seed;
  json["seeds"] = options.seeds;
  json["trials"] = options.trials;
  json["metric"] = session.objective.metric;
  json["emulated_network"] = emulated_json(session);
  json["optimum"] = json_or_null(comparison.optimum);
  json["optimum_is_known"] = comparison.optimum_is_known;
  json["directory"] = options.directory.string();
  json["files"] = kFiles;
  json["strategies"] = rows_json(summary_table(session, comparison, options));
  json["pairs"] = pairs_json(comparison);
  json["runs_cut_short"] = comparison.cut_short.size();
  return json;
}

}  // namespace krigtune
