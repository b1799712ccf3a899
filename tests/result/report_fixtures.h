#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "report/run_view.h"

namespace krigtune {

/// A bench session of two ranks with derived gradient_accumulation_steps: 8 = micro_batch * 2 * steps.
inline session::Session bench_session(const std::string& cluster = R"({"gpus_per_node": 2})",
                                      const std::string& workload_more = "") {
  const std::string text = R"({"workload": {"model": {"layers": 1, "hidden": 16, "heads": 2, "vocab": 16, "seq_len": 4},
      "train_batch_size": 8)" +
                           workload_more + R"(}, "cluster": )" + cluster + R"(, "memory": {"limit_gib": 1},
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4], "reduce_bucket_size": [100, 500],
                "overlap_comm": [false, true]},
      "baseline": {"zero_stage": 2, "micro_batch": 2},
      "runner": {"kind": "bench", "warmup_s": 0.5, "measure_s": 2}})";
  return session::read_session(parse_json(text, "session"), "session", ".");
}

inline space::Configuration configuration(std::int64_t stage, std::int64_t micro_batch, bool overlap) {
  return {{"zero_stage", stage},
          {"micro_batch", micro_batch},
          {"reduce_bucket_size", std::int64_t{500}},
          {"overlap_comm", overlap},
          {"gradient_accumulation_steps", 4 / micro_batch}};
}

inline journal::Trial trial_record(int number, space::Configuration configuration,
                                   std::optional<trial::Outcome> outcome, const std::string& strategy = "bayes") {
  journal::Trial made;
  made.number = number;
  made.proposal.configuration = std::move(configuration);
  made.proposal.strategy = strategy;
  made.proposal.suggest_s = 0.25;
  made.outcome = std::move(outcome);
  made.wall_s = 2.5;
  made.started_at = "2026-08-23T10:00:00.000000";
  return made;
}

inline trial::Outcome measured_samples(double samples_per_s, double sem = 0.0) {
  trial::Measured result;
  result.metrics = {{"samples_per_s", samples_per_s}, {"step_time_s", 8.0 / samples_per_s}, {"exposed_comm_s", 0.001}};
  result.value_sem = sem;
  result.peak_memory = Bytes{123456};
  return result;
}

/// Every kind of outcome, and a trial that is still running.
inline search::History all_outcomes() {
  search::History history = {
      trial_record(0, configuration(2, 2, false), measured_samples(100.0, 1.5), "baseline"),
      trial_record(1, configuration(0, 1, true), trial::OutOfMemory{Bytes{1 << 20}, false}),
      trial_record(2, configuration(1, 4, false), trial::OutOfMemory{std::nullopt, true}),
      trial_record(3, configuration(3, 1, false), trial::Failed{trial::FailureReason::kTimeout, 137, "last words"}),
      trial_record(4, configuration(3, 2, true), trial::Bounded{50.0}),
      trial_record(5, configuration(3, 4, true), measured_samples(125.0, 1.5)),
      trial_record(6, configuration(1, 1, true), std::nullopt)};
  history[5].proposal.predicted_value = 130.5;
  history[5].proposal.predicted_memory = Bytes{120000};
  return history;
}

inline search::Recommendation recommendation() {
  search::Recommendation best;
  best.trial = 5;
  best.configuration = configuration(3, 4, true);
  best.value = 125.0;
  best.posterior_mean = 124.0;
  best.lower_95 = 120.0;
  best.upper_95 = 128.0;
  best.reference_trial = 0;
  best.reference_value = 100.0;
  best.gain = 1.25;
  return best;
}

/// A recommendation with only trial, value and gain.
inline search::Recommendation best_of(const journal::Trial& trial, double value, double gain) {
  search::Recommendation best;
  best.trial = trial.number;
  best.configuration = trial.proposal.configuration;
  best.value = value;
  best.gain = gain;
  return best;
}

inline report::RunView run_view(const session::Session& session, const search::History& history,
                                const std::optional<search::Recommendation>& best) {
  return {session,
          history,
          "fixture",
          {search::StrategyKind::kBayes, 7},
          "/runs/it's",
          "/opt/krigtune-bench",
          answer::answer_of(session, history, best)};
}

}  // namespace krigtune
