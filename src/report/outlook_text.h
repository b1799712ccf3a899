#pragma once
#include <optional>
#include <string>

#include "search/trials/history.h"
#include "session/session.h"

namespace krigtune::report {

/// "nothing left is likely to be more than 0.8 % faster (95 % sure)".
std::string bound_text(const session::Objective& objective, const journal::Outlook& outlook);

/// What was expected when the last trial was asked that had an outlook.
std::optional<journal::Outlook> last_outlook(const search::History& history);

}  // namespace krigtune::report
