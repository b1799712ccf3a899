#include "report/outlook_text.h"

#include <fmt/format.h>

#include "report/labels.h"

namespace krigtune::report {
namespace {

// A larger bound only says that little is known.
constexpr double kTellingBound = 1.0;

}  // namespace

std::string bound_text(const journal::Outlook& outlook) {
  if (outlook.regret_bound > kTellingBound) return "not enough trials yet to bound the remaining gain";
  const std::string gain = outlook.regret_bound == 0.0
                               ? "no gain remains"
                               : "the remaining gain is at most " + percent_text(outlook.regret_bound);
  return fmt::format("{} ({:g} % confidence)", gain, 100.0 * outlook.confidence);
}

std::optional<journal::Outlook> last_outlook(const search::History& history) {
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (trial->proposal.outlook) return trial->proposal.outlook;
  }
  return std::nullopt;
}

}  // namespace krigtune::report
