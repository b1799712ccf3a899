#include "scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "core/json.h"
#include "cost/time/calibrate_time.h"
#include "krigtune/rng.h"

namespace krigtune::accuracy {
namespace {

// Returns 1 for the smallest value; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from + 1;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (std::size_t i = from; i < to; ++i) result[order[i]] = 0.5 * static_cast<double>(from + to + 1);
    from = to;
  }
  return result;
}

}  // namespace

double spearman(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kFewest = 3;
  if (a.size() < kFewest) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = ranks(a);
  const std::vector<double> y = ranks(b);
  const double mean = 0.5 * static_cast<double>(a.size() + 1);
  double xx = 0.0;
  double yy = 0.0;
  double xy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

Score score(std::span<const double> predicted, std::span<const double> measured) {
  Score result;
  result.rows = predicted.size();
  std::vector<double> errors;
  double logs = 0.0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(std::abs(predicted[i] / measured[i] - 1.0));
    logs += std::log(predicted[i] / measured[i]);
  }
  const auto rows = static_cast<double>(result.rows);
  result.mape = std::accumulate(errors.begin(), errors.end(), 0.0) / rows;
  result.median_error = median(errors);
  result.bias = std::expm1(logs / rows);
  result.spearman = spearman(predicted, measured);
  return result;
}

std::vector<double> predict(std::span<const MeasuredStep* const> steps, const MakeMachine& make) {
  std::map<std::string, std::unique_ptr<cost::StepCostModel>> models;
  std::vector<double> predicted_s;
  for (const MeasuredStep* step : steps) {
    auto& model = models[workload::to_json(step->workload).dump() + workload::to_json(step->cluster).dump()];
    if (!model) {
      const cost::Machine machine = make(step->workload, step->cluster);
      model = std::make_unique<cost::StepCostModel>(step->workload, step->cluster, machine);
    }
    predicted_s.push_back((*model)(step->configuration).step_time_s);
  }
  return predicted_s;
}

std::vector<double> predict(std::span<const MeasuredStep* const> steps, const cost::TimeCalibration& calibration) {
  return predict(steps, [&](const workload::Workload& workload, const workload::ClusterSpec& cluster) {
    return cost::make_machine(workload, cluster, calibration);
  });
}

MakeMachine without_table(const std::string& table) {
  return [table](const workload::Workload& workload, const workload::ClusterSpec& cluster) {
    cost::Machine machine = cost::make_machine(workload, cluster);
    const cost::FrameworkTraits& traits = cost::traits_of(workload.framework);
    const auto rate = [&machine](workload::OpClass of) -> workload::ClassRate& {
      return machine.rates[static_cast<std::size_t>(of)];
    };
    if (table == "vtrain_single_node") {
      machine.issue_s = 4 * 10e-6;  // kernels per operation, with the time of each from DistIR (Santhanam et al. 2021)
    } else if (table == "llmfoundry") {
      constexpr double kEagerBytes = 2.0;  // twice the bytes
      rate(workload::OpClass::kMemory).bytes_per_s *= traits.elementwise_factor / kEagerBytes;
      rate(workload::OpClass::kOptimizer).bytes_per_s *= traits.optimizer_factor / kEagerBytes;
      machine.loss_factor *= kEagerBytes / traits.elementwise_factor;
      rate(workload::OpClass::kAttention).flops_per_s *= 0.5 / traits.attention_factor;
      if (cluster.device->id.starts_with("h")) rate(workload::OpClass::kProduct).flops_per_s *= 0.68 / 0.64;
    } else if (table == "ultrascale_dev") {
      machine.internode_issue_s = machine.pipelined_issue_s = machine.send_wait_s = 0.0;
    }
    return machine;
  };
}

Split split(std::vector<const MeasuredStep*> steps) {
  constexpr std::uint64_t kSeed = 1;
  constexpr std::size_t kDrawn = 5;
  Rng(kSeed, steps.size()).shuffle(steps);
  const auto end = steps.begin() + static_cast<std::ptrdiff_t>(std::min(kDrawn, steps.size()));
  return {{steps.begin(), end}, {end, steps.end()}};
}

std::vector<double> measured(std::span<const MeasuredStep* const> steps) {
  std::vector<double> seconds;
  for (const MeasuredStep* step : steps) seconds.push_back(step->seconds);
  return seconds;
}

cost::TimeCalibration calibrate(std::span<const MeasuredStep* const> drawn) {
  std::vector<cost::MeasuredTime> times;
  for (const MeasuredStep* step : drawn) times.push_back({.seconds = step->seconds});
  return cost::calibrate_time([&](const cost::TimeCalibration& calibration) { return predict(drawn, calibration); },
                              times);
}

}  // namespace krigtune::accuracy
