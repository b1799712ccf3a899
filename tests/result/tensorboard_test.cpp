// Event files as TensorBoard reads them. Needs Python with tensorboard; otherwise the tests are skipped.
// KRIGTUNE_TEST_PYTHON names the Python (scripts/tensorboard_check sets it); the default is Debian's.
#include <gtest/gtest.h>

#include "core/files.h"
#include "python_test.h"
#include "result/export.h"
#include "result/report_fixtures.h"

namespace krigtune::tensorboard_test {

constexpr const char* kScript = KRIGTUNE_TEST_DIR "/result/load_with_tensorboard.py";

class Tensorboard : public PythonTest {
 protected:
  Tensorboard() : PythonTest("tensorboard", "scripts/tensorboard_check installs it") {}
};

// What TensorBoard should show, computed from the trials.
Json expected_of(const search::History& history) {
  Json best = Json::array();
  Json values = Json::array();
  Json expected = {{"sessions", Json::object()}};
  double highest = 0.0;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome) continue;
    const std::string run = "trial_000" + std::to_string(trial.number);
    Json session = {{"hparams", space::to_json(trial.proposal.configuration)}, {"metrics", Json::object()}};
    session["status"] = trial::ran(*trial.outcome) ? "STATUS_SUCCESS" : "STATUS_FAILURE";
    if (const auto* measured = std::get_if<trial::Measured>(&*trial.outcome)) {
      const double value = measured->metrics.at("samples_per_s");
      session["metrics"] = {{"throughput", value},
                            {"peak_memory_bytes", static_cast<double>(measured->peak_memory->count)}};
      values.push_back({trial.number, value});
      highest = std::max(highest, value);
      Json& scalars = expected["scalars"][run];
      scalars["throughput"] = {{trial.number, value}};
      scalars["step_time_s"] = {{trial.number, static_cast<float>(measured->metrics.at("step_time_s"))}};
      scalars["exposed_comm_s"] = {{trial.number, static_cast<float>(measured->metrics.at("exposed_comm_s"))}};
      scalars["peak_memory_bytes"] = {{trial.number, static_cast<double>(measured->peak_memory->count)}};
    }
    if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) {
      expected["scalars"][run]["throughput/bound"] = {{trial.number, bounded->at_best}};
    }
    best.push_back({trial.number, highest});
    expected["sessions"][run] = session;
  }
  expected["scalars"]["."] = {{"throughput", values}, {"best_so_far/throughput", best}};
  expected["metrics"] = {"throughput", "peak_memory_bytes"};
  expected["hparams"] = {"gradient_accumulation_steps", "micro_batch", "overlap_comm", "reduce_bucket_size",
                         "zero_stage"};
  return expected;
}

TEST_F(Tensorboard, ShowsScalarsByTrialAndATableOfHyperparameters) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const result::Export made = result::export_format_from("tensorboard", "--format")
                                  .make(run_view(session, history, recommendation()), directory_.path());
  for (const result::ExportedFile& file : made.files) {
    std::filesystem::create_directories((directory_ / file.name).parent_path());
    write_atomically(directory_ / file.name, file.text);
  }
  const std::filesystem::path expected = directory_.write("expected.json", expected_of(history).dump());
  EXPECT_EQ(python({kScript, (directory_ / "tensorboard").string(), expected.string()}), 0);
}

}  // namespace krigtune::tensorboard_test
