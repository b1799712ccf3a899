#include "report/outlook_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/labels.h"

namespace krigtune::report {
namespace {

// A larger bound only says that little is known.
constexpr double kTellingBound = 1.0;

const journal::Trial* last_with_outlook(const search::History& history) {
  const auto last = std::find_if(history.rbegin(), history.rend(),
                                 [](const journal::Trial& trial) { return trial.proposal.outlook.has_value(); });
  return last == history.rend() ? nullptr : &*last;
}

// `remains` and `is`: "remains" and "is", or "remained" and "was".
std::string bound_text(const journal::Outlook& outlook, const char* remains, const char* is) {
  const std::string gain = outlook.regret_bound == 0.0 ? fmt::format("no gain {}", remains)
                                                       : fmt::format("the remaining gain {} at most {}", is,
                                                                     report::percent_text(outlook.regret_bound));
  return fmt::format("{} ({:g} % confidence)", gain, 100.0 * outlook.confidence);
}

}  // namespace

std::string bound_text(const journal::Outlook& outlook) {
  if (outlook.regret_bound > kTellingBound) return "not enough trials yet to bound the remaining gain";
  return bound_text(outlook, "remains", "is");
}

std::string last_bound_text(const search::History& history) {
  const journal::Trial* trial = last_with_outlook(history);
  if (trial == nullptr) return "";
  const journal::Outlook& outlook = *trial->proposal.outlook;
  if (outlook.regret_bound > kTellingBound) return bound_text(outlook);
  return fmt::format("before trial {} was measured, {}", trial->number, bound_text(outlook, "remained", "was"));
}

std::optional<journal::Outlook> last_outlook(const search::History& history) {
  const journal::Trial* trial = last_with_outlook(history);
  return trial == nullptr ? std::nullopt : trial->proposal.outlook;
}

}  // namespace krigtune::report
