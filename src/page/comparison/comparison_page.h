#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"
#include "report/table.h"

namespace krigtune::page {

/// The input of a comparison's page.
struct ComparisonSource {
  const compare::Comparison& comparison;
  std::string name;              ///< name of the session
  std::string note;              ///< label of an emulated network; "": none
  int budget = 0;                ///< trials of a run
  const report::Table& summary;  ///< a row for each strategy
  std::string made;              ///< time of creation, for people
};

/// Returns one self-contained file with the strategies side by side: regret curves with quartile bands, the summary,
/// and paired tests in words.
std::string comparison_page(const ComparisonSource& source);

}  // namespace krigtune::page
