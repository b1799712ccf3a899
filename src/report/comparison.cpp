#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/csv.h"
#include "core/text.h"
#include "report/labels.h"
#include "report/plot.h"
#include "report/tables_csv.h"

namespace krigtune::report {
namespace {

void append_statistics(std::vector<std::string>& row, const compare::SeedStatistics& statistics) {
  for (const double number : {statistics.median, statistics.mean, statistics.q25, statistics.q75}) {
    row.push_back(field(std::optional(number)));
  }
}

const char* pairing_text(compare::Pairing pairing) {
  switch (pairing) {
    case compare::Pairing::kSeeds:
      return "seeds";
    case compare::Pairing::kOneWithEach:
      return "one_with_each";
    case compare::Pairing::kOneWithTheOne:
      break;
  }
  return "one_with_one";
}

}  // namespace

std::string comparison_csv(const compare::Comparison& comparison) {
  std::string text = csv_line({"strategy", "seed", "trial", "status", "value", "best_so_far", "regret", "wall_s"});
  for (const compare::ComparedTrial& trial : comparison.trials) {
    text += csv_line({search::to_string(trial.strategy), fmt::format("{}", trial.seed), fmt::format("{}", trial.trial),
                      trial.status, field(trial.value), field(trial.best_so_far), field(std::optional(trial.regret)),
                      field(std::optional(trial.wall_s))});
  }
  return text;
}

std::string comparison_summary_csv(const compare::Comparison& comparison) {
  std::vector<std::string> header = {"strategy", "seeds"};
  for (const char* target : {"5pct", "1pct"}) {
    for (const char* statistic : {"median", "mean", "q25", "q75"}) {
      header.push_back(fmt::format("trials_to_{}_{}", target, statistic));
    }
  }
  header.emplace_back("failed_first_20_mean");
  for (const int trials : compare::kComparedAt) header.push_back(fmt::format("best_over_optimum_at_{}", trials));
  std::string text = csv_line(header);
  for (const compare::StrategySummary& summary : comparison.summary) {
    std::vector<std::string> row = {search::to_string(summary.strategy), fmt::format("{}", summary.seeds)};
    append_statistics(row, summary.trials_to_5pct);
    append_statistics(row, summary.trials_to_1pct);
    row.push_back(field(std::optional(summary.failed_first_20_mean)));
    for (const std::optional<double>& quotient : summary.best_over_optimum_at) row.push_back(field(quotient));
    text += csv_line(row);
  }
  return text;
}

std::string comparison_pairs_csv(const compare::Comparison& comparison) {
  std::string text = csv_line({"strategy", "other", "within", "pairing", "pairs", "trials_mean", "other_trials_mean",
                               "never", "other_never", "ratio", "ratio_lower_95", "ratio_upper_95", "wins", "ties",
                               "losses", "signed_rank_p", "sign_p"});
  const auto whole = [](int number) { return fmt::format("{}", number); };
  const auto number = [](double value) { return field(std::optional(value)); };
  for (const compare::PairedComparison& pair : comparison.pairs) {
    const bool tested = pair.lower_95.has_value();
    text += csv_line({search::to_string(pair.first), search::to_string(pair.other), number(pair.within),
                      pairing_text(pair.pairing), whole(pair.pairs), number(pair.first_mean), number(pair.other_mean),
                      whole(pair.first_unreached), whole(pair.other_unreached), number(pair.ratio),
                      field(pair.lower_95), field(pair.upper_95), whole(pair.wins), whole(pair.ties),
                      whole(pair.losses), tested ? number(pair.signed_rank_p) : "", tested ? number(pair.sign_p) : ""});
  }
  return text;
}

namespace {

// The lower end of the logarithmic axis: a regret of 0.1 % is less than a measurement can resolve.
constexpr double kLeastRegret = 1e-3;

std::string regret_label(double regret) {
  return fmt::format("{}{:g} %", regret <= kLeastRegret ? "\u2264 " : "", regret * 100.0);
}

PlotCurve curve_of(const compare::Comparison& comparison, const compare::StrategySummary& summary, int budget) {
  PlotCurve curve;
  curve.name = search::to_string(summary.strategy);
  for (const compare::SeedStatistics& regret : compare::regret_curve(comparison, summary.strategy, budget)) {
    curve.x.push_back(static_cast<double>(curve.x.size()) + 1.0);
    curve.y.push_back(regret.median);
    if (summary.seeds < 2) continue;
    curve.low.push_back(regret.q25);
    curve.high.push_back(regret.q75);
  }
  return curve;
}

}  // namespace

std::string comparison_svg(const compare::Comparison& comparison, const std::string& title, int budget) {
  Plot plot;
  plot.title = title;
  plot.description =
      "Regret (how far the best so far is from the optimum) after each trial: the median over the runs of each "
      "strategy, the middle half of them shaded.";
  plot.x = {"trials", 1.0, std::max(budget, 2) * 1.0};
  plot.y = {"regret: 1 - best / optimum", kLeastRegret, 1.0, true, regret_label};
  plot.steps = true;
  plot.marked_y.assign(compare::kComparedWithin.begin(), compare::kComparedWithin.end());
  int most = 1;
  for (const compare::StrategySummary& summary : comparison.summary) {
    most = std::max(most, summary.seeds);
    plot.curves.push_back(curve_of(comparison, summary, budget));
  }
  if (most > 1) plot.notes = {fmt::format("median of {} runs,", most), "middle half shaded"};
  return plot_svg(plot);
}

namespace {

std::string times_text(double factor) { return fmt::format("{:.{}f}", factor, factor < 9.95 ? 1 : 0); }

std::string p_text(double p) {
  constexpr double kLeast = 1e-4;
  return p < kLeast ? "p < 0.0001" : fmt::format("p = {:.2g}", p);
}

std::string pairing_text(const compare::PairedComparison& pair) {
  switch (pair.pairing) {
    case compare::Pairing::kSeeds:
      return "in the mean of " + counted(pair.pairs, "seed");
    case compare::Pairing::kOneWithEach:
      return fmt::format("in the mean, the one run paired with each of the {} of the other", pair.pairs);
    case compare::Pairing::kOneWithTheOne:
      break;
  }
  return "in one run each, so chance is not judged";
}

std::string unreached_text(const compare::PairedComparison& pair, int budget) {
  std::string text;
  const auto add = [&](search::StrategyKind kind, int pairs, int runs) {
    if (pairs == 0) return;
    text += fmt::format("; {} never came there", search::to_string(kind));
    if (runs > 1) text += fmt::format(" in {} of {}", pairs, runs);
  };
  add(pair.first, pair.first_unreached, pair.first_runs);
  add(pair.other, pair.other_unreached, pair.other_runs);
  return text.empty() ? text : text + fmt::format(", counted as {} trials", budget + 1);
}

bool shows_no_difference(const compare::PairedComparison& pair) {
  return pair.lower_95 && *pair.lower_95 <= 1.0 && *pair.upper_95 >= 1.0;
}

// Returns, for example, "bayes needs 2.6 times fewer trials than random".
std::string claim(const compare::PairedComparison& pair) {
  const char* first = search::to_string(pair.first);
  const char* other = search::to_string(pair.other);
  if (shows_no_difference(pair)) return fmt::format("no difference shown between {} and {}", first, other);
  const bool fewer = pair.ratio > 1.0;
  // A run that never reached the goal needs more trials than were counted.
  const int bounded = fewer ? pair.other_unreached : pair.first_unreached;
  const int bounding = fewer ? pair.first_unreached : pair.other_unreached;
  return fmt::format("{} needs {}{} times {} trials than {}", first, bounded > 0 && bounding == 0 ? "at least " : "",
                     times_text(fewer ? pair.ratio : 1.0 / pair.ratio), fewer ? "fewer" : "more", other);
}

// The interval of the claim, inverted if the claim says "more".
std::string interval_text(const compare::PairedComparison& pair) {
  if (!pair.lower_95) return "";
  const bool more = pair.ratio < 1.0 && !shows_no_difference(pair);
  const double low = more ? 1.0 / *pair.upper_95 : *pair.lower_95;
  const double high = more ? 1.0 / *pair.lower_95 : *pair.upper_95;
  return fmt::format(" (95 % interval {} to {} times{}, {})", times_text(low), times_text(high),
                     shows_no_difference(pair) ? " fewer" : "", p_text(pair.signed_rank_p));
}

}  // namespace

std::vector<std::string> comparison_sentences(const compare::Comparison& comparison, double within, int budget) {
  std::vector<std::string> sentences;
  for (const compare::PairedComparison& pair : comparison.pairs) {
    if (pair.within != within) continue;
    if (pair.first_unreached == pair.pairs && pair.other_unreached == pair.pairs) {
      sentences.push_back(fmt::format("neither {} nor {} ever came there", search::to_string(pair.first),
                                      search::to_string(pair.other)));
      continue;
    }
    if (pair.ties == pair.pairs) {
      sentences.push_back(fmt::format("{} and {} need as many trials, {:.3g} {}", search::to_string(pair.first),
                                      search::to_string(pair.other), pair.first_mean, pairing_text(pair)));
      continue;
    }
    sentences.push_back(
        claim(pair) + interval_text(pair) +
        fmt::format(": {:.3g} against {:.3g} {}", pair.first_mean, pair.other_mean, pairing_text(pair)) +
        unreached_text(pair, budget));
  }
  return sentences;
}

}  // namespace krigtune::report
