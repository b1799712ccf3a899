#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/moves.h"

namespace krigtune::diagnose {

/// At most so many pieces of advice belong to a verdict.
inline constexpr std::size_t kMostAdvice = 4;

/// Makes the verdicts of one configuration: diagnose.cpp has most limits, rank_limits.cpp those of ranks that work
/// together. The constructor's arguments must outlive it.
class Judge {
 public:
  Judge(const JobModel& model, const space::Configuration& configuration, const Prediction& present, const Seen& seen,
        const Thresholds& thresholds)
      : model_(model),
        configuration_(configuration),
        present_(present),
        cost_(present.cost),
        seen_(seen.observations.empty() ? nullptr : &seen.observations.front()),
        ran_out_of_memory_(seen.ran_out_of_memory),
        thresholds_(thresholds),
        moves_(model, configuration, present) {}

  std::vector<Verdict> run() {
    look_for_missing_memory();
    look_at_the_machine();
    look_at_the_input();
    look_at_communication();
    look_at_the_pipeline();
    look_at_the_host();
    look_at_what_is_needless();
    look_for_room();
    look_at_the_work();
    sort_verdicts(verdicts_, thresholds_);
    return std::move(verdicts_);
  }

 private:
  double share_of(double seconds) const { return seconds / cost_.step_time_s; }
  double share_without(const std::function<void(cost::Machine&)>& change) const {
    const std::optional<Prediction> without = model_.on(configuration_, change);
    return without ? 1.0 - without->cost.step_time_s / cost_.step_time_s : 0.0;
  }
  std::vector<Advice> advice_from(const std::vector<Parameters>& groups) const {
    std::vector<Advice> advice;
    for (const Move& move : moves_.best_of(groups)) {
      if (advice.size() < kMostAdvice) advice.push_back(advice_of(model_, present_, move));
    }
    return advice;
  }
  Verdict& add(Limit limit, double share, double number, double threshold, const std::string& quantity) {
    Verdict verdict;
    verdict.limit = limit;
    verdict.share = share;
    verdict.number = number;
    verdict.threshold = threshold;
    verdict.quantity = quantity;
    verdict.measured = seen_ != nullptr;
    verdicts_.push_back(std::move(verdict));
    return verdicts_.back();
  }
  static void put_first(Verdict& verdict, Advice advice) {
    const auto at = std::find_if(verdict.advice.begin(), verdict.advice.end(),
                                 [&](const Advice& other) { return other.speedup < advice.speedup; });
    verdict.advice.insert(at, std::move(advice));
  }
  Advice fixed(const std::string& machine, const Prediction& predicted) const {
    Advice advice;
    advice.machine = machine;
    advice.configuration = configuration_;
    advice.predicted = predicted;
    advice.speedup = present_.seconds_per_sequence() / predicted.seconds_per_sequence();
    return advice;
  }

  void look_for_missing_memory();
  void look_at_the_machine();
  void look_at_stragglers();
  void look_at_the_input();
  void look_at_the_device();
  void look_at_communication();
  void look_at_data_communication(double exposed_s);
  void look_at_tensor_communication(double exposed_s);
  void look_at_context_communication();
  void look_at_expert_communication(double exposed_s);
  void look_at_sends_between_stages();
  void look_at_the_pipeline();
  void look_at_the_host();
  void look_at_what_is_needless();
  void look_for_needless(Limit limit, const std::vector<Parameters>& groups, double number, const std::string& quantity,
                         const std::string& what);
  void look_for_room();
  void look_at_the_work();

  double exposed_part_s(double all_s, const char* overlap) const;
  double network_factor() const { return model_.factors().collectives / kernel_factor(); }
  double kernel_factor() const;

  const JobModel& model_;
  const space::Configuration& configuration_;
  const Prediction& present_;
  const cost::StepCost& cost_;
  const Observation* seen_;  // null: nothing was measured
  bool ran_out_of_memory_;
  const Thresholds& thresholds_;
  Moves moves_;
  std::vector<Verdict> verdicts_;
};

}  // namespace krigtune::diagnose
