#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "page/report/run_facts.h"

namespace krigtune::page {

/// Trials that are looked at one by one: the recommended one, the one that gains are relative to, then others.
struct ChosenTrial {
  const journal::Trial* trial = nullptr;
  std::string name;  ///< "trial 7 (recommended): zero_stage=3 micro_batch=4"
};

/// `also_without_value`: two that ran out of memory among them. At most `most`.
std::vector<ChosenTrial> chosen_trials(const RunFacts& facts, std::size_t most, bool also_without_value);

}  // namespace krigtune::page
