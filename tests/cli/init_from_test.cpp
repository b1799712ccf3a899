// What a run says about its job, wherever a user looks at it, and krigtune init --from, which writes it down. The runs
// look up a table that the cost model of a known job predicts, so that the truth is known.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "forecast/forecast.h"
#include "search/model/job_words.h"
#include "session/session.h"

namespace krigtune::init_from_test {

constexpr const char* kSpace = R"("space": {"zero_stage": [0, 1, 3], "tensor_parallel": [1, 2, 4, 8],
                                            "micro_batch": [1, 2, 4], "activation_checkpointing": ["none", "full"]})";
constexpr const char* kCluster =
    R"("cluster": {"nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4", "network": "ib-ndr-400"})";

/// A dense model of 6.6 billion parameters with 32 layers.
std::string workload(int layers = 32) {
  return fmt::format(R"("workload": {{"model": {{"layers": {}, "hidden": 4096, "heads": 32, "ffn_hidden": 11008,
      "gated_mlp": true, "norm": "rmsnorm", "positions": "rotary", "tied_embeddings": false, "vocab": 32000, "seq_len": 4096}},
      "precision": "bf16", "framework": "fsdp", "train_batch_size": 256}})",
                     layers);
}

std::string session_text(const std::string& runner, const std::string& first = "", const std::string& more = "") {
  return fmt::format(R"({{{}{}{}, "baseline": null, "objective": {{"metric": "tokens_per_second"}}, "runner": {},
      "budget": {{"trials": 7, "regret": 0, "least_gain": 0}}{}}})",
                     first, first.empty() ? "" : ", ", kSpace, runner, more);
}

class InitFrom : public testing::Test {
 protected:
  /// The cluster is told and the model is not: a run that several tests look at.
  static void SetUpTestSuite() {
    shared_ = std::make_unique<TemporaryDirectory>();
    shared_->write("table.csv", predicted_table());
    run_ = run_of(*shared_, kCluster, &tuned_);
  }
  static void TearDownTestSuite() { shared_.reset(); }

  /// The table of a job that trains in the physics of the cost model.
  static std::string predicted_table() {
    const session::Session session = session::read_session(
        parse_json(session_text(R"({"kind": "command", "argv": ["true", "{config}"]})", workload() + ", " + kCluster),
                   "s"),
        "s", ".");
    const session::MemoryFilter filter(session);
    const forecast::Forecaster forecaster(session, filter);
    std::string table = "zero_stage,tensor_parallel,micro_batch,activation_checkpointing,speed,status\n";
    session.space.for_each([&](const space::Configuration& one) {
      const forecast::Forecast forecast = forecaster(one);
      const bool fits = forecast.memory->probability_fits > 0.5;
      table += fmt::format("{},{},{},{},{},{}\n", one.integer("zero_stage", 0), one.integer("tensor_parallel", 0),
                           one.integer("micro_batch", 0), space::to_string(*one.find("activation_checkpointing")),
                           fits ? std::to_string(*forecast.value) : "", fits ? "ok" : "oom");
      return true;
    });
    return table;
  }

  /// Tunes a session over a table with these blocks, and returns its directory.
  static std::string run_of(const TemporaryDirectory& directory, const std::string& blocks, Said* said = nullptr,
                            const std::string& table = "table.csv", const std::string& trials = "7") {
    const std::string text =
        session_text(fmt::format(R"({{"kind": "replay", "table": "{}", "value": "speed", "status": "status"}})",
                                 (shared_->path() / table).string()),
                     blocks);
    const std::string session = directory.write("run.json", text).string();
    const std::string run = (directory / "run").string();
    const Said told = run_krigtune({"tune", session, "--out", run, "--trials", trials});
    EXPECT_EQ(told.code, 0) << told.err;
    if (said != nullptr) *said = told;
    return run;
  }

  Said init_from(const std::string& run) const { return run_krigtune({"init", "--from", run, file_}); }

  static inline std::unique_ptr<TemporaryDirectory> shared_;
  static inline std::string run_;
  static inline Said tuned_;  ///< what tune said of it
  TemporaryDirectory directory_;
  std::string file_ = (directory_ / "again.json").string();
};

TEST_F(InitFrom, WritesTheLikeliestWorkloadWhereTheSessionHasNone) {
  const Said said = init_from(run_);
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, file_ + ": written; next: krigtune tune " + file_ + " --warm-start " + run_ + "\n");
  EXPECT_NE(said.err.find("the job: most likely a dense model of about 7.1 billion"), std::string::npos) << said.err;

  const session::Session before = session::load_session(*shared_ / "run.json");
  const session::Session session = session::load_session(file_);
  ASSERT_TRUE(session.workload);
  const auto parameters = static_cast<double>(workload::parameter_count(session.workload->model));
  EXPECT_GT(parameters, 6.6e9 / 2.0);
  EXPECT_LT(parameters, 6.6e9 * 2.0);
  // All else is that of the run.
  Json now = session::resolved(session);
  now.erase("workload");
  EXPECT_EQ(now.dump(2), session::resolved(before).dump(2));

  // The comment states the probability that best.json has.
  const Json job = load_json(std::filesystem::path(run_) / "best.json")["job"];
  double probability = 0.0;
  for (const Json& answer : job["beliefs"]["parameters"]) {
    if (answer["value"].get<double>() == parameters) probability = answer["probability"].get<double>();
  }
  EXPECT_GT(probability, 1.0 / 3.0);
  for (const Json& answer : job["beliefs"]["parameters"]) EXPECT_LE(answer["probability"].get<double>(), probability);
  const std::string percent = probability > 0.99 ? "> 99 %" : fmt::format("{:.0f} %", 100.0 * probability);
  EXPECT_NE(read_text(file_).find("  // - model size: 7.1 billion parameters, " + percent + " likely\n"),
            std::string::npos)
      << read_text(file_);

  EXPECT_EQ(run_krigtune({"plan", file_}).code, 0);
  const std::string again = (directory_ / "again").string();
  const Said tuned = run_krigtune({"tune", file_, "--trials", "2", "--warm-start", run_, "--out", again});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("Assumed: the workload: inferred from 7 trials of " + run_), std::string::npos) << tuned.err;
}

TEST_F(InitFrom, WritesTheClusterTooIfItIsNotTold) {
  const Said said = init_from(run_of(directory_, "", nullptr, "table.csv", "4"));
  ASSERT_EQ(said.code, 0) << said.err;
  const session::Session session = session::load_session(file_);
  EXPECT_EQ(session.cluster.gpu, "h100-80gb");
  EXPECT_EQ(session.cluster.ranks() % 8, 0);
  EXPECT_NE(read_text(file_).find(fmt::format("  // INFERRED: cluster size: {} GPUs, ", session.cluster.ranks())),
            std::string::npos)
      << read_text(file_);
  EXPECT_EQ(run_krigtune({"tune", file_, "--trials", "2", "--out", (directory_ / "again").string()}).code, 0);
}

TEST_F(InitFrom, CorrectsAWorkloadThatTheTrialsContradict) {
  // Twice the layers by a faster framework take about as long, so that it takes some trials to tell.
  const std::string run = run_of(directory_, workload(64) + ", " + kCluster, nullptr, "table.csv", "12");
  const Json document = parse_json(run_krigtune({"init", "--from", run, file_, "--json"}).out, "init");
  EXPECT_EQ(document["inferred"], parse_json(R"(["workload"])", "expected"));
  EXPECT_LT(document["job"]["told_model"].get<double>(), 0.05);
  EXPECT_EQ(session::load_session(file_).workload->model.layers, 32) << "half of what was told is the truth";
  const std::string text = read_text(file_);
  EXPECT_EQ(document["job"]["sentence"],
            "the trials contradict the session: they look like a model of 6.7 billion parameters");
  EXPECT_NE(text.find("  // - the run's own, which its trials contradict (" +
                      search::job_probability_text(document["job"]["told_model"]) + " likely): {\"model\": "),
            std::string::npos)
      << text;
}

TEST_F(InitFrom, KeepsAWorkloadThatTheTrialsDoNotContradict) {
  const std::string run = run_of(directory_, workload() + ", " + kCluster);
  const Said said = init_from(run);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("the trials do not contradict the session"), std::string::npos) << said.err;
  EXPECT_EQ(session::resolved(session::load_session(file_)).dump(2),
            session::resolved(session::load_session(directory_ / "run.json")).dump(2));
  EXPECT_EQ(read_text(file_).find("INFERRED"), std::string::npos);
}

TEST_F(InitFrom, RefusesInOneLineIfNothingWasInferred) {
  // The smallest micro-batch runs out of memory and larger ones do not: no training step needs memory in that way.
  std::string table = "zero_stage,tensor_parallel,micro_batch,activation_checkpointing,speed,status\n";
  for (const int stage : {0, 1, 3}) {
    for (const int tensor : {1, 2, 4, 8}) {
      for (const int micro : {1, 2, 4}) {
        for (const char* kept : {"none", "full"}) {
          const std::string speed = std::to_string(10000 * (10 + stage) * (4 + tensor) * micro / 50);
          const bool runs = micro > 1 && tensor < 8;
          table +=
              fmt::format("{},{},{},{},{},{}\n", stage, tensor, micro, kept, runs ? speed : "", runs ? "ok" : "oom");
        }
      }
    }
  }
  shared_->write("odd.csv", table);
  const Said said = init_from(run_of(directory_, kCluster, nullptr, "odd.csv"));
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("its trials look like no training step that the models know ("), std::string::npos)
      << said.err;
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(InitFrom, RefusesGuessedParametersOfNoTrainingStep) {
  // Names say nothing, the values could be those of a step, and what is measured depends on hardly anything.
  std::string table = "alpha,beta,gamma,speed\n";
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 5; ++b) {
      for (int c = 0; c < 2; ++c) {
        const double log_speed = 0.02 * a + 0.03 * (b - 2) * (b - 2) + 0.05 * c;
        table += fmt::format("{},{},{},{:.8g}\n", 1 << a, 1 << b, c, 1e-6 * std::exp(log_speed));
      }
    }
  }
  directory_.write("flat.csv", table);
  const std::string session = directory_
                                  .write("flat.json", R"({
      "space": {"alpha": [1, 2, 4, 8], "beta": [1, 2, 4, 8, 16], "gamma": [0, 1]}, "baseline": null,
      "objective": {"metric": "tokens_per_second"}, "budget": {"trials": 20, "regret": 0, "least_gain": 0},
      "runner": {"kind": "replay", "table": "flat.csv", "value": "speed"}})")
                                  .string();
  const std::string run = (directory_ / "flat").string();
  ASSERT_EQ(run_krigtune({"tune", session, "--out", run}).code, 0);
  const Said said = init_from(run);
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("its trials look like no training step that the models know ("), std::string::npos)
      << said.err;
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(InitFrom, RefusesRunsThatSayNothing) {
  const auto refusal = [&](const std::string& run) {
    const Said said = init_from(run);
    EXPECT_EQ(said.code, 2) << said.out;
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    EXPECT_FALSE(std::filesystem::exists(file_));
    return said.err;
  };
  const std::string session = replay_session(directory_).string();
  run_krigtune({"tune", session, "--out", (directory_ / "own_metric").string()});
  EXPECT_NE(refusal((directory_ / "own_metric").string()).find("its objective is not the speed of a training step"),
            std::string::npos);
  EXPECT_NE(refusal((directory_ / "absent").string()).find("is not a run directory"), std::string::npos);
  const std::string asked = directory_.write("asked.json", session_text(R"({"kind": "none"})", kCluster)).string();
  run_krigtune({"ask", (directory_ / "asked").string(), "--session", asked});
  EXPECT_NE(refusal((directory_ / "asked").string()).find("none of its trials succeeded"), std::string::npos);
  EXPECT_NE(
      run_krigtune({"init", file_, "--from", "x", "--", "train.sh"}).err.find("--from takes the job from the run"),
      std::string::npos);
}

// A session with a workload reads the names of frameworks too.
TEST_F(InitFrom, KeepsOtherNamesOfParameters) {
  const std::string text = R"({"space": {"zero": [0, 1, 3], "tp": [1, 2, 4, 8], "micro_batch": [1, 2, 4],
      "activation_checkpointing": ["none", "full"]}, "baseline": null, "objective": {"metric": "tokens_per_second"},
      "runner": {"kind": "replay", "table": ")" +
                           (*shared_ / "table.csv").string() + R"(", "value": "speed", "status": "status",
                 "columns": {"zero": "zero_stage", "tp": "tensor_parallel"}}, "budget": {"trials": 7}, )" +
                           std::string(kCluster) + "}";
  const std::string run = (directory_ / "run").string();
  run_krigtune({"tune", directory_.write("names.json", text).string(), "--out", run});
  const Said said = init_from(run);
  EXPECT_EQ(said.code, 0) << said.err;
  const session::Session described = session::load_session(file_);
  EXPECT_NE(described.space.find("tp"), nullptr);
  EXPECT_EQ(std::count(described.warnings.begin(), described.warnings.end(),
                       "read as the usual parameters: tp as tensor_parallel, zero as zero_stage"),
            1);
}

TEST_F(InitFrom, TheSameIsSaidWhereverARunIsShown) {
  const std::string sentence = load_json(std::filesystem::path(run_) / "best.json")["job"]["sentence"];
  EXPECT_TRUE(sentence.starts_with("most likely a dense model of about 7.1 billion parameters")) << sentence;
  EXPECT_NE(tuned_.out.find("job        " + sentence + "\n"), std::string::npos) << tuned_.out;
  EXPECT_NE(run_krigtune({"report", run_}).out.find("report.html"), std::string::npos);
  const std::string page = read_text(std::filesystem::path(run_) / "report.html");
  EXPECT_NE(page.find("ost likely a dense model of about 7.1 billion parameters"), std::string::npos);
  EXPECT_NE(page.find("<td>7.1 billion parameters</td>"), std::string::npos);
  EXPECT_EQ(page.find(">< "), std::string::npos) << "a probability of < 1 % is text";
  const std::string out = (directory_ / "out").string();
  EXPECT_EQ(run_krigtune({"export", run_, "--format", "markdown", "--out", out}).code, 0);
  const std::string summary = read_text(std::filesystem::path(out) / "summary.md");
  EXPECT_NE(summary.find("The job: " + sentence + "."), std::string::npos) << summary;
  EXPECT_NE(summary.find("| model size | 7.1 billion parameters | "), std::string::npos) << summary;
  const Json watched = parse_json(run_krigtune({"watch", run_, "--json"}).out, "watch");
  EXPECT_EQ(watched["best"]["job"]["sentence"], sentence);
  EXPECT_NE(run_krigtune({"watch", run_, "--once"}).out.find("job      most likely a dense model"), std::string::npos);
  EXPECT_EQ(parse_json(run_krigtune({"results", run_, "--json"}).out, "results")["job"]["sentence"], sentence);
}

TEST_F(InitFrom, TuneSaysItAgainOnlyWhenItChanges) {
  std::vector<std::string> guesses;
  std::istringstream lines(tuned_.err);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find("       the job: ");
    if (begin == 0) guesses.emplace_back();
    if (begin == 0 || (!guesses.empty() && line.starts_with("       ") && line[7] != '+')) guesses.back() += line;
  }
  ASSERT_FALSE(guesses.empty()) << tuned_.err;
  EXPECT_LT(guesses.size(), 7U) << "there were seven trials";
  for (std::size_t i = 1; i < guesses.size(); ++i) EXPECT_NE(guesses[i], guesses[i - 1]);
  EXPECT_NE(guesses.back().find("a dense model of about 7.1 billion"), std::string::npos) << guesses.back();
}

TEST_F(InitFrom, PlanSaysWhatIsAssumedBeforeTheFirstTrial) {
  const std::string untold = directory_.write("untold.json", session_text(R"({"kind": "none"})", kCluster)).string();
  const Said said = run_krigtune({"plan", untold});
  EXPECT_TRUE(
      said.out.starts_with("Job\n  the session does not describe the model: until trials say more, tune assumes"))
      << said.out;
  const Json json = parse_json(run_krigtune({"plan", untold, "--json"}).out, "plan");
  double sum = json["assumed_job"]["no_training_step"].get<double>();
  for (const Json& answer : json["assumed_job"]["beliefs"]["parameters"]) sum += answer["probability"].get<double>();
  EXPECT_NEAR(sum, 1.0, 1e-12);
  const std::string told =
      directory_.write("told.json", session_text(R"({"kind": "none"})", workload() + ", " + kCluster)).string();
  EXPECT_EQ(run_krigtune({"plan", told}).out.find("the session does not describe"), std::string::npos);
  EXPECT_EQ(parse_json(run_krigtune({"plan", told, "--json"}).out, "plan")["assumed_job"], nullptr);
}

}  // namespace krigtune::init_from_test
