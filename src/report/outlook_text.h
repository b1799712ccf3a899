#pragma once
#include <string>

#include "answer/answer.h"

namespace krigtune::report {

/// Returns "the remaining gain is at most 0.8 % (95 % confidence)".
std::string bound_text(const journal::Outlook& outlook);

/// Returns "before trial 9 was measured, the remaining gain was at most 0.8 % (95 % confidence)", of the last trial
/// that has an outlook; "" if none has. The summary of tune also knows what that trial has changed.
std::string last_bound_text(const answer::Answer& answer);

}  // namespace krigtune::report
