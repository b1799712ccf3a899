#include <fmt/format.h>

#include "krigtune/report/comparison.h"

namespace krigtune {
namespace {

std::string times_text(double factor) { return fmt::format("{:.{}f}", factor, factor < 9.95 ? 1 : 0); }

std::string p_text(double p) {
  constexpr double kLeast = 1e-4;
  return p < kLeast ? "p < 0.0001" : fmt::format("p = {:.2g}", p);
}

std::string pairing_text(const PairedComparison& pair) {
  switch (pair.pairing) {
    case Pairing::kSeeds:
      return fmt::format("in the mean of {} seeds", pair.pairs);
    case Pairing::kOneWithEach:
      return fmt::format("in the mean, the one run paired with each of the {} of the other", pair.pairs);
    case Pairing::kOneWithTheOne:
      break;
  }
  return "in one run each, so chance is not judged";
}

std::string unreached_text(const PairedComparison& pair, int budget) {
  std::string text;
  const auto add = [&](StrategyKind kind, int pairs, int runs) {
    if (pairs == 0) return;
    text += fmt::format("; {} never came there", to_string(kind));
    if (runs > 1) text += fmt::format(" in {} of {}", pairs, runs);
  };
  add(pair.first, pair.first_unreached, pair.first_runs);
  add(pair.other, pair.other_unreached, pair.other_runs);
  return text.empty() ? text : text + fmt::format(", counted as {} trials", budget + 1);
}

bool shows_no_difference(const PairedComparison& pair) {
  return pair.lower_95 && *pair.lower_95 <= 1.0 && *pair.upper_95 >= 1.0;
}

// "bayes needs 2.6 times fewer trials than random"
std::string claim(const PairedComparison& pair) {
  const char* first = to_string(pair.first);
  const char* other = to_string(pair.other);
  if (shows_no_difference(pair)) return fmt::format("no difference shown between {} and {}", first, other);
  const bool fewer = pair.ratio > 1.0;
  // Who never came there needs more than what is counted.
  const int bounded = fewer ? pair.other_unreached : pair.first_unreached;
  const int bounding = fewer ? pair.first_unreached : pair.other_unreached;
  return fmt::format("{} needs {}{} times {} trials than {}", first, bounded > 0 && bounding == 0 ? "at least " : "",
                     times_text(fewer ? pair.ratio : 1.0 / pair.ratio), fewer ? "fewer" : "more", other);
}

// Of the claim: turned round where it says "more".
std::string interval_text(const PairedComparison& pair) {
  if (!pair.lower_95) return "";
  const bool more = pair.ratio < 1.0 && !shows_no_difference(pair);
  const double low = more ? 1.0 / *pair.upper_95 : *pair.lower_95;
  const double high = more ? 1.0 / *pair.lower_95 : *pair.upper_95;
  return fmt::format(" (95 % interval {} to {} times{}, {})", times_text(low), times_text(high),
                     shows_no_difference(pair) ? " fewer" : "", p_text(pair.signed_rank_p));
}

}  // namespace

std::vector<std::string> comparison_sentences(const Comparison& comparison, double within, int budget) {
  std::vector<std::string> sentences;
  for (const PairedComparison& pair : comparison.pairs) {
    if (pair.within != within) continue;
    if (pair.first_unreached == pair.pairs && pair.other_unreached == pair.pairs) {
      sentences.push_back(
          fmt::format("neither {} nor {} ever came there", to_string(pair.first), to_string(pair.other)));
      continue;
    }
    if (pair.ties == pair.pairs) {
      sentences.push_back(fmt::format("{} and {} need as many trials, {:.3g} {}", to_string(pair.first),
                                      to_string(pair.other), pair.first_mean, pairing_text(pair)));
      continue;
    }
    sentences.push_back(
        claim(pair) + interval_text(pair) +
        fmt::format(": {:.3g} against {:.3g} {}", pair.first_mean, pair.other_mean, pairing_text(pair)) +
        unreached_text(pair, budget));
  }
  return sentences;
}

}  // namespace krigtune
