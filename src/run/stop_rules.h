#pragma once
#include "run/loop.h"

// Decides when a session ends.
namespace krigtune::run {

/// Returns the rule of the session's budget that ends the session, if any.
std::optional<EndReason> budget_is_spent(const session::Session& session, const search::History& history);

/// Returns the rule by which the proposed next trial is not worth running: nothing remaining is likely to be better
/// (kSure), or it is expected to gain too little (kLittleToGain) or to save less than it costs (kNotWorthIt). Empty for
/// a proposal without an outlook. A pure function: the same journal ends at the same proposal.
std::optional<EndReason> not_worth_running(const session::Session& session, const search::History& history,
                                           const journal::Proposal& proposal);

/// Returns what the next trial costs and is expected to save, both in hours times ranks. Empty if the session does not
/// say what will be trained, if it has several objectives, or if nothing has run yet.
std::optional<TrialWorth> worth_of(const session::Session& session, const search::History& history,
                                   const journal::Outlook& outlook);

/// Returns what the last of three consecutive tuner trials said, if all of them ended because nothing can run here.
std::optional<std::string> environment_failure(const search::History& history);

/// Returns the common reason of the tuner's last failures if no trial has succeeded: of the first two trials of a
/// session, or of the last three. They must have the same reason and the same exception, apart from numbers in it;
/// without a Python trace, the same last line. Running out of memory does not count, and a time limit or a hang counts
/// only from the third trial on, because another configuration may work.
std::optional<std::string> common_failure(const search::History& history);

}  // namespace krigtune::run
