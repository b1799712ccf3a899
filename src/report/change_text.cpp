#include "report/change_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "report/labels.h"

namespace krigtune::report {
namespace {

constexpr int kEnoughRepeats = 5;  // of the two whose gain is uncertain; the advice is to make so many
constexpr double kTimes = 1.5;     // from this factor on "1.5 times" is easier to grasp than "50 %"

std::string percent(double fraction) {
  const double value = 100.0 * fraction;
  return std::abs(value) < 9.95 ? fmt::format("{:.1f} %", value) : fmt::format("{:.0f} %", value);
}

const char* alone_word(search::Change::Alone alone) {
  switch (alone) {
    case search::Change::Alone::kPossible:
      return "possible";
    case search::Change::Alone::kFollows:
      return "follows";
    case search::Change::Alone::kNeedsAnother:
      return "needs_another";
    case search::Change::Alone::kTooLarge:
      return "too_large";
  }
  return "unknown";
}

Json gain_json(const std::optional<search::Gain>& gain) {
  if (!gain) return nullptr;
  return {{"factor", json_number(gain->factor)},
          {"lower_95", json_number(gain->lower_95)},
          {"upper_95", json_number(gain->upper_95)}};
}

Json value_json(const std::optional<space::Value>& value) { return value ? space::to_json(*value) : Json(nullptr); }

std::string value_or_none(const std::optional<space::Value>& value) {
  return value ? space::to_string(*value) : "none";
}

}  // namespace

std::string gain_sentence(const session::Objective& objective, const search::Gain& gain) {
  const bool gains = gain.factor > 1.0;
  const bool speed = is_speed(objective);
  const char* word = gains ? (speed ? "faster" : "better") : (speed ? "slower" : "worse");
  if (!gain.clear()) {
    constexpr double kWorthTelling = 0.05;
    const double change = std::abs(gain.factor - 1.0);
    const std::string what =
        change < kWorthTelling ? "no clear effect" : fmt::format("perhaps {} {}", percent(change), word);
    return fmt::format("{} ({} to {})", what, percent(gain.lower_95 - 1.0), percent(gain.upper_95 - 1.0));
  }
  if (gain.factor >= kTimes || gain.factor <= 1.0 / kTimes) {
    const double low = gains ? gain.lower_95 : 1.0 / gain.upper_95;
    const double high = gains ? gain.upper_95 : 1.0 / gain.lower_95;
    return fmt::format("{:.1f} times {} ({:.1f} to {:.1f})", gains ? gain.factor : 1.0 / gain.factor, word, low, high);
  }
  const double low = gains ? gain.lower_95 - 1.0 : 1.0 - gain.upper_95;
  const double high = gains ? gain.upper_95 - 1.0 : 1.0 - gain.lower_95;
  return fmt::format("{} {} ({} to {})", percent(std::abs(gain.factor - 1.0)), word, percent(low), percent(high));
}

std::string change_sentence(const session::Objective& objective, const search::Change& change) {
  switch (change.alone) {
    case search::Change::Alone::kPossible:
      break;
    case search::Change::Alone::kFollows:
      return "follows from the others";
    case search::Change::Alone::kNeedsAnother:
      return "goes with another change";
    case search::Change::Alone::kTooLarge:
      return "without it the rest does not fit into memory";
  }
  return change.gain ? gain_sentence(objective, *change.gain) : "its gain is not known";
}

std::vector<std::string> change_lines(const session::Objective& objective, const search::Changes& changes) {
  std::vector<std::string> lines;
  for (const search::Change& change : changes.each) {
    lines.push_back(fmt::format("{} {} -> {}: {}", change.parameter, value_or_none(change.before),
                                value_or_none(change.after), change_sentence(objective, change)));
  }
  if (lines.size() > 1 && changes.together) {
    lines.push_back("all together: " + gain_sentence(objective, *changes.together));
  }
  return lines;
}

std::string doubt_about_gain(const search::Recommendation& best) {
  const std::optional<search::Gain>& gain = best.gain_by_model;
  if (!gain) return "";
  constexpr double kShownAsOne = 1.005;  // below, the interval is printed as "1.00 to"
  if (gain->lower_95 >= kShownAsOne || gain->upper_95 < 1.0) return "";
  const bool is_repeated = std::min(best.measurements, best.reference_measurements) >= kEnoughRepeats;
  return fmt::format("this gain is not certain: its 95 % interval, {:.2f} to {:.2f} times, includes 1{}",
                     gain->lower_95, gain->upper_95,
                     is_repeated ? "" : fmt::format("; krigtune tune --repeat {} measures both again", kEnoughRepeats));
}

std::string expected_gain_text(const search::Recommendation& best) {
  const std::optional<search::Gain>& gain = best.gain_by_model;
  if (!gain) return "";
  return fmt::format("{} trial {}, 95 % interval {} to {}", gain_text(gain->factor), best.reference_trial,
                     gain_text(gain->lower_95), gain_text(gain->upper_95));
}

Json changes_json(const search::Changes& changes) {
  if (changes.each.empty()) return nullptr;
  Json json = {{"each", Json::array()}, {"together", gain_json(changes.together)}};
  for (const search::Change& change : changes.each) {
    json["each"].push_back({{"parameter", change.parameter},
                            {"before", value_json(change.before)},
                            {"after", value_json(change.after)},
                            {"alone", alone_word(change.alone)},
                            {"gain", gain_json(change.gain)}});
  }
  return json;
}

}  // namespace krigtune::report
