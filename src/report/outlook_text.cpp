#include "report/outlook_text.h"

#include <fmt/format.h>

#include "report/labels.h"

namespace krigtune::report {
namespace {

// A larger bound only says that little is known.
constexpr double kTellingBound = 1.0;

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

std::string last_bound_text(const answer::Answer& answer) {
  if (!answer.outlook) return "";
  const journal::Outlook& outlook = answer.outlook->outlook;
  if (outlook.regret_bound > kTellingBound) return bound_text(outlook);
  return fmt::format("before trial {} was measured, {}", answer.outlook->trial, bound_text(outlook, "remained", "was"));
}

}  // namespace krigtune::report
