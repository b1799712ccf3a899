#pragma once
#include "forecast/plan_study.h"
#include "report/table.h"

namespace krigtune::cli {

/// Indents every line by two blanks.
std::string indented(const std::string& text);
/// Breaks the text at blanks into lines of at most 100 columns. All lines but the first begin at column `indent`.
std::string wrapped(const std::string& text, std::size_t indent);

report::Table stage_table(const forecast::PlanStudy& study);
/// Shows which terms make up the peak of the smallest micro-batch of each stage.
report::Table term_table(const forecast::PlanAnswers& answers, Bytes usable);
/// Shows the predicted best configurations. Parameters that all of them share are omitted.
report::Table best_table(const session::Session& session, const std::vector<forecast::Candidate>& best);
report::Table batch_table(const std::vector<forecast::BatchRow>& rows, bool batch_varies);
/// Shows what one rank sends in a step for each value of one parameter.
report::Table volume_table(const std::string& parameter, const std::vector<forecast::Variant>& variants);

/// Returns whether the same resource limits all of them; then best_table omits it.
bool have_same_bound(const std::vector<forecast::Candidate>& best);
/// Returns "zero_stage=2 overlap_comm=true": the parameters with the same value in all candidates, "" if there are
/// none.
std::string shared_text(const session::Session& session, const std::vector<forecast::Candidate>& best);

}  // namespace krigtune::cli
