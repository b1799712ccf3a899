#pragma once
#include <string>
#include <vector>

#include "insight/importance.h"
#include "report/table.h"
#include "session/session.h"

namespace krigtune::report {

/// A row for each parameter: its indices with their intervals.
Table importance_table(const insight::Importance& importance);

/// A row for each pair of parameters: its interaction with its interval.
Table pairs_table(const insight::Importance& importance);
/// Whether an interaction is large enough to be shown: two per cent of the differences, and surely above nothing.
bool is_told(const insight::PairImportance& pair);
/// Which parameters depend on each other's values, in one sentence. "": no pairs were looked at.
std::string pair_sentence(const insight::Importance& importance);

/// The two or three effects that matter in words: "micro_batch=4 instead of 16: 1.8 times slower (1.6 to 2.0)". Then
/// what has no clear effect, with the values that were compared.
std::vector<std::string> effect_sentences(const session::Session& session, const insight::Importance& importance);

/// "over all 420 configurations that may fit", or how they were sampled and how exact that is.
std::string importance_note(const insight::Importance& importance);

}  // namespace krigtune::report
