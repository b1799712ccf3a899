#pragma once
#include <optional>
#include <string>

#include "search/trials/history.h"
#include "session/session.h"

namespace krigtune::report {

/// Returns "the remaining gain is at most 0.8 % (95 % confidence)".
std::string bound_text(const journal::Outlook& outlook);

/// Returns the outlook of the last trial that has one.
std::optional<journal::Outlook> last_outlook(const search::History& history);

}  // namespace krigtune::report
