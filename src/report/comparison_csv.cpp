#include <fmt/format.h>

#include "krigtune/core/csv.h"
#include "krigtune/report/fields.h"
#include "krigtune/report/tables_csv.h"

namespace krigtune {
namespace {

void append_statistics(std::vector<std::string>& row, const SeedStatistics& statistics) {
  for (const double number : {statistics.median, statistics.mean, statistics.q25, statistics.q75}) {
    row.push_back(field(std::optional(number)));
  }
}

const char* pairing_text(Pairing pairing) {
  switch (pairing) {
    case Pairing::kSeeds:
      return "seeds";
    case Pairing::kOneWithEach:
      return "one_with_each";
    case Pairing::kOneWithTheOne:
      break;
  }
  return "one_with_one";
}

}  // namespace

std::string comparison_csv(const Comparison& comparison) {
  std::string text = csv_line({"strategy", "seed", "trial", "status", "value", "best_so_far", "regret", "wall_s"});
  for (const ComparedTrial& trial : comparison.trials) {
    text += csv_line({to_string(trial.strategy), fmt::format("{}", trial.seed), fmt::format("{}", trial.trial),
                      trial.status, field(trial.value), field(trial.best_so_far), field(std::optional(trial.regret)),
                      field(std::optional(trial.wall_s))});
  }
  return text;
}

std::string comparison_summary_csv(const Comparison& comparison) {
  std::vector<std::string> header = {"strategy", "seeds"};
  for (const char* target : {"5pct", "1pct"}) {
    for (const char* statistic : {"median", "mean", "q25", "q75"}) {
      header.push_back(fmt::format("trials_to_{}_{}", target, statistic));
    }
  }
  header.emplace_back("failed_first_20_mean");
  for (const int trials : kComparedAt) header.push_back(fmt::format("best_over_optimum_at_{}", trials));
  std::string text = csv_line(header);
  for (const StrategySummary& summary : comparison.summary) {
    std::vector<std::string> row = {to_string(summary.strategy), fmt::format("{}", summary.seeds)};
    append_statistics(row, summary.trials_to_5pct);
    append_statistics(row, summary.trials_to_1pct);
    row.push_back(field(std::optional(summary.failed_first_20_mean)));
    for (const std::optional<double>& quotient : summary.best_over_optimum_at) row.push_back(field(quotient));
    text += csv_line(row);
  }
  return text;
}

std::string comparison_pairs_csv(const Comparison& comparison) {
  std::string text = csv_line({"strategy", "other", "within", "pairing", "pairs", "trials_mean", "other_trials_mean",
                               "never", "other_never", "ratio", "ratio_lower_95", "ratio_upper_95", "wins", "ties",
                               "losses", "signed_rank_p", "sign_p"});
  const auto whole = [](int number) { return fmt::format("{}", number); };
  const auto number = [](double value) { return field(std::optional(value)); };
  for (const PairedComparison& pair : comparison.pairs) {
    const bool tested = pair.lower_95.has_value();
    text += csv_line({to_string(pair.first), to_string(pair.other), number(pair.within), pairing_text(pair.pairing),
                      whole(pair.pairs), number(pair.first_mean), number(pair.other_mean), whole(pair.first_unreached),
                      whole(pair.other_unreached), number(pair.ratio), field(pair.lower_95), field(pair.upper_95),
                      whole(pair.wins), whole(pair.ties), whole(pair.losses), tested ? number(pair.signed_rank_p) : "",
                      tested ? number(pair.sign_p) : ""});
  }
  return text;
}

}  // namespace krigtune
