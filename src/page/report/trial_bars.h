#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "page/chart/chart.h"
#include "page/report/chosen.h"

namespace krigtune::page {

/// One trial's bar: its parts, and the measured total.
struct TrialBar {
  std::vector<BarPart> parts;
  std::optional<double> mark = std::nullopt;
};

/// A figure with bars of some trials, and a collapsed table with the same numbers of all others. With the script, any
/// of them can be drawn as well.
struct TrialBars {
  Bars drawing;       ///< its bars and the length of its axis are filled in here
  std::string id;     ///< id of the table of all trials
  std::string whole;  ///< title of the column with the sum of the parts: "planned"
  std::string unit;   ///< of all numbers: "MiB"
  std::vector<ChosenTrial> chosen;
  std::function<std::optional<TrialBar>(const journal::Trial&)> bar_of;  ///< empty: nothing is known about the trial
  std::string says;
  std::string numbers;  ///< the table of the chosen trials; "": none
};
/// Returns "" if nothing is known about the chosen trials.
std::string trial_bars_figure(const RunFacts& facts, TrialBars bars);

}  // namespace krigtune::page
