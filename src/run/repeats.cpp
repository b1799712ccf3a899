#include "run/repeats.h"

#include <algorithm>

#include "run/current_run.h"
#include "search/model/best.h"

namespace krigtune::run {
namespace {

// Failed measurements are counted, too; otherwise a configuration that fails now would be repeated forever.
int measurements_of(const search::Candidates& candidates, const search::History& history,
                    const space::Configuration& configuration) {
  const std::string key = candidates.key(configuration);
  const int run = latest_run(history);
  return static_cast<int>(std::count_if(history.begin(), history.end(), [&](const journal::Trial& trial) {
    return trial.proposal.run == run && search::is_closed(trial) && candidates.key(trial.proposal.configuration) == key;
  }));
}

}  // namespace

std::optional<journal::Proposal> next_repeat(const session::Session& session, const search::Candidates& candidates,
                                             const search::History& history, int times, std::uint64_t seed) {
  if (times < 1) return std::nullopt;
  const std::optional<search::Recommendation> best = search::recommend(session, candidates, history, seed);
  if (!best) return std::nullopt;
  const journal::Trial& reference = *search::find_trial(history, best->reference_trial);
  const int of_best = measurements_of(candidates, history, best->configuration);
  const int of_reference = measurements_of(candidates, history, reference.proposal.configuration);
  if (std::min(of_best, of_reference) >= times) return std::nullopt;
  const bool is_reference = of_reference <= of_best;
  journal::Proposal proposal;
  proposal.configuration = is_reference ? reference.proposal.configuration : best->configuration;
  proposal.strategy = search::kRepeatStrategy;
  proposal.repeat_of = is_reference ? reference.number : best->trial;
  if (!is_reference) proposal.predicted_value = best->posterior_mean;
  return proposal;
}

}  // namespace krigtune::run
