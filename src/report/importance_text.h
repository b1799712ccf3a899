#pragma once
#include <string>
#include <vector>

#include "insight/importance.h"
#include "report/table.h"
#include "session/session.h"

namespace krigtune::report {

/// Returns a row for each parameter: its indices with their intervals.
Table importance_table(const insight::Importance& importance);

/// Returns a row for each pair of parameters: its interaction with its interval.
Table pairs_table(const insight::Importance& importance);
/// Returns whether an interaction is large enough to be shown: at least two per cent of the differences, and certainly
/// above zero.
bool is_told(const insight::PairImportance& pair);
/// Returns one sentence on the parameters whose effects depend on each other; "" if no pairs were examined.
std::string pair_sentence(const insight::Importance& importance);

/// Returns the two or three most important effects in words: "micro_batch=4 instead of 16: 1.8 times slower (1.6 to
/// 2.0)"; then the parameters without a clear effect, with the values that were compared.
std::vector<std::string> effect_sentences(const session::Session& session, const insight::Importance& importance);

/// Returns "over all 420 configurations that may fit", or how they were sampled and how accurate that is.
std::string importance_note(const insight::Importance& importance);

}  // namespace krigtune::report
