#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fleet/choice.h"
#include "fleet/fleet.h"
#include "report/table.h"

namespace krigtune::report {

// A comparison of clusters, as the terminal, files and pages show it. Rows are numbered from 1, in the order of
// Fleet::plans.

/// Formats days for people: "45 min", "31 h", "8.6 d".
std::string days_text(double days);
/// Formats the ends of an interval in the unit of its value: "7.9 to 10".
std::string days_range_text(const fleet::Estimate& days);
/// Formats a price with three digits: "29,400 EUR", "0.85".
std::string price_text(double price, const std::string& currency);
/// "8 x 8" for eight nodes of eight GPUs, "8" for one.
std::string size_text(const workload::ClusterSpec& cluster);
/// "row 3 (h100-80gb, 8 x 8)".
std::string row_text(const fleet::Fleet& fleet, std::size_t row);
/// The numbers of one row as texts, "" where unknown. A range follows its number in parentheses.
struct FleetCells {
  std::string tokens_per_s, tokens_per_s_range;
  std::string mfu, mfu_range;
  std::string memory, memory_range, fits;
  std::string efficiency, network;
  std::string days, days_range;
  std::string price, price_range;  ///< without the currency
  std::string parts;               ///< of the time: whole_run_parts
  std::string energy;              ///< with its unit
};
FleetCells fleet_cells(const fleet::BestOfCluster& best);

/// Returns the rows with a best configuration by price; those without a price come last, the fastest of them first.
std::vector<std::size_t> cheapest_first(const fleet::Fleet& fleet);

/// Tables for people, with a row for each plan with a best configuration: how fast it is, in the order of the file, and
/// what the training takes, the cheapest first.
Table fleet_speed_table(const fleet::Fleet& fleet);
Table fleet_price_table(const fleet::Fleet& fleet);
/// The table for programs: every plan, every number, every parameter.
Table fleet_csv_table(const fleet::Fleet& fleet);
/// The plans without one: a sentence each.
std::vector<std::string> fleet_impossible(const fleet::Fleet& fleet);
/// Each question with its answer: {"cheapest", "row 3 ..."}.
std::vector<std::pair<std::string, std::string>> fleet_answers(const fleet::Fleet& fleet, const fleet::Choice& choice,
                                                               std::optional<double> deadline_days);
/// What published runs say of the rows of the answers, a sentence for each nearest run: "rows 1, 3: the nearest ...".
std::vector<std::string> fleet_opinions(const fleet::Fleet& fleet, const fleet::Choice& choice);
/// "Deadline that nothing meets": what an error says; requires choice.nearest.
std::string missed_deadline_text(const fleet::Fleet& fleet, const fleet::Choice& choice, double deadline_days);
/// What all numbers take for granted, a sentence each.
std::vector<std::string> fleet_assumptions(const fleet::Fleet& fleet);

}  // namespace krigtune::report
