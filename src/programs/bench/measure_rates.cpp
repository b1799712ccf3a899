// Calls are timed in blocks between barriers of all ranks, as in nccl-tests, and the median of three blocks counts. The
// ranks exchange their times by an all-reduce with one number per rank, so that all know the same times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/statistics.h"
#include "engine/host/rank_executor.h"
#include "programs/bench/rank_device.h"

namespace krigtune::bench {
namespace {

/// One rank's part of the measurement.
class RateRun {
 public:
  RateRun(const RankWorld& world, RankDevice& device, int rank, const RateSizes& sizes,
          std::function<void(const std::string&)> say)
      : world_(world),
        device_(device),
        rank_(rank),
        sizes_(sizes),
        say_(std::move(say)),
        all_(world.groups.open(workload::RankScope::kAll, rank)) {}

  void run() {
    device_.enter();
    products();
    copies(workload::CopyKind::kMemory, sizes_.memory_copies_bytes);
    copies(workload::CopyKind::kToDevice, sizes_.host_copies_bytes);
    copies(workload::CopyKind::kToHost, sizes_.host_copies_bytes);
    for (const workload::RankScope scope : world_.job.scopes()) {
      for (const auto kind : {workload::ExchangeKind::kAllReduce, workload::ExchangeKind::kAllGather,
                              workload::ExchangeKind::kReduceScatter}) {
        collectives(kind, scope);
      }
    }
  }

  const workload::MeasuredRates& rates() const { return rates_; }

 private:
  void products() {
    for (const auto precision : {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16}) {
      for (const RateSizes::Product& size : sizes_.products) {
        say_(fmt::format("products in {}", workload::to_string(precision)));
        const auto seconds = time(device_.product(precision, size));
        rates_.products.push_back({precision, size.rows, size.cols, size.depth, workload::rank_times(seconds)});
      }
    }
  }

  void copies(workload::CopyKind kind, const std::vector<std::int64_t>& sizes_bytes) {
    for (const std::int64_t bytes : sizes_bytes) {
      say_(fmt::format("copies {}", workload::to_string(kind)));
      rates_.copies.push_back({kind, bytes, workload::rank_times(time(device_.copy(kind, bytes)))});
    }
  }

  // Increases the size until one collective takes a second, by when even slow networks have reached their rate.
  void collectives(workload::ExchangeKind kind, workload::RankScope scope) {
    constexpr double kLongS = 1.0;
    constexpr std::int64_t kGrowth = 4;
    constexpr std::int64_t kFloatBytes = 4;
    for (std::int64_t least = sizes_.least_collective_bytes; least <= sizes_.most_collective_bytes; least *= kGrowth) {
      say_(fmt::format("collectives {}", workload::to_string(scope)));
      // Active groups have as many ranks as the largest one, or fewer. Choose a size that is divisible by each number.
      const plan::GroupSpan span = world_.job.span(scope, 0);
      const std::int64_t bytes = rounded_up(least, kFloatBytes * common_multiple(scope));
      const double seconds = mean_of_members(time(device_.collective(kind, scope, bytes)), scope);
      rates_.collectives.push_back({kind, scope, span.ranks, span.nodes, bytes, seconds});
      if (seconds > kLongS) break;
    }
  }

  static std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

  std::int64_t common_multiple(workload::RankScope scope) const {
    std::int64_t multiple = 1;
    for (int r = 0; r < world_.job.size(); ++r) multiple = std::lcm(multiple, world_.job.span(scope, r).ranks);
    return multiple;
  }

  double mean_of_members(const std::vector<double>& seconds, workload::RankScope scope) const {
    double sum = 0.0;
    int count = 0;
    for (int r = 0; r < world_.job.size(); ++r) {
      if (world_.job.span(scope, r).ranks == 1) continue;
      sum += seconds[static_cast<std::size_t>(r)];
      ++count;
    }
    return sum / count;
  }

  /// Returns the seconds of one call, by rank.
  std::vector<double> time(const RankDevice::Work& work) {
    constexpr double kMostRepeats = 1000.0;
    work();
    device_.wait();
    const double longest_s = largest(seconds_of(work, 1));
    const auto repeats = static_cast<int>(std::clamp(sizes_.block_s / std::max(longest_s, 1e-9), 1.0, kMostRepeats));
    std::vector<double> blocks;
    for (int block = 0; block < kBlocks; ++block) blocks.push_back(seconds_of(work, repeats) / repeats);
    return by_rank(median(blocks));
  }

  double seconds_of(const RankDevice::Work& work, int repeats) {
    largest(0.0);  // a barrier: all ranks have arrived
    const double begin_s = world_.clock.now_s();
    for (int i = 0; i < repeats; ++i) work();
    device_.wait();
    return world_.clock.now_s() - begin_s;
  }

  double largest(double mine) {
    auto number = static_cast<float>(mine);
    const engine::Segment segment{&number, 1, nullptr, schedule::DType::kFp32};
    all_->all_reduce_max({std::span(&segment, 1), 0});
    return static_cast<double>(number);
  }

  std::vector<double> by_rank(double mine) {
    constexpr double kLeastS = 1e-9;  // in case the clock did not advance
    std::vector<float> numbers(static_cast<std::size_t>(world_.job.size()), 0.0F);
    numbers[static_cast<std::size_t>(rank_)] = static_cast<float>(std::max(mine, kLeastS));
    const engine::Segment segment{numbers.data(), world_.job.size(), nullptr, schedule::DType::kFp32};
    all_->all_reduce({std::span(&segment, 1), 0});
    return {numbers.begin(), numbers.end()};
  }

  static constexpr int kBlocks = 3;

  RankWorld world_;
  RankDevice& device_;
  int rank_;
  const RateSizes& sizes_;
  std::function<void(const std::string&)> say_;
  std::unique_ptr<engine::Communicator> all_;
  workload::MeasuredRates rates_;
};

}  // namespace

workload::MeasuredRates measure_rates(const RankWorld& world, const std::vector<std::unique_ptr<RankDevice>>& devices,
                                      const RateSizes& sizes, const std::function<void(const std::string&)>& say) {
  const int first = world.processes == nullptr ? 0 : world.processes->rank();
  std::vector<std::unique_ptr<RateRun>> runs;
  std::vector<std::function<void()>> jobs;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto nobody = [](const std::string&) {};
    runs.push_back(
        std::make_unique<RateRun>(world, *devices[i], first + static_cast<int>(i), sizes, i == 0 ? say : nobody));
    jobs.emplace_back([run = runs.back().get()] { run->run(); });
  }
  engine::Workers(std::move(jobs), [&world] { world.groups.abort(); }).run_round();
  workload::MeasuredRates rates = runs.front()->rates();
  for (const int node : world.job.nodes) rates.nodes.push_back(node);
  rates.hosts = world.job.hosts;
  return rates;
}

}  // namespace krigtune::bench
