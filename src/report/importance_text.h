#pragma once
#include <string>
#include <vector>

#include "insight/importance.h"
#include "report/table.h"
#include "session/session.h"

namespace krigtune::report {

/// A row for each parameter: its indices with their intervals.
Table importance_table(const insight::Importance& importance);

/// The two or three effects that matter in words: "micro_batch=4 instead of 16: 1.8 times slower (1.6 to 2.0)". Then
/// what has no clear effect.
std::vector<std::string> effect_sentences(const session::Session& session, const insight::Importance& importance);

/// "over all 420 configurations that may fit", or how they were sampled and how exact that is.
std::string importance_note(const insight::Importance& importance);

}  // namespace krigtune::report
