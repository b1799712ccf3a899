#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/clock.h"
#include "run/run_directory.h"

namespace krigtune::run {

/// What is wrong with the record of a run directory, and what becomes of it. The journal is made anew of all that can
/// be read: of itself, and of trials.csv where it is missing or damaged. Numbers of trials stay: one that is in
/// neither is closed as interrupted, and so is one that a tune had begun on this machine before it died.
struct Repair {
  std::vector<std::string> findings;  ///< a sentence each, for people; empty: nothing is wrong
  std::size_t recovered = 0;          ///< trials taken from trials.csv
  search::History trials;             ///< as the journal made anew would hold them
};

/// Looks, and writes nothing. Throws UserError where the directory holds no run, or a tune is at work there.
Repair examine(const RunRecord& record, const std::filesystem::path& directory);

/// Writes the journal anew; the old one is kept beside it, and its path returned ("" where there was none). Trials get
/// `clock`'s time where theirs was lost.
std::filesystem::path apply(const Repair& repair, const RunRecord& record, const std::filesystem::path& directory,
                            const Clock& clock);

}  // namespace krigtune::run
