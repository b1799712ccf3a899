#pragma once
#include "krigtune/tuner/loop.h"

// When a session ends. Private to this layer.
namespace krigtune {

/// The rule of the session's budget that ends it, if one does.
std::optional<EndReason> budget_is_spent(const Session& session, const History& history);
/// Three trials in a row of ours ended because nothing can run here; what the last of them said.
std::optional<std::string> environment_failure(const History& history);

}  // namespace krigtune
