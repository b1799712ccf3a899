#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "page/chart/chart.h"
#include "page/report/chosen.h"

namespace krigtune::page {

/// What a bar shows of one trial: its parts, and what was measured of their sum.
struct TrialBar {
  std::vector<BarPart> parts;
  std::optional<double> mark = std::nullopt;
};

/// A figure of bars of some trials, and the same numbers of every other trial in a table that folds out. With the
/// script any of them is drawn as well.
struct TrialBars {
  Bars drawing;       ///< its bars and its axis' length are filled here
  std::string id;     ///< of the table of every trial
  std::string whole;  ///< a column: the sum of the parts, "planned"
  std::string unit;   ///< of all numbers: "MiB"
  std::vector<ChosenTrial> chosen;
  std::function<std::optional<TrialBar>(const journal::Trial&)> bar_of;  ///< empty: nothing is known of the trial
  std::string says;
  std::string numbers;  ///< the table of the chosen ones; "": none
};
/// "" where nothing is known of the chosen ones.
std::string trial_bars_figure(const RunFacts& facts, TrialBars bars);

}  // namespace krigtune::page
