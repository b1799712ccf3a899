// How well are steps on this machine's CPU ranks predicted after measuring it once? Random configurations are measured
// in turn, for a few rounds, and compared with the full plan under the virtual clock. See README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <vector>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "cost/time/virtual_clock.h"
#include "engine/trainer.h"
#include "krigtune/rng.h"
#include "plan/build_plan.h"
#include "programs/bench/measure_machine.h"

namespace krigtune {
namespace {

constexpr int kConfigurations = 40;
constexpr int kRounds = 3;
constexpr double kRoundS = 0.1;
constexpr double kQuantile = 0.05;  // of steps: other activity on the machine makes them longer, never shorter

/// The measured times of one configuration.
struct Row {
  space::Configuration configuration;
  plan::StepPlan plan;
  double predicted_s = 0.0;
  std::vector<double> steps_s;  // of all rounds
  std::int64_t arena_bytes = 0;
  double measured_s() const {
    std::vector<double> sorted = steps_s;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(kQuantile * static_cast<double>(sorted.size()))];
  }
};

struct Setting {
  std::string name;
  std::int64_t ranks = 2;
  std::optional<workload::EmulatedNetwork> network{};
};

workload::Workload workload_of(const Setting& /*setting*/) {
  workload::Workload workload;
  workload.model = {
      .layers = 2, .hidden = 96, .heads = 4, .kv_heads = 4, .ffn_hidden = 384, .vocab = 400, .seq_len = 32};
  workload.train_batch_size = 32;
  return workload;
}

template <class T>
T one_of(Rng& rng, std::vector<T> values) {
  return values[rng.below(values.size())];
}

space::Configuration draw(const Setting& setting, Rng& rng) {
  const std::int64_t tensor = one_of<std::int64_t>(rng, {1, 1, 2});
  const std::int64_t data = setting.ranks / tensor;
  const std::int64_t share = 32 / data;
  std::int64_t micro_batch = one_of<std::int64_t>(rng, {1, 2, 4, 8, 16, 32});
  while (micro_batch > share) micro_batch /= 2;
  const std::int64_t bucket = one_of<std::int64_t>(rng, {3'000, 20'000, 100'000, 1'000'000});
  space::Configuration configuration = {
      {"zero_stage", one_of<std::int64_t>(rng, {0, 1, 2, 3})},
      {"micro_batch", micro_batch},
      {"gradient_accumulation_steps", share / micro_batch},
      {"tensor_parallel", tensor},
      {"reduce_bucket_size", bucket},
      {"allgather_bucket_size", bucket},
      {"overlap_comm", one_of<std::int64_t>(rng, {0, 1}) == 1},
      {"activation_checkpointing", one_of<std::string>(rng, {"none", "none", "full"})},
      {"offload_optimizer", one_of<std::string>(rng, {"none", "none", "cpu"})}};
  return configuration;
}

std::vector<Row> draw_rows(const Setting& setting, const workload::MeasuredMachine& measured, std::uint64_t seed) {
  const workload::Workload workload = workload_of(setting);
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = setting.ranks;
  cluster.emulated_network = setting.network;
  cluster.measured = measured;
  const cost::Machine machine = cost::make_machine(workload, cluster);
  std::vector<Row> rows;
  Rng rng(seed, 0);
  while (rows.size() < kConfigurations) {
    Row row;
    row.configuration = draw(setting, rng);
    const auto same = [&](const Row& other) { return other.configuration == row.configuration; };
    if (std::any_of(rows.begin(), rows.end(), same)) continue;
    row.plan = plan::build_plan(workload, cluster, row.configuration);
    row.predicted_s = cost::predict_step(row.plan, machine).step_time_s;
    rows.push_back(std::move(row));
  }
  return rows;
}

void measure(const Setting& setting, const Clock& clock, Row& row) {
  engine::Trainer trainer(row.plan, setting.network, clock);
  for (int i = 0; i < 2; ++i) trainer.step();
  const double end_s = clock.now_s() + kRoundS;
  for (int i = 0; i < 3 || clock.now_s() < end_s; ++i) row.steps_s.push_back(trainer.step().step_time_s);
  row.arena_bytes = trainer.arena_peak_bytes();
  clock.sleep_until_s(clock.now_s() + kRoundS);  // gives other users of the machine their turn
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<double>(i);
  return ranks;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> ra = ranks_of(a);
  const std::vector<double> rb = ranks_of(b);
  const auto n = static_cast<double>(a.size());
  double squares = 0.0;
  for (std::size_t i = 0; i < ra.size(); ++i) squares += (ra[i] - rb[i]) * (ra[i] - rb[i]);
  return 1.0 - 6.0 * squares / (n * (n * n - 1.0));
}

void print(const Setting& setting, const std::vector<Row>& rows) {
  std::vector<double> predicted, measured, ratios;
  bool exact = true;
  for (const Row& row : rows) {
    predicted.push_back(row.predicted_s);
    measured.push_back(row.measured_s());
    ratios.push_back(row.predicted_s / row.measured_s());
    exact = exact && row.arena_bytes == row.plan.arena_bytes;
    fmt::print("{},{},{:.6f},{:.6f},{},{}\n", setting.name, row.configuration.text(), row.predicted_s, row.measured_s(),
               row.plan.arena_bytes, row.arena_bytes);
  }
  std::fflush(stdout);
  std::sort(ratios.begin(), ratios.end());
  fmt::print(stderr, "{}: rank correlation {:.3f}, predicted / measured median {:.3f} ({:.3f} to {:.3f}), memory {}\n",
             setting.name, rank_correlation(predicted, measured), ratios[ratios.size() / 2], ratios.front(),
             ratios.back(), exact ? "exact" : "NOT exact");
}

// Measures this machine and the configurations, or reads both from the files of an earlier run.
class Experiment {
 public:
  Experiment(std::filesystem::path directory, bool again) : directory_(std::move(directory)), again_(again) {
    if (again_) table_ = parse_csv(read_text(directory_ / "local_accuracy.csv"), "local_accuracy.csv");
  }

  void run(const Setting& setting, std::uint64_t seed, const Clock& clock) {
    const std::filesystem::path file = directory_ / fmt::format("machine-{}.json", settings_++);
    if (!again_) {
      write_atomically(
          file,
          workload::to_json(bench::measure_machine(setting.ranks, workload::Precision::kFp32, clock)).dump(2) + "\n");
    }
    std::vector<Row> rows =
        draw_rows(setting, workload::read_measured_machine(load_json(file), file.string(), ""), seed);
    for (int round = 0; round < kRounds && !again_; ++round) {
      for (Row& row : rows) measure(setting, clock, row);
    }
    for (Row& row : rows) {
      if (again_) look_up(row);
    }
    print(setting, rows);
  }

 private:
  void look_up(Row& row) {
    const std::vector<std::string>& cells = table_.rows.at(next_++);
    if (cells.at(1) != row.configuration.text()) throw UserError("local_accuracy.csv has other configurations", "");
    row.steps_s.push_back(std::stod(cells.at(3)));
    row.arena_bytes = std::stoll(cells.at(5));
  }

  std::filesystem::path directory_;
  bool again_;
  CsvTable table_;
  std::size_t next_ = 0;
  int settings_ = 0;
};

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  using namespace krigtune;
  if (argc < 2) return fmt::print(stderr, "local_accuracy DIRECTORY [SEED [again]]\n"), 2;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const SystemClock clock;
  Experiment experiment(argv[1], argc > 3);
  fmt::print("setting,configuration,predicted_s,measured_s,predicted_bytes,measured_bytes\n");
  for (const Setting& setting :
       {Setting{"2 ranks", 2, std::nullopt},
        Setting{"2 ranks 100 us + 200 MB/s", 2, workload::EmulatedNetwork{"slow", 100e-6, 2e8}},
        Setting{"4 ranks 30 us + 1 GB/s", 4, workload::EmulatedNetwork{"fast", 30e-6, 1e9}}}) {
    experiment.run(setting, seed, clock);
  }
}
