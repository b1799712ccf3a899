#pragma once
#include <string>
#include <vector>

#include "page/report/run_facts.h"

// The sections of a session's report, one per source file; report_page.cpp is their registry. Each returns markup, or
// "" if there is nothing to show.
namespace krigtune::page {

std::string answer(const RunFacts& facts);    ///< what to use, how much better it is, and the evidence
std::string front(const RunFacts& facts);     ///< several objectives against each other; "" with one
std::string progress(const RunFacts& facts);  ///< a figure: every trial, and the best so far
std::string fit(const RunFacts& facts);       ///< a figure: predicted against measured
std::string effects(const RunFacts& facts);   ///< which parameters matter, and slices around the best
/// Figures of the pairs of parameters that depend on each other; requires an importance.
std::vector<std::string> pair_figures(const RunFacts& facts);
std::string pair_numbers(const insight::Importance& importance);  ///< a table of all pairs; "" if there are none
std::string all_at_once(const RunFacts& facts);                   ///< parallel coordinates
std::string believed_job(const RunFacts& facts);                  ///< what is believed about the job
std::string memory(const RunFacts& facts);                        ///< planned by term and measured, against the limit
std::string step_time(const RunFacts& facts);                     ///< where the time of a step goes
std::string batch(const RunFacts& facts);                         ///< throughput over the batch
std::string timeline(const RunFacts& facts);                      ///< a figure: which trial ran where and when
std::string trials(const RunFacts& facts);                        ///< all trials, with their commands and files
std::string limits(const RunFacts& facts);                        ///< assumptions, and what the figures do not show

}  // namespace krigtune::page
