// Event files: read back by krigtune's reader, and compared with the bytes that TensorBoard's own protobuf classes give
// for the same events (tensorboard 2.21: tensorboard.compat.proto and plugins/hparams, SerializeToString).
// scripts/tensorboard_check tests them with TensorBoard itself.
#include <gtest/gtest.h>

#include <set>

#include "core/clock.h"
#include "result/export.h"
#include "result/report_fixtures.h"
#include "trial/event_file.h"

namespace krigtune::export_tensorboard_test {

constexpr std::int64_t kBeganUs = 1'700'000'000'500'000;
constexpr const char* kRoot = "tensorboard/events.out.tfevents.krigtune";

search::History began_together(search::History history) {
  for (journal::Trial& trial : history) trial.started_at = local_iso_time(kBeganUs);
  return history;
}

result::Export exported(const session::Session& session, const search::History& history) {
  return result::export_format_from("tensorboard", "--format").make(run_view(session, history, recommendation()), "/x");
}

std::string text_of(const result::Export& made, const std::string& name) {
  for (const result::ExportedFile& file : made.files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no " << name;
  return "";
}

// Returns the file's records in hexadecimal digits. The reader checks the checksums.
std::vector<std::string> records_of(const std::string& file) {
  constexpr std::size_t kHead = 12, kTail = 4;
  std::vector<std::string> records;
  for (std::size_t at = 0; at + kHead <= file.size();) {
    std::uint64_t length = 0;
    for (std::size_t i = 8; i > 0; --i) length = length << 8U | static_cast<unsigned char>(file[at + i - 1]);
    std::string hex;
    for (std::size_t i = 0; i < length; ++i) {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(file[at + kHead + i]);
      hex += {kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
    records.push_back(hex);
    at += kHead + length + kTail;
  }
  return records;
}

std::vector<trial::EventScalar> scalars_of(const std::string& file) {
  std::vector<trial::EventScalar> scalars;
  trial::EventReader reader;
  reader.add(file, [&](const trial::EventScalar& scalar) { scalars.push_back(scalar); });
  EXPECT_FALSE(reader.is_broken());
  return scalars;
}

TEST(TensorboardExport, HasARunForEachClosedTrialAndOneOfTheSession) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  std::set<std::string> names;
  for (const result::ExportedFile& file : exported(session, history).files) names.insert(file.name);
  std::set<std::string> expected = {kRoot};
  for (const char* trial : {"0000", "0001", "0002", "0003", "0004", "0005"}) {  // trial 6 is still running
    expected.insert(std::string("tensorboard/trial_") + trial + "/events.out.tfevents.krigtune");
  }
  EXPECT_EQ(names, expected);
}

TEST(TensorboardExport, TellsTheObjectiveByTrialAndTheBestSoFar) {
  const session::Session session = bench_session();
  search::History history = began_together(all_outcomes());
  history.insert(history.begin() + 6, trial_record(6, configuration(1, 1, true), measured_samples(110.0)));
  history[6].started_at = history[0].started_at;
  std::map<std::string, std::map<std::int64_t, double>> seen;
  for (const trial::EventScalar& scalar : scalars_of(text_of(exported(session, history), kRoot))) {
    seen[scalar.tag][scalar.step] = scalar.value;
    EXPECT_EQ(scalar.wall_time_s, 1e-6 * kBeganUs + 2.5) << "when the trial ended";
  }
  using Steps = std::map<std::int64_t, double>;
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen["throughput"], (Steps{{0, 100.0}, {5, 125.0}, {6, 110.0}}));
  EXPECT_EQ(seen["best_so_far/throughput"],
            (Steps{{0, 100.0}, {1, 100.0}, {2, 100.0}, {3, 100.0}, {4, 100.0}, {5, 125.0}, {6, 125.0}}));
}

TEST(TensorboardExport, TellsTheMetricsOfATrialAndTheBoundOfOneThatWasEnded) {
  const session::Session session = bench_session();
  const search::History history = began_together(all_outcomes());
  const result::Export made = exported(session, history);
  std::map<std::string, double> measured;
  for (const auto& scalar : scalars_of(text_of(made, "tensorboard/trial_0005/events.out.tfevents.krigtune"))) {
    EXPECT_EQ(scalar.step, 5);
    measured[scalar.tag] = scalar.value;
  }
  EXPECT_EQ(measured, (std::map<std::string, double>{{"throughput", 125.0},
                                                     {"step_time_s", static_cast<float>(8.0 / 125.0)},
                                                     {"exposed_comm_s", static_cast<float>(0.001)},
                                                     {"peak_memory_bytes", 123456.0}}));
  const auto bounded = scalars_of(text_of(made, "tensorboard/trial_0004/events.out.tfevents.krigtune"));
  ASSERT_EQ(bounded.size(), 1U);
  EXPECT_EQ(bounded[0].tag, "throughput/bound");
  EXPECT_EQ(bounded[0].value, 50.0);
  EXPECT_TRUE(scalars_of(text_of(made, "tensorboard/trial_0001/events.out.tfevents.krigtune")).empty());
}

TEST(TensorboardExport, WritesTheBytesOfTensorboardsOwnClasses) {
  const session::Session session = bench_session();
  const search::History history = began_together(all_outcomes());
  const std::vector<std::string> root = records_of(text_of(exported(session, history), kRoot));
  ASSERT_GE(root.size(), 3U);
  EXPECT_EQ(root[0], "0900002040fc54d9411a0d627261696e2e4576656e743a32");
  EXPECT_EQ(
      root[1],
      "0900002040fc54d9412ae5010ae2010a145f68706172616d735f2f6578706572696d656e7442060801120212004ac1010abe010a076870"
      "6172616d7312b20112af010a116b72696774756e653a20666978747572651900002040fc54d941220e0a0a7a65726f5f73746167652003"
      "220f0a0b6d6963726f5f6261746368200322160a127265647563655f6275636b65745f73697a65200322100a0c6f7665726c61705f636f"
      "6d6d2002221f0a1b6772616469656e745f616363756d756c6174696f6e5f737465707320032a0e0a0c120a7468726f7567687075742a15"
      "0a1312117065616b5f6d656d6f72795f6279746573");
  EXPECT_EQ(root[2], "090000c040fc54d9412a130a110a0a7468726f756768707574150000c842");
}

// One parameter each, because the order of a map may differ between writers.
TEST(TensorboardExport, WritesHyperparametersOfEveryKindAsTensorboardsOwnClassesDo) {
  const session::Session session = bench_session();
  const std::string head = "0900002040fc54d9412a";
  const std::string tag = "0a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f42060801120212004a";
  for (const auto& [configuration, record] : std::vector<std::pair<space::Configuration, std::string>>{
           {{{"overlap_comm", false}},
            head + "560a54" + tag +
                "2c0a2a0a0768706172616d73121f1a1d0a120a0c6f7665726c61705f636f6d6d120220002900002040fc54d941"},
           {{{"offload", "none"}},
            head + "550a53" + tag +
                "2b0a290a0768706172616d73121e1a1c0a110a076f66666c6f616412061a046e6f6e652900002040fc54d941"},
           {{{"zero_stage", std::int64_t{0}}},
            head + "5b0a59" + tag +
                "310a2f0a0768706172616d7312241a220a170a0a7a65726f5f737461676512091100000000000000002900002040fc54d94"
                "1"}}) {
    for (const bool is_ok : {true, false}) {
      const trial::Outcome outcome = is_ok ? measured_samples(1.0) : trial::Outcome(trial::OutOfMemory{});
      const search::History history = began_together({trial_record(0, configuration, outcome)});
      const std::vector<std::string> records =
          records_of(text_of(exported(session, history), "tensorboard/trial_0000/events.out.tfevents.krigtune"));
      EXPECT_EQ(records.at(1), record);
      EXPECT_EQ(records.back(),
                std::string("090000c040fc54d9412a420a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f42060801"
                            "120212004a1a0a180a0768706172616d73120d220b08") +
                    (is_ok ? "01" : "02") + "110000c040fc54d941");
    }
  }
}

TEST(TensorboardExport, OfASessionWithoutAClosedTrialIsAnEmptyExperiment) {
  const session::Session session = bench_session();
  const search::History none;
  const result::Export made = exported(session, none);
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_TRUE(scalars_of(made.files[0].text).empty());
  EXPECT_EQ(records_of(made.files[0].text).size(), 2U);
}

}  // namespace krigtune::export_tensorboard_test
