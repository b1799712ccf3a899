#pragma once
#include "run/loop.h"

// When a session ends.
namespace krigtune::run {

/// The rule of the session's budget that ends it, if one does.
std::optional<EndReason> budget_is_spent(const session::Session& session, const search::History& history);

/// The rule that says that the proposed next trial is not worth running: nothing left is likely to be better (kSure),
/// the last four expected to gain too little (kLittleToGain), or to save less than they cost (kNotWorthIt). None for a
/// proposal without an outlook. A pure function: the same journal ends at the same question.
std::optional<EndReason> not_worth_running(const session::Session& session, const search::History& history,
                                           const journal::Proposal& proposal);

/// What the next trial costs and is expected to save, both in hours times ranks. Empty where the session does not say
/// what will be trained, or nothing has run yet.
std::optional<TrialWorth> worth_of(const session::Session& session, const search::History& history,
                                   const journal::Outlook& outlook);

/// Three trials in a row of ours ended because nothing can run here; what the last of them said.
std::optional<std::string> environment_failure(const search::History& history);

/// What the last trials of ours failed of, where it is the same in all of them and no trial was ok: in the first two of
/// a session, the baseline and the one after it, or in the last three. The same reason and the same exception, whatever
/// numbers stand in it; where no trace of Python was kept, the same last line. Running out of memory is no such
/// failure, and a time limit or a hang counts from the third trial on: another configuration may do.
std::optional<std::string> common_failure(const search::History& history);

}  // namespace krigtune::run
