#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/clock.h"
#include "run/run_directory.h"

namespace krigtune::run {

/// What is wrong with the record of a run directory, and the repaired trials. The journal is rebuilt from all that can
/// be read: from itself, and from trials.csv where it is missing or damaged. Trials keep their numbers. A number that
/// is in neither file is closed as interrupted, and so is a trial that a tune had begun on this machine before it died.
struct Repair {
  std::vector<std::string> findings;  ///< one sentence each, for people; empty: nothing is wrong
  std::size_t recovered = 0;          ///< trials taken from trials.csv
  search::History trials;             ///< the trials of the rebuilt journal
};

/// Examines without writing anything. Throws UserError if the directory has no run, or if a tune is active there.
Repair examine(const RunRecord& record, const std::filesystem::path& directory);

/// Writes the rebuilt journal. The old one is kept beside it, and its path is returned ("" if there was none). Trials
/// whose time was lost get the time of `clock`.
std::filesystem::path apply(const Repair& repair, const RunRecord& record, const std::filesystem::path& directory,
                            const Clock& clock);

}  // namespace krigtune::run
