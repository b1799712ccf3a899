// What krigtune-bench --measure-rates writes, and its tables.
#include "workload/measured_rates.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"
#include "user_error.h"

namespace krigtune::measured_rates_test {

using workload::ExchangeKind;
using workload::MeasuredCollective;
using workload::RankScope;

workload::MeasuredRates some_rates() {
  workload::MeasuredRates rates;
  rates.version = "0.1.0";
  rates.device = "cuda";
  rates.processor = "NVIDIA H100 80GB HBM3";
  rates.memory_bytes = 84'929'347'584;
  rates.started_by = "srun";
  rates.hosts = {"a", "b"};
  rates.nodes = {0, 0, 1, 1};
  rates.products = {{workload::Precision::kBf16, 8192, 4096, 2048, {1e-3, 2e-3, 3}}};
  rates.copies = {{workload::CopyKind::kToDevice, 1 << 20, {5e-5, 6e-5, 1}}};
  rates.collectives = {{ExchangeKind::kAllGather, RankScope::kAcross, 2, 2, 1 << 20, 1e-3}};
  return rates;
}

// A published row of nccl-tests: 4 GiB among 64 ranks (eight AWS P5 nodes), pytorch/pytorch issue 117748.
TEST(MeasuredCollective, CountsBusBandwidthAsNcclTestsDoes) {
  const MeasuredCollective one{ExchangeKind::kAllReduce, RankScope::kAll, 64, 8, 4294967296, 81146e-6};
  EXPECT_NEAR(one.alg_bytes_per_s() / 1e9, 52.93, 0.005);
  EXPECT_NEAR(one.bus_bytes_per_s() / 1e9, 104.20, 0.005);
  // The other two kinds send half of that: (n - 1) / n.
  for (const ExchangeKind kind : {ExchangeKind::kAllGather, ExchangeKind::kReduceScatter}) {
    const MeasuredCollective half{kind, RankScope::kAll, 64, 8, 4294967296, 81146e-6};
    EXPECT_DOUBLE_EQ(half.bus_bytes_per_s(), one.bus_bytes_per_s() / 2.0);
  }
}

TEST(RatesText, HasTheColumnsOfNcclTests) {
  workload::MeasuredRates rates = some_rates();
  rates.collectives = {{ExchangeKind::kAllReduce, RankScope::kAll, 64, 8, 4294967296, 81146e-6},
                       {ExchangeKind::kAllGather, RankScope::kAcross, 4, 4, 1 << 20, 250e-6}};
  const std::string text = workload::rates_text(rates);
  const auto has = [&](const std::string& line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(
      has("#       size         count      type   redop    root     time   algbw   busbw\n"
          "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
          "  4294967296    1073741824     float     sum      -1    81146   52.93  104.20\n"
          "# Avg bus bandwidth    : 104.2"))
      << text;
  // The count is the number of elements that a rank sends.
  EXPECT_TRUE(has("     1048576         65536     float    none      -1    250.0    4.19    3.15\n")) << text;
  EXPECT_TRUE(has("# all-gather between nodes, 4 ranks")) << text;
}

TEST(MeasuredRates, AreReadAsTheyWereWritten) {
  const Json json = workload::to_json(some_rates());
  const workload::MeasuredRates read = workload::read_measured_rates(json, "rates.json");
  EXPECT_EQ(workload::to_json(read), json);
  EXPECT_EQ(read.ranks_per_node(), 2);
  EXPECT_EQ(read.products[0].times.slowest_rank, 3);
  EXPECT_EQ(json["collectives"][0]["bus_bytes_per_s"].get<double>(), 0.5 * (1 << 20) / 1e-3);
}

TEST(MeasuredRates, RefuseWhatIsNone) {
  const auto refusal = [](const char* key, const Json& value) {
    Json json = workload::to_json(some_rates());
    json[key] = value;
    return user_error_of([&] { workload::read_measured_rates(json, "r.json"); });
  };
  EXPECT_EQ(refusal("nodes", {0, 2}), "r.json: /nodes: names a node that has no host; measure again");
  EXPECT_EQ(refusal("nodes", Json::array()), "r.json: /nodes: names no ranks; measure again");
  EXPECT_EQ(refusal("products", 3), "r.json: /products: is not a list; measure again");
  Json copies = workload::to_json(some_rates())["copies"];
  copies[0]["times"]["median_s"] = 0.0;
  EXPECT_NE(refusal("copies", copies).find("r.json: /copies/0/times/median_s"), std::string::npos);
}

TEST(RankTimes, NameTheSlowestRank) {
  const workload::RankTimes two = workload::rank_times({2.0, 3.0});
  EXPECT_EQ(two.median_s, 2.0);  // the faster of two, because a slow rank would otherwise never show
  EXPECT_EQ(two.slowest_s, 3.0);
  EXPECT_EQ(two.slowest_rank, 1);
  EXPECT_EQ(workload::rank_times({5.0, 1.0, 4.0}).median_s, 4.0);
}

}  // namespace krigtune::measured_rates_test
