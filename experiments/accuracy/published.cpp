// Predicts the runs of published_runs.csv, and compares groups of them with what was published.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "nearest.h"
#include "published_runs.h"
#include "schedule/knobs.h"
#include "scores.h"

namespace krigtune::accuracy {
namespace {

constexpr std::size_t kRanked = 5;  // rows of a model in a source, from which on they are ranked

struct Answer {
  const PublishedRun* run = nullptr;
  std::string left_out;  ///< why there is no prediction; empty if there is one
  double predicted_s = 0.0;
  double allocated_bytes = 0.0;  ///< predicted peak, as an allocator counts it
  bool ruled_out = false;        ///< memory is predicted to be surely too small

  bool has_time() const { return left_out.empty() && run->seconds > 0.0; }
  double ratio() const { return predicted_s / run->seconds; }
};

Answer ask(const PublishedRun& run) {
  Answer answer{&run, run.not_asked};
  if (!answer.left_out.empty()) return answer;
  const auto knobs = schedule::knobs_of(run.workload, run.cluster, run.configuration);
  if (const auto* problem = std::get_if<schedule::NotModelled>(&knobs)) {
    answer.left_out = problem->what;
    return answer;
  }
  try {
    answer.predicted_s = cost::StepCostModel(run.workload, run.cluster)(run.configuration).step_time_s;
    const cost::MemoryModel memory(run.workload, run.cluster, {});
    for (const std::int64_t bytes : memory.estimate(run.configuration).term_bytes)
      answer.allocated_bytes += static_cast<double>(bytes);
    const Bytes usable = workload::memory_limit_per_rank({}, run.cluster);
    answer.ruled_out = memory.verdict(run.configuration, usable, Bytes{}).verdict == plan::Verdict::kTooLarge;
  } catch (const UserError& error) {
    answer.left_out = error.what();
  }
  return answer;
}

using Answers = std::vector<const Answer*>;

// Each prediction divided by the geometric mean of predicted over published times of the other rows of its source, GPU
// and group: what calibration by a few trials leaves. Rows that are alone stay as they are.
std::vector<double> after_a_factor(const Answers& answers) {
  std::map<std::string, std::pair<double, int>> sums;
  const auto key = [](const Answer& a) { return a.run->source + "|" + a.run->gpu + "|" + a.run->group; };
  for (const Answer* answer : answers) {
    auto& [sum, count] = sums[key(*answer)];
    sum += std::log(answer->ratio());
    ++count;
  }
  std::vector<double> predicted;
  for (const Answer* answer : answers) {
    const auto& [sum, count] = sums[key(*answer)];
    const double others = count > 1 ? (sum - std::log(answer->ratio())) / (count - 1) : 0.0;
    predicted.push_back(answer->predicted_s / std::exp(others));
  }
  return predicted;
}

// What a constant share of the peak of 16 bits predicts, with the share that suits the group best.
std::vector<double> constant_mfu(const Answers& answers) {
  std::vector<double> work, shares;
  for (const Answer* answer : answers) {
    const PublishedRun& run = *answer->run;
    const double peak = cost::peak_flops_per_s(*run.cluster.device, run.workload.precision);
    work.push_back(bridge_flops(run.workload.model, *run.workload.train_batch_size) /
                   (peak * static_cast<double>(run.cluster.ranks())));
    shares.push_back(work.back() / run.seconds);
  }
  const double share = median(shares);
  for (double& seconds : work) seconds /= share;
  return work;
}

// The mean over sources and models of more than five rows.
double mean_rank(const Answers& answers) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> models;
  for (const Answer* answer : answers) {
    const PublishedRun& run = *answer->run;
    const double work = bridge_flops(run.workload.model, *run.workload.train_batch_size);
    const double gpus = static_cast<double>(run.cluster.ranks());
    auto& [predicted, published] = models[run.source + "|" + run.model];
    predicted.push_back(work / (answer->predicted_s * gpus));
    published.push_back(work / (run.seconds * gpus));
  }
  double sum = 0.0;
  int count = 0;
  for (const auto& [name, rates] : models) {
    if (rates.first.size() <= kRanked) continue;
    const double rank = spearman(rates.first, rates.second);
    if (std::isnan(rank)) continue;
    sum += rank;
    ++count;
  }
  return count > 0 ? sum / count : std::nan("");
}

std::string percent(double part) { return std::isnan(part) ? "" : fmt::format("{:.1f}", 100.0 * part); }
std::string rank(double value) { return std::isnan(value) ? "" : fmt::format("{:.2f}", value); }

std::vector<std::string> line_of(const std::string& name, std::size_t rows, const Answers& timed) {
  std::vector<double> predicted, published;
  for (const Answer* answer : timed) {
    predicted.push_back(answer->predicted_s);
    published.push_back(answer->run->seconds);
  }
  if (timed.empty()) return {name, std::to_string(rows), "0", "", "", "", "", "", ""};
  const Score plain = score(predicted, published);
  return {name,
          std::to_string(rows),
          std::to_string(timed.size()),
          percent(plain.mape),
          percent(plain.median_error),
          percent(plain.bias),
          percent(score(after_a_factor(timed), published).mape),
          percent(score(constant_mfu(timed), published).mape),
          rank(mean_rank(timed))};
}

template <class Name>
std::string scores_csv(const std::vector<Answer>& answers, const char* column, const Name& name) {
  std::map<std::string, std::pair<std::size_t, Answers>> groups;
  for (const Answer& answer : answers) {
    for (const std::string& group : {std::string("all"), name(answer)}) {
      ++groups[group].first;
      if (answer.has_time()) groups[group].second.push_back(&answer);
    }
  }
  std::string text = csv_line({column, "rows", "predicted", "mape_percent", "median_error_percent", "bias_percent",
                               "mape_after_a_factor_percent", "constant_mfu_mape_percent", "rank_correlation"});
  for (const auto& [group, rows] : groups) text += csv_line(line_of(group, rows.first, rows.second));
  return text;
}

std::string rows_csv(const std::vector<Answer>& answers) {
  std::string text =
      csv_line({"id", "source", "model", "gpu", "group", "published_s", "predicted_s", "predicted_over_published",
                "published_peak_gib", "predicted_allocated_gib", "too_large", "assumed", "left_out"});
  const auto gib = [](double bytes) { return fmt::format("{:.1f}", bytes / (1024.0 * 1024.0 * 1024.0)); };
  for (const Answer& answer : answers) {
    const PublishedRun& run = *answer.run;
    const bool predicted = answer.left_out.empty();
    text += csv_line(
        {run.id, run.source, run.model, run.gpu, run.group, run.seconds > 0.0 ? fmt::format("{:.4g}", run.seconds) : "",
         predicted ? fmt::format("{:.4g}", answer.predicted_s) : "",
         answer.has_time() ? fmt::format("{:.3f}", answer.ratio()) : "",
         run.peak_bytes ? gib(static_cast<double>(*run.peak_bytes)) : "", predicted ? gib(answer.allocated_bytes) : "",
         answer.ruled_out ? "yes" : "", fmt::format("{}", fmt::join(run.assumed, "; ")), answer.left_out});
  }
  return text;
}

std::vector<Neighbour> neighbours_of(const std::vector<Answer>& answers) {
  std::vector<Neighbour> neighbours;
  for (const Answer& answer : answers) {
    if (!answer.has_time()) continue;
    const PublishedRun& run = *answer.run;
    neighbours.push_back({opinion::subject_of(run.workload, run.cluster), run.source, std::log(answer.ratio())});
  }
  return neighbours;
}

void print_left_out(const std::vector<Answer>& answers) {
  std::map<std::string, int> reasons;
  int ruled_out = 0;
  for (const Answer& answer : answers) {
    if (!answer.left_out.empty()) ++reasons[answer.left_out];
    ruled_out += answer.ruled_out && answer.run->ran ? 1 : 0;
  }
  fmt::print("\n{} rows that ran are predicted to be too large. Without a prediction:\n", ruled_out);
  for (const auto& [reason, count] : reasons) fmt::print("{:5} {}\n", count, reason);
}

void write_tables(const std::filesystem::path& data, const std::filesystem::path& out) {
  const std::vector<PublishedRun> runs = published_runs(data);
  std::vector<Answer> answers;
  for (const PublishedRun& run : runs) answers.push_back(ask(run));
  std::filesystem::create_directories(out);
  const std::string groups = scores_csv(answers, "group", [](const Answer& answer) { return answer.run->group; });
  const std::string sources = scores_csv(answers, "source", [](const Answer& answer) { return answer.run->source; });
  write_atomically(out / "published_groups.csv", groups);
  write_atomically(out / "published_sources.csv", sources);
  write_atomically(out / "published_rows.csv", rows_csv(answers));
  const std::string nearest = nearness_csv(nearness(neighbours_of(answers)));
  write_atomically(out / "published_nearest.csv", nearest);
  fmt::print("{}\n{}\n{}", groups, sources, nearest);
  print_left_out(answers);
}

}  // namespace
}  // namespace krigtune::accuracy

int main(int argc, char** argv) try {
  if (argc != 3) {
    fmt::print(stderr, "usage: published DATA_FOLDER RESULT_FOLDER\n");
    return 2;
  }
  krigtune::accuracy::write_tables(argv[1], argv[2]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "published: {}\n", error.what());
  return 1;
}
