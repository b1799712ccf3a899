#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "page/report/run_facts.h"

namespace krigtune::page {

/// Trials that are shown in detail: the recommended one, the reference of gains, then others.
struct ChosenTrial {
  const journal::Trial* trial = nullptr;
  std::string name;  ///< "trial 7 (recommended): zero_stage=3 micro_batch=4"
};

/// Returns at most `most` trials. `also_without_value`: including two that ran out of memory.
std::vector<ChosenTrial> chosen_trials(const RunFacts& facts, std::size_t most, bool also_without_value);

}  // namespace krigtune::page
