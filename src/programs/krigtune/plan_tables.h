#pragma once
#include "forecast/plan_study.h"
#include "report/table.h"

namespace krigtune::cli {

/// Every line two blanks further right.
std::string indented(const std::string& text);
/// In lines of at most 100 columns, broken at blanks; those after the first begin at column `indent`.
std::string wrapped(const std::string& text, std::size_t indent);
/// "8.03 billion", "124 million", "4096"
std::string count_text(double count);

report::Table stage_table(const forecast::PlanStudy& study);
/// Where the peak of the smallest micro-batch of each stage comes from.
report::Table term_table(const forecast::PlanAnswers& answers, Bytes usable);
/// The predicted best; parameters that all of them share are left out.
report::Table best_table(const session::Session& session, const std::vector<forecast::Candidate>& best);
report::Table batch_table(const std::vector<forecast::BatchRow>& rows, bool batch_varies);
/// What one rank sends in a step as one parameter varies.
report::Table volume_table(const std::string& parameter, const std::vector<forecast::Variant>& variants);

/// Whether the same holds all of them up; then best_table leaves it out.
bool have_same_bound(const std::vector<forecast::Candidate>& best);
/// "zero_stage=2 overlap_comm=true": parameters with the same value in all of them; "" where there is none.
std::string shared_text(const session::Session& session, const std::vector<forecast::Candidate>& best);

}  // namespace krigtune::cli
