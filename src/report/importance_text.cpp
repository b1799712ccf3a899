#include "report/importance_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "report/labels.h"

namespace krigtune::report {
namespace {

constexpr std::size_t kMostSentences = 3;
constexpr double kLeastTold = 1.01;  // smaller effects do not matter to anybody

// How a factor is worded: "1.8 times slower", or for smaller ones "takes 12 % longer".
struct Words {
  const char* times;
  const char* percent;
};

// The words for the effect of another value than the best one. A time that is 12 % longer is not a speed that is 12 %
// lower, so the text must say which is meant.
Words words_for(const session::Objective& objective, bool worse) {
  if (is_speed(objective)) return worse ? Words{"slower", "takes {} % longer"} : Words{"faster", "is {} % faster"};
  if (objective.maximize == worse) return {"lower", "{} % lower"};
  return {"higher", "{} % higher"};
}

// Adds ", which is worse" to "us is 21 % higher", because not all readers know the direction of a user's metric.
std::string verdict(const session::Objective& objective, bool worse) {
  return is_speed(objective) ? "" : worse ? ", which is worse" : ", which is better";
}

std::string percent_text(const char* words, double factor, bool of_the_larger) {
  const double share = of_the_larger ? 1.0 - 1.0 / factor : factor - 1.0;
  return fmt::format(fmt::runtime(words), fmt::format("{:.2g}", share * 100.0));
}

// The factor of the effect says how many times better the best value is than the other; low and high are its 95 %
// interval.
std::string sentence(const session::Objective& objective, const insight::Effect& effect) {
  constexpr double kWorthTimes = 1.5;
  const bool worse = effect.factor > 1.0;
  const double factor = worse ? effect.factor : 1.0 / effect.factor;
  const double low = worse ? effect.lower_95 : 1.0 / effect.upper_95;
  const double high = worse ? effect.upper_95 : 1.0 / effect.lower_95;
  const Words words = words_for(objective, worse);
  const std::string instead =
      fmt::format("{} = {} instead of {}: {}", effect.parameter, space::to_string(effect.other),
                  space::to_string(effect.best), is_speed(objective) ? "" : objective.metric + " is ");
  if (factor >= kWorthTimes)
    return instead + fmt::format("{:.1f} times {} ({:.1f} to {:.1f}){}", factor, words.times, low, high,
                                 verdict(objective, worse));
  // "12 % less" is a fraction of the larger value, "12 % more" one of the smaller.
  const bool less = !is_speed(objective) && objective.maximize == worse;
  return instead + percent_text(words.percent, factor, less) +
         fmt::format(" ({} to {} %){}", percent_text("{}", low, less), percent_text("{}", high, less),
                     verdict(objective, worse));
}

std::string index_text(const insight::IndexEstimate& index) {
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", index.value, index.lower_95, index.upper_95);
}

Cell index_cell(const insight::IndexEstimate& index) { return number_cell(index.value, index_text(index)); }

}  // namespace

Table importance_table(const insight::Importance& importance) {
  Table table{
      "parameters", {{"parameter", "parameter"}, {"total", "total", true}, {"first_order", "alone", true}}, {}, {}};
  for (const insight::ParameterImportance& parameter : importance.parameters) {
    table.rows.push_back({text_cell(parameter.name), index_cell(parameter.total), index_cell(parameter.first_order)});
  }
  return table;
}

Table pairs_table(const insight::Importance& importance) {
  Table table{"pairs", {{"pair", "pair"}, {"interaction", "interaction", true}}, {}, {}};
  for (const insight::PairImportance& pair : importance.pairs) {
    table.rows.push_back({text_cell(pair.a + " and " + pair.b), index_cell(pair.interaction)});
  }
  return table;
}

bool is_told(const insight::PairImportance& pair) {
  constexpr double kLeastShare = 0.02;
  constexpr double kSurelyAbove = 0.005;
  return pair.interaction.value >= kLeastShare && pair.interaction.lower_95 >= kSurelyAbove;
}

std::string pair_sentence(const insight::Importance& importance) {
  if (importance.pairs.empty()) return "";
  std::vector<std::string> told;
  for (const insight::PairImportance& pair : importance.pairs) {
    if (is_told(pair) && told.size() < kMostSentences)
      told.push_back(fmt::format("{} and {}, {}", pair.a, pair.b, index_text(pair.interaction)));
  }
  if (!told.empty()) return "they depend on each other's values: " + join(told, "; ");
  const insight::PairImportance& largest = importance.pairs.front();
  return fmt::format(
      "no two parameters clearly depend on each other's values; the largest interaction is that of {} and {}, {}",
      largest.a, largest.b, index_text(largest.interaction));
}

namespace {

// Returns "zero_stage (0 against 1, 2)", with the values that were compared, because others may well have an effect.
std::string compared_text(const insight::Effect& effect) {
  constexpr std::size_t kMostValues = 4;
  std::string others;
  for (const space::Value& value : effect.compared) others += (others.empty() ? "" : ", ") + short_value_text(value);
  if (effect.compared.size() > kMostValues) others = fmt::format("{} other values", effect.compared.size());
  return fmt::format("{} ({} against {})", effect.parameter, short_value_text(effect.best), others);
}

}  // namespace

std::vector<std::string> effect_sentences(const session::Session& session, const insight::Importance& importance) {
  std::vector<std::string> sentences;
  std::vector<std::string> unclear;
  for (const insight::Effect& effect : importance.effects) {
    const bool tells = std::max(effect.factor, 1.0 / effect.factor) >= kLeastTold;
    if (!effect.clear() || !tells) {
      unclear.push_back(compared_text(effect));
    } else if (sentences.size() < kMostSentences) {
      sentences.push_back(sentence(session.objective, effect));
    }
  }
  if (!unclear.empty()) sentences.push_back("no clear effect of another value there: " + join(unclear, ", "));
  return sentences;
}

std::string importance_note(const insight::Importance& importance) {
  if (!importance.sampled)
    return fmt::format("over the {} that may fit", counted(importance.configurations, "configuration"));
  return fmt::format("over {} configurations drawn from those that may fit; drawing others changes them by {:.2g}",
                     importance.configurations, importance.sampling_error);
}

}  // namespace krigtune::report
