#include "opinion/second_opinion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/csv.h"
#include "core/files.h"
#include "core/json.h"

namespace krigtune::second_opinion_test {

opinion::Subject subject(const std::string& workload, std::int64_t ranks, const std::string& gpu) {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = ranks;
  cluster.gpu = gpu;
  return opinion::subject_of(workload::read_workload(parse_json(workload, "w"), "w", ""), cluster);
}

constexpr const char* kLlama =
    R"({"model": {"preset": "llama-3-70b", "seq_len": 8192}, "precision": "fp8-tensorwise", "framework": "megatron"})";

TEST(Distance, IsThatOfTheDocumentation) {
  const opinion::Subject a = subject(kLlama, 64, "h100-80gb");
  EXPECT_EQ(opinion::distance(a, a), 0.0);
  opinion::Subject b = a;
  b.parameters = 4.0 * a.parameters;  // 2 octaves
  b.ranks = 8;                        // 3
  b.seq_len = 2048;                   // 2
  EXPECT_DOUBLE_EQ(opinion::distance(a, b), 2.0 + 0.5 * 3.0 + 0.5 * 2.0);
  EXPECT_DOUBLE_EQ(opinion::distance(b, a), opinion::distance(a, b));
  opinion::Subject c = a;
  c.product_bits = 16;
  EXPECT_EQ(opinion::distance(a, c), 1.0);
  c.gpu = "h200-141gb";
  EXPECT_EQ(opinion::distance(a, c), 2.0);
  c.framework = "fsdp";
  EXPECT_EQ(opinion::distance(a, c), 2.5);
  c.architecture = "Ampere";
  EXPECT_TRUE(std::isinf(opinion::distance(a, c)));
  c = a;
  c.kind = opinion::JobKind::kExperts;
  EXPECT_TRUE(std::isinf(opinion::distance(a, c)));
}

TEST(Subject, SaysWhatTheJobIs) {
  const opinion::Subject llama = subject(kLlama, 64, "h100-80gb");
  EXPECT_EQ(llama.kind, opinion::JobKind::kDense);
  EXPECT_NEAR(llama.parameters, 70.6e9, 0.1e9);  // Grattafiori et al. 2024, table 3: 70B
  EXPECT_EQ(llama.product_bits, 8);
  EXPECT_EQ(llama.architecture, "Hopper");
  EXPECT_EQ(subject(kLlama, 4, "gb300-288gb").architecture, "Blackwell");
  EXPECT_EQ(subject(kLlama, 4, "rtx4090-24gb").architecture, "rtx4090-24gb");
  EXPECT_EQ(subject(R"({"model": {"preset": "mistralai/Mixtral-8x7B-v0.1", "seq_len": 4096}})", 8, "h100-80gb").kind,
            opinion::JobKind::kExperts);
  EXPECT_EQ(subject(R"({"model": {"preset": "llama-3-8b"}, "training": {"lora": {"rank": 8}}})", 8, "h100-80gb").kind,
            opinion::JobKind::kAdapters);
}

// Returns predicted / published of a row, as experiments/results/accuracy has it with three digits.
double ratio_of_row(const std::string& id) {
  const std::string file = KRIGTUNE_EXPERIMENTS "/results/accuracy/published_rows.csv";
  const CsvTable table = parse_csv(read_text(file), file);
  for (const std::vector<std::string>& row : table.rows) {
    if (row[static_cast<std::size_t>(table.column("id"))] == id)
      return std::stod(row[static_cast<std::size_t>(table.column("predicted_over_published"))]);
  }
  return std::nan("");
}

TEST(KnownJobs, NamesTheNearestRunsWithWhatTheyReached) {
  opinion::KnownJobs known;
  const std::vector<opinion::NearRun> near = known.near(subject(kLlama, 64, "h100-80gb"));
  ASSERT_FALSE(near.empty());
  EXPECT_LE(near.size(), 5U);
  double before = 0.0;
  for (const opinion::NearRun& one : near) {
    EXPECT_GE(one.distance, before);
    EXPECT_LE(one.distance, opinion::kFarthest);
    before = one.distance;
    EXPECT_NEAR(one.reached(), ratio_of_row(one.run.id), 0.02) << one.run.id;
    EXPECT_EQ(one.run.subject.gpu, "h100-80gb");
  }
  // Megatron-Bridge's tables have this very job.
  EXPECT_EQ(near.front().distance, 0.0);
  EXPECT_TRUE(near.front().differences.empty());
}

// Among all runs, none that is left out is nearer than one that is named.
TEST(KnownJobs, FindsWhatACompleteSearchFinds) {
  opinion::KnownJobs known;
  const opinion::Subject job =
      subject(R"({"model": {"preset": "llama-3-8b"}, "precision": "bf16", "framework": "fsdp"})", 16, "h100-80gb");
  const std::vector<opinion::NearRun> near = known.near(job);
  std::vector<double> all;
  for (const opinion::KnownRun& run : opinion::known_runs()) {
    const double far = opinion::distance(run.subject, job);
    if (far <= opinion::kFarthest) all.push_back(far);
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(near.size(), std::min<std::size_t>(5, all.size()));
  for (std::size_t i = 0; i < near.size(); ++i) EXPECT_EQ(near[i].distance, all[i]);
}

TEST(KnownJobs, SaysNothingWhereNothingIsNear) {
  opinion::KnownJobs known;
  EXPECT_TRUE(known.near(subject(kLlama, 64, "rtx4090-24gb")).empty()) << "no published run is on such cards";
  EXPECT_TRUE(known.near(subject(R"({"model": {"preset": "gpt2-124m"}})", 8, "h100-80gb")).empty());
  EXPECT_TRUE(opinion::sentences({}).empty());
}

TEST(Sentences, SayWhatItReachedAndHowItDiffers) {
  opinion::NearRun one;
  one.run.model = "Llama 3 70B";
  one.run.subject.gpu = "h100-80gb";
  one.run.subject.ranks = 64;
  one.run.subject.seq_len = 8192;
  one.run.subject.precision = "bf16";
  one.run.source = "Some table";
  one.run.source_part = "26.08";
  one.run.step_time_s = 10.0;
  one.predicted_s = 10.8;
  std::vector<std::string> said = opinion::sentences({one});
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0],
            "the nearest published run (Llama 3 70B, 64 x h100-80gb, sequences of 8192 tokens, bf16; Some table 26.08) "
            "reached 1.08 times the speed that is predicted here for that run");
  EXPECT_EQ(said[1], "its size, GPUs, sequences, precision and framework are those of this job");
  one.differences = {"64 GPUs instead of 8", "fp8 instead of bf16"};
  opinion::NearRun slower = one;
  slower.predicted_s = 9.5;
  said = opinion::sentences({one, slower});
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[1], "it had 64 GPUs instead of 8, fp8 instead of bf16");
  EXPECT_EQ(said[2], "the 2 nearest reached 0.95 to 1.08 times the predicted speed");
}

}  // namespace krigtune::second_opinion_test
