#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"
#include "report/table.h"

namespace krigtune::page {

/// What a page of a comparison is made of.
struct ComparisonSource {
  const compare::Comparison& comparison;
  std::string name;              ///< of the session
  std::string note;              ///< of an emulated network; "": none
  int budget = 0;                ///< trials of a run
  const report::Table& summary;  ///< a row for each strategy
  std::string made;              ///< when, for people
};

/// The strategies side by side: regret curves with quartile bands, the summary, and paired tests in words. One
/// self-contained file.
std::string comparison_page(const ComparisonSource& source);

}  // namespace krigtune::page
