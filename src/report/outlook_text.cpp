#include "report/outlook_text.h"

#include <fmt/format.h>

#include "report/labels.h"

namespace krigtune::report {
namespace {

// Beyond, a bound tells no more than that little is known.
constexpr double kTellingBound = 1.0;

}  // namespace

std::string bound_text(const session::Objective& objective, const journal::Outlook& outlook) {
  const char* better = is_speed(objective) ? "faster" : "better";
  const std::string sure = fmt::format("{:g} % sure", 100.0 * outlook.confidence);
  if (outlook.regret_bound > kTellingBound) {
    return fmt::format("too little is known to say what is left ({})", sure);
  }
  if (outlook.regret_bound == 0.0) return fmt::format("nothing left is likely to be {} ({})", better, sure);
  return fmt::format("nothing left is likely to be more than {} {} ({})", percent_text(outlook.regret_bound), better,
                     sure);
}

std::optional<journal::Outlook> last_outlook(const search::History& history) {
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (trial->proposal.outlook) return trial->proposal.outlook;
  }
  return std::nullopt;
}

}  // namespace krigtune::report
