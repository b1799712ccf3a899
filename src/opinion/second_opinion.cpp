#include "opinion/second_opinion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/text.h"
#include "cost/time/step_cost.h"

namespace krigtune::opinion {
namespace {

constexpr std::size_t kMostRuns = 5;

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }
double octaves(std::int64_t a, std::int64_t b) { return octaves(static_cast<double>(a), static_cast<double>(b)); }

std::vector<std::string> differences_of(const Subject& run, const Subject& job) {
  std::vector<std::string> differences;
  const auto add = [&](const std::string& of_run, const std::string& of_job, const std::string& unit) {
    if (of_run != of_job) differences.push_back(fmt::format("{}{} instead of {}", of_run, unit, of_job));
  };
  add(count_text(run.parameters), count_text(job.parameters), " parameters");
  add(fmt::format("{}", run.ranks), fmt::format("{}", job.ranks), run.ranks == 1 ? " GPU" : " GPUs");
  add(run.gpu, job.gpu, "");
  add(fmt::format("{}", run.seq_len), fmt::format("{}", job.seq_len), " tokens a sequence");
  add(run.precision, job.precision, "");
  add(run.framework, job.framework, "");
  return differences;
}

}  // namespace

double distance(const Subject& a, const Subject& b) {
  if (a.kind != b.kind || a.architecture != b.architecture) return std::numeric_limits<double>::infinity();
  double sum = octaves(a.parameters, b.parameters);
  sum += 0.5 * octaves(a.ranks, b.ranks) + 0.5 * octaves(a.seq_len, b.seq_len);
  if (a.product_bits != b.product_bits) sum += 1.0;
  if (a.gpu != b.gpu) sum += 1.0;
  if (a.framework != b.framework) sum += 0.5;
  return sum;
}

KnownJobs::KnownJobs() {
  for (KnownRun& run : known_runs()) known_.push_back({std::move(run)});
}

std::vector<NearRun> KnownJobs::near(const Subject& job) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const double far = distance(known_[i].run.subject, job);
    if (far <= kFarthest) order.emplace_back(far, i);
  }
  std::ranges::sort(order);
  if (order.size() > kMostRuns) order.resize(kMostRuns);
  std::vector<NearRun> near;
  for (const auto& [far, index] : order) {
    Known& known = known_[index];
    if (!known.predicted_s) {
      const cost::StepCostModel model(known.run.workload(), known.run.cluster());
      known.predicted_s = model(known.run.configuration).step_time_s;
    }
    near.push_back({known.run, far, *known.predicted_s, differences_of(known.run.subject, job)});
  }
  return near;
}

namespace {

std::string source_text(const KnownRun& run) {
  return run.source_part.empty() ? run.source : run.source + " " + run.source_part;
}

}  // namespace

std::string name_of(const KnownRun& run) {
  return fmt::format("{}, {} x {}, {}", run.model, run.subject.ranks, run.subject.gpu, source_text(run));
}

std::string sentence_of(const NearRun& nearest) {
  const KnownRun& run = nearest.run;
  return fmt::format(
      "the nearest published run ({}, {} x {}, sequences of {} tokens, {}; {}) reached {:.2f} times the speed that is "
      "predicted here for that run",
      run.model, run.subject.ranks, run.subject.gpu, run.subject.seq_len, run.subject.precision, source_text(run),
      nearest.reached());
}

std::string difference_sentence(const NearRun& nearest) {
  return nearest.differences.empty() ? "its size, GPUs, sequences, precision and framework are those of this job"
                                     : "it had " + join(nearest.differences, ", ");
}

std::string range_sentence(const std::vector<NearRun>& near) {
  if (near.size() < 2) return "";
  const auto [slowest, fastest] = std::ranges::minmax_element(near, {}, &NearRun::reached);
  return fmt::format("the {} nearest reached {:.2f} to {:.2f} times the predicted speed", near.size(),
                     slowest->reached(), fastest->reached());
}

std::vector<std::string> sentences(const std::vector<NearRun>& near) {
  if (near.empty()) return {};
  std::vector<std::string> sentences = {sentence_of(near.front()), difference_sentence(near.front())};
  if (std::string range = range_sentence(near); !range.empty()) sentences.push_back(std::move(range));
  return sentences;
}

}  // namespace krigtune::opinion
