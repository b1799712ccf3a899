// Which timer contains which follows from Megatron-LM's source: megatron/core/timers.py for the format, and
// megatron/training/training.py (train_step, training_log), megatron/core/pipeline_parallel/{schedules,
// p2p_communication}.py, megatron/core/distributed/finalize_model_grads.py and
// megatron/core/optimizer/distrib_optimizer.py for where they start and stop:
//
//   iteration
//     forward-backward                        level 1
//       forward-compute                       level 2; contains batch-generator
//       backward-compute                      level 2
//       forward-recv, forward-send, ...       level 2: between pipeline stages, including waiting for them
//       all-grads-sync, embedding-grads-all-reduce, layernorm-grads-all-reduce
//     optimizer                               level 1; contains params-all-gather
//
// Up to core 0.3 gradients were reduced after forward-backward (grads-all-reduce, grads-reduce-scatter), and
// params-all-gather came after the optimizer. Times are divided by the number of iterations of a log interval.
#include "diagnose/megatron_timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "trial/job_log.h"
#include "trial/step_series.h"

namespace krigtune::diagnose {
namespace {

constexpr double kTimerMilli = 1e-3;
constexpr const char* kDots = " ..";

std::optional<double> timer_number(const std::string& text) {
  const std::optional<double> value = trial::printed_number(trimmed(text));
  return value && std::isfinite(*value) && *value >= 0.0 ? value : std::nullopt;
}

bool is_timer_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/' || c == '_';
  });
}

// Returns the last word, because launchers put "0: " or "[default0]:" before each line.
std::string last_word(const std::string& text) {
  const std::size_t blank = text.find_last_of(" \t");
  return blank == std::string::npos ? text : text.substr(blank + 1);
}

double middle_ms(const std::map<std::string, std::vector<double>>& timers, const std::string& name) {
  const auto found = timers.find(name);
  return found == timers.end() ? 0.0 : trial::middle(found->second);
}

}  // namespace

void MegatronTimers::take(const std::string& line) {
  const std::size_t dots = line.find(kDots);
  const std::size_t colon = dots == std::string::npos ? dots : line.find(':', dots);
  if (colon == std::string::npos) return take_all_ranks(line);
  ranks_of_.clear();
  const std::string name = last_word(line.substr(0, dots));
  const std::string value = trimmed(line.substr(colon + 1));
  if (!is_timer_name(name) || line.find_first_not_of(" .", dots) != colon || value.empty()) return;
  const bool is_pair = value.front() == '(';
  const std::size_t comma = value.find(',');
  if (is_pair && (comma == std::string::npos || value.back() != ')')) return;
  const auto largest = timer_number(is_pair ? value.substr(comma + 1, value.size() - comma - 2) : value);
  const auto least = is_pair ? timer_number(value.substr(1, comma - 1)) : largest;
  if (!largest || !least) return;
  largest_[name].push_back(*largest);
  least_[name].push_back(*least);
}

// With --timing-log-option all there is "  forward-backward:", then "     rank  0: 221.30" for each rank.
void MegatronTimers::take_all_ranks(const std::string& line) {
  const std::string text = trimmed(line);
  const std::size_t rank = text.find("rank ");
  const std::size_t colon = text.rfind(':');
  if (!text.empty() && colon == text.size() - 1) {
    const std::string name = last_word(text.substr(0, colon));
    ranks_of_ = is_timer_name(name) ? name : "";
    is_first_rank_ = true;
    return;
  }
  const bool is_rank = rank != std::string::npos && colon != std::string::npos && colon > rank;
  const std::optional<double> value = is_rank ? timer_number(text.substr(colon + 1)) : std::nullopt;
  if (!value) ranks_of_.clear();
  if (ranks_of_.empty()) return;
  std::vector<double>& largest = largest_[ranks_of_];
  std::vector<double>& least = least_[ranks_of_];
  if (is_first_rank_) {
    largest.push_back(*value);
    least.push_back(*value);
  }
  is_first_rank_ = false;
  largest.back() = std::max(largest.back(), *value);
  least.back() = std::min(least.back(), *value);
}

double MegatronTimers::seconds(const std::string& name) const { return middle_ms(largest_, name) * kTimerMilli; }

double MegatronTimers::least_seconds(const std::string& name) const { return middle_ms(least_, name) * kTimerMilli; }

namespace {

constexpr const char* kStageTimers[] = {"forward-recv",
                                        "forward-send",
                                        "backward-recv",
                                        "backward-send",
                                        "forward-send-forward-recv",
                                        "forward-send-backward-recv",
                                        "backward-send-forward-recv",
                                        "backward-send-backward-recv",
                                        "forward-backward-send-forward-backward-recv"};
constexpr const char* kReductionTimers[] = {"all-grads-sync", "embedding-grads-all-reduce",
                                            "layernorm-grads-all-reduce", "non-tensor-parallel-grads-all-reduce"};
constexpr const char* kOldReductionTimers[] = {"grads-all-reduce", "grads-reduce-scatter"};

template <std::size_t N>
double sum_of_timers(const MegatronTimers& timers, const char* const (&names)[N]) {
  double sum = 0.0;
  for (const char* name : names) sum += timers.seconds(name);
  return sum;
}

// Takes parts out of a whole as long as some of it remains.
class TimerShares {
 public:
  explicit TimerShares(double whole_s) : left_s_(whole_s) {}
  double take(double seconds) {
    const double taken = std::clamp(seconds, 0.0, left_s_);
    left_s_ -= taken;
    return taken;
  }
  double left() const { return left_s_; }

 private:
  double left_s_;
};

constexpr const char* kGradients = "gradients are reduced or parameters gathered while nothing is computed";

void add_part(MeasuredParts& measured, const char* name, double seconds, Limit limit, const char* meaning) {
  if (seconds > 0.0) measured.parts.push_back({name, seconds, {}, limit, meaning});
}

// Level 2 distinguishes the passes. At lower levels the rest of forward-backward counts as work.
void add_passes(const MegatronTimers& timers, double reduction_s, double passes_s, MeasuredParts& measured) {
  TimerShares passes(passes_s);
  constexpr const char* kPassesWork = "the forward and the backward pass: useful work";
  const double reduction = passes.take(reduction_s);
  const double input = passes.take(timers.seconds("batch-generator"));
  const double forward = passes.take(timers.seconds("forward-compute") - timers.seconds("batch-generator"));
  const double backward = passes.take(timers.seconds("backward-compute"));
  const double stages = passes.take(sum_of_timers(timers, kStageTimers));
  if (forward + backward > 0.0) {
    add_part(measured, "forward", forward, Limit::kCompute, kPassesWork);
    add_part(measured, "backward", backward, Limit::kCompute, kPassesWork);
    if (passes.left() > 0.0) measured.parts.push_back({"between passes", passes.left(), {}, {}, ""});
  } else {
    add_part(measured, "forward and backward", passes.left(), Limit::kCompute, kPassesWork);
  }
  add_part(measured, "sends between stages, and waiting for them", stages, Limit::kPipelineCommunication,
           "pipeline stages wait for each other, or send");
  add_part(measured, "data loading", input, Limit::kInput, "the next batch is fetched while nothing else runs");
  add_part(measured, "reduction of gradients, exposed", reduction, Limit::kDataCommunication, kGradients);
}

void add_spread(const MegatronTimers& timers, MeasuredParts& measured) {
  for (const char* name : {"forward-compute", "backward-compute", "optimizer"}) {
    const double least = timers.least_seconds(name);
    const double most = timers.seconds(name);
    if (least <= 0.0 || most < (1.0 + Thresholds().straggler) * least) continue;
    measured.remarks.push_back(fmt::format(
        "{} takes {:.1f} ms on the slowest rank and {:.1f} ms on the fastest: a slow rank, or pipeline stages "
        "of different sizes",
        name, most / kTimerMilli, least / kTimerMilli));
  }
}

}  // namespace

MeasuredParts parts_of_timers(const MegatronTimers& timers, double step_s) {
  const double passes_s = timers.seconds("forward-backward");
  const double optimizer_s = timers.seconds("optimizer");
  const double gather_s = timers.seconds("params-all-gather");
  const double old_reduction_s = sum_of_timers(timers, kOldReductionTimers);
  const bool is_old = old_reduction_s > 0.0;
  const double reduction_s = sum_of_timers(timers, kReductionTimers);
  const double behind_s = is_old ? old_reduction_s + reduction_s + gather_s : 0.0;
  MeasuredParts measured;
  measured.subject = "iteration (Megatron's timers)";
  measured.span_s = std::max(step_s, passes_s + optimizer_s + behind_s);
  add_passes(timers, is_old ? 0.0 : reduction_s, passes_s, measured);
  TimerShares optimizer(optimizer_s);
  const double gather = is_old ? gather_s : optimizer.take(gather_s);
  add_part(measured, "reduction of gradients", is_old ? old_reduction_s + reduction_s : 0.0, Limit::kDataCommunication,
           kGradients);
  add_part(measured, "gathering of parameters", gather, Limit::kDataCommunication, kGradients);
  add_part(measured, "optimizer", optimizer.left(), Limit::kMemoryBandwidth,
           "the optimizer step with the gradient norm, limited by memory bandwidth");
  const double rest_s = measured.span_s - passes_s - optimizer_s - behind_s;
  if (rest_s > 0.0) {
    measured.parts.push_back({"outside all timers",
                              rest_s,
                              {},
                              Limit::kHost,
                              "the program between passes and optimizer: logging, evaluation, Python"});
  }
  measured.remarks.emplace_back("each timer shows its slowest rank");
  add_spread(timers, measured);
  return measured;
}

}  // namespace krigtune::diagnose
