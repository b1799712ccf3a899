#include "programs/krigtune/serve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "programs/krigtune/served_run.h"

namespace krigtune::serve_test {

/// A server with everything that it needs.
class Served {
 public:
  Served() : arguments_(cli::serve_command(), {"--stdio"}, {}), log_(console_, cli::Verbosity::kNormal, std::nullopt) {}

  /// Returns the whole answer, after checking that it is one line.
  Json answer(const std::string& line) {
    const std::string text = server_.answer(line);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return parse_program_json(text);
  }
  Json call(const std::string& method, const Json& params = Json::object()) {
    const Json answered = answer(Json({{"id", ++last_}, {"method", method}, {"params", params}}).dump());
    EXPECT_EQ(answered["id"], last_);
    EXPECT_FALSE(answered.contains("error")) << answered.dump();
    return answered.value("result", Json());
  }
  /// Returns "message; fix".
  std::string refusal(const std::string& method, const Json& params = Json::object()) {
    const Json answered = answer(Json({{"id", 1}, {"method", method}, {"params", params}}).dump());
    EXPECT_FALSE(answered.contains("result")) << answered.dump();
    const Json error = answered.value("error", Json::object());
    EXPECT_EQ(error.value("kind", ""), "user");
    EXPECT_NE(error.value("fix", ""), "") << answered.dump();
    return error.value("message", "") + "; " + error.value("fix", "");
  }
  Json ask() {
    const Json trials = call("ask")["trials"];
    return trials.empty() ? Json() : trials[0];
  }
  cli::Server& server() { return server_; }
  ManualClock& clock() { return clock_; }
  std::string said() const { return err_.str(); }

 private:
  std::ostringstream out_;
  std::ostringstream err_;
  ManualClock clock_;
  cli::Console console_{out_, err_, clock_, "/nowhere/krigtune"};
  cli::Arguments arguments_;
  cli::Log log_;
  cli::Context context_{console_, arguments_, log_};
  cli::Server server_{context_};
  int last_ = 0;
};

class ServeTest : public testing::Test {
 protected:
  std::string run_directory(const std::string& name = "run") const { return (directory_ / name).string(); }
  static Json session() {
    return parse_json(R"({"space": {"threads": [1, 2, 4, 8, 16], "mode": ["fast", "safe", "odd"]},
                          "baseline": {"threads": 1, "mode": "safe"},
                          "objective": {"metric": "speed", "direction": "maximize"}, "runner": {"kind": "none"}})",
                      "session");
  }
  Json opened(Served& served, const std::string& name = "run") const {
    return served.call("open", {{"directory", run_directory(name)}, {"session", session()}});
  }
  /// What a trial measures: the best is 8 threads, fast. Odd ones fail, or run out of memory.
  static Json result(const Json& configuration) {
    const int threads = configuration["threads"];
    if (configuration["mode"] == "odd" && threads == 16) return {{"status", "oom"}};
    if (configuration["mode"] == "odd") return {{"status", "failed"}, {"reason", "invalid"}};
    return {{"value", (configuration["mode"] == "fast" ? 10.5 : 8.25) * threads / (threads > 8 ? 4 : 1)}};
  }
  /// Asks and tells `count` trials, and returns their configurations.
  static std::vector<std::string> run_trials(Served& served, int count) {
    std::vector<std::string> configurations;
    for (int i = 0; i < count; ++i) {
      const Json trial = served.ask();
      if (trial.is_null()) break;
      configurations.push_back(trial["configuration"].dump());
      Json told = result(trial["configuration"]);
      told["trial"] = trial["trial"];
      served.call("tell", told);
    }
    return configurations;
  }

  TemporaryDirectory directory_;
};

TEST_F(ServeTest, OpensADirectoryAndSaysWhatItSearches) {
  Served served;
  const Json described = opened(served);
  EXPECT_EQ(described["protocol"], 1);
  EXPECT_EQ(described["metric"], "speed");
  EXPECT_EQ(described["direction"], "maximize");
  EXPECT_EQ(described["strategy"], "bayes");
  EXPECT_EQ(described["seed"], 1);
  EXPECT_EQ(described["trials"], 0);
  EXPECT_EQ(described["parameters"]["threads"], Json::array({1, 2, 4, 8, 16}));
  EXPECT_EQ(described["baseline"]["mode"], "safe");
  EXPECT_FALSE(std::filesystem::exists(run_directory())) << "the first ask makes it";
}

TEST_F(ServeTest, AsksTellsAndKnowsTheBest) {
  Served served;
  opened(served);
  const Json first = served.ask();
  EXPECT_EQ(
      first.dump(),
      R"({"trial":0,"configuration":{"threads":1,"mode":"safe"},"predicted_value":null,"predicted_memory_bytes":null})");
  EXPECT_TRUE(served.call("best").is_null());
  const Json told = served.call(
      "tell",
      {{"trial", 0}, {"value", 8.25}, {"peak_memory_bytes", 4096}, {"value_sem", 0.5}, {"metrics", {{"loss", 2.5}}}});
  EXPECT_EQ(told["status"], "ok");
  EXPECT_EQ(told["value"], 8.25);
  EXPECT_EQ(told["gain"], 1);
  run_trials(served, 14);
  EXPECT_TRUE(served.ask().is_null()) << "15 configurations";
  const Json best = served.call("best");
  EXPECT_EQ(best["configuration"].dump(), R"({"threads":8,"mode":"fast"})");
  EXPECT_EQ(best["value"], 84);
  EXPECT_EQ(best["objective"]["metric"], "speed");
  EXPECT_LE(best["posterior"]["lower_95"], 84);
}

TEST_F(ServeTest, ListsAllTrialsWithTheirResults) {
  Served served;
  opened(served);
  served.call("ask", {{"count", 5}});
  served.call("tell", {{"trial", 0}, {"value", 2}, {"metrics", {{"loss", 2.5}}}, {"peak_memory_bytes", 4096}});
  served.call("tell", {{"trial", 1}, {"status", "oom"}});
  served.call("tell", {{"trial", 2}, {"status", "failed"}, {"reason", "timeout"}, {"message", "it was slow"}});
  served.call("tell", {{"trial", 3}, {"status", "failed"}, {"reason", "interrupted"}});
  const Json trials = served.call("trials")["trials"];
  ASSERT_EQ(trials.size(), 5U);
  EXPECT_EQ(trials[0]["status"], "ok");
  EXPECT_EQ(trials[0]["value"], 2);
  EXPECT_EQ(trials[0]["metrics"]["loss"], 2.5);
  EXPECT_EQ(trials[0]["peak_memory_bytes"], 4096);
  EXPECT_EQ(trials[1]["status"], "oom");
  EXPECT_EQ(trials[2]["reason"], "timeout");
  EXPECT_EQ(trials[3]["reason"], "interrupted");
  EXPECT_EQ(trials[4]["status"], "running");
  EXPECT_TRUE(trials[4]["value"].is_null());
  EXPECT_EQ(served.call("trials", {{"since", 3}})["trials"].size(), 2U);
}

TEST_F(ServeTest, ProposesWhatAskWouldPropose) {
  Served served;
  opened(served);
  const std::vector<std::string> proposed = run_trials(served, 12);
  ASSERT_EQ(proposed.size(), 12U);
  const std::string file = directory_.write("own.json", session().dump()).string();
  for (std::size_t i = 0; i < proposed.size(); ++i) {
    const Said said = run_krigtune({"ask", run_directory("by-hand"), "--session", file});
    ASSERT_EQ(said.code, 0) << said.err;
    const Json trial = parse_program_json(said.out);
    EXPECT_EQ(trial["configuration"].dump(), proposed[i]) << "trial " << i;
    Json told = result(trial["configuration"]);
    told["speed"] = told["value"];
    told.erase("value");
    const std::string result_file = directory_.write("result.json", told.dump()).string();
    ASSERT_EQ(
        run_krigtune({"tell", run_directory("by-hand"), "--trial", std::to_string(i), "--result", result_file}).code,
        0);
  }
}

TEST_F(ServeTest, FilesAreThoseThatTellWrites) {
  Served served;
  opened(served);
  served.call("ask", {{"count", 2}});
  served.call("tell", {{"trial", 0}, {"value", 8.25}});
  EXPECT_TRUE(served.server().has_unwritten());
  served.server().write_files(false);
  EXPECT_FALSE(served.server().has_unwritten());
  const std::string after_one = read_text(directory_ / "run/trials.csv");
  EXPECT_EQ(parse_csv(after_one, "trials").rows.size(), 1U);
  served.call("tell", {{"trial", 1}, {"value", 10.5}});
  served.server().write_files(true);
  const std::string csv = read_text(directory_ / "run/trials.csv");
  EXPECT_EQ(parse_csv(csv, "trials").rows.size(), 2U);
  EXPECT_EQ(load_json(directory_ / "run/best.json")["trial"], 1);
  const std::string best = read_text(directory_ / "run/best.json");
  std::filesystem::remove(directory_ / "run/trials.csv");
  std::filesystem::remove(directory_ / "run/best.json");
  run_krigtune({"ask", run_directory()});
  ASSERT_EQ(
      run_krigtune({"tell", run_directory(), "--trial", "2", "--status", "failed", "--reason", "interrupted"}).code, 0);
  EXPECT_EQ(read_text(directory_ / "run/best.json"), best);
}

TEST_F(ServeTest, NothingThatWasToldIsLostIfTheServerIsKilled) {
  {
    Served killed;  // it never writes the result files
    opened(killed);
    run_trials(killed, 5);
    killed.ask();
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/trials.csv"));
  Served served;
  const Json described = served.call("open", {{"directory", run_directory()}});
  EXPECT_EQ(described["trials"], 6);
  EXPECT_EQ(described["closed"], 5);
  EXPECT_EQ(served.ask()["trial"], 6);
  served.call("tell", {{"trial", 5}, {"value", 1}});
  served.server().write_files(true);
  EXPECT_EQ(parse_csv(read_text(directory_ / "run/trials.csv"), "trials").rows.size(), 6U);
}

TEST_F(ServeTest, SeveralServersShareADirectory) {
  Served one;
  Served other;
  opened(one);
  opened(other);
  std::set<std::string> configurations;
  for (int i = 0; i < 4; ++i) {
    for (Served* served : {&one, &other}) {
      const Json trial = served->ask();
      EXPECT_TRUE(configurations.insert(trial["configuration"].dump()).second);
      EXPECT_EQ(trial["trial"], static_cast<int>(configurations.size()) - 1);
    }
    one.call("tell", {{"trial", 2 * i + 1}, {"value", 1 + i}});  // which the other one asked
  }
  EXPECT_EQ(one.call("trials"), other.call("trials"));
  EXPECT_NE(other.refusal("tell", {{"trial", 1}, {"value", 7}}).find("trial 1 is closed already: ok"),
            std::string::npos);
  EXPECT_EQ(one.call("best")["trial"], other.call("best")["trial"]);
}

TEST_F(ServeTest, RecordsWhatSomebodyElseChose) {
  Served served;
  opened(served);
  const Json told =
      served.call("tell", {{"configuration", {{"threads", 8}, {"mode", "fast"}}}, {"value", 84}, {"wall_s", 12.5}});
  EXPECT_EQ(told["trial"], 0);
  EXPECT_EQ(served.call("trials")["trials"][0]["strategy"], "try");
  EXPECT_EQ(served.call("trials")["trials"][0]["wall_s"], 12.5);
  EXPECT_EQ(served.call("best")["trial"], 0);
  for (const std::string& proposed : run_trials(served, 14)) EXPECT_NE(proposed, R"({"threads":8,"mode":"fast"})");
  EXPECT_NE(served.refusal("tell", {{"configuration", {{"thread", 8}}}, {"value", 1}}).find("'threads'"),
            std::string::npos);
}

TEST_F(ServeTest, PredictsConfigurationsAndTheWholeSpace) {
  Served served;
  opened(served);
  const Json before = served.call("predict", {{"configurations", {{{"threads", 8}, {"mode", "fast"}}}}});
  EXPECT_TRUE(before["predictions"][0]["median"].is_null());
  run_trials(served, 10);
  const Json some = served.call(
      "predict",
      {{"configurations", {{{"threads", 8}, {"mode", "fast"}}, {{"threads", 3}, {"mode", "fast"}}}}})["predictions"];
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[1]["configuration"]["threads"], 3) << "outside of the space";
  EXPECT_LT(some[1]["lower_95"], some[1]["median"]);
  const Json all = served.call("predict", {{"importance", true}});
  EXPECT_EQ(all["predictions"].size(), 15U);
  EXPECT_EQ(all["importance"]["parameters"].size(), 2U);
  const Json fast = served.call("predict", {{"where", {{"mode", "fast"}}}})["predictions"];
  ASSERT_EQ(fast.size(), 5U);
  EXPECT_EQ(fast[3]["configuration"], some[0]["configuration"]);
  EXPECT_DOUBLE_EQ(fast[3]["median"], some[0]["median"]);
  EXPECT_EQ(served.call("predict", {{"sample", 4}})["predictions"].size(), 4U);
  EXPECT_NE(served.refusal("predict", {{"where", {{"modes", "fast"}}}}).find("did you mean 'mode'"), std::string::npos);
}

TEST_F(ServeTest, PredictionsOfAContinuousSpaceNeedASample) {
  Served served;
  served.call("open", {{"directory", run_directory()},
                       {"session",
                        {{"space", {{"x", {{"type", "real"}, {"min", 0}, {"max", 1}}}}},
                         {"objective", {{"metric", "y"}, {"direction", "minimize"}}},
                         {"runner", {{"kind", "none"}}}}}});
  EXPECT_NE(served.refusal("predict").find("/params/sample: "), std::string::npos);
  EXPECT_EQ(served.call("predict", {{"sample", 7}})["predictions"].size(), 7U);
}

TEST_F(ServeTest, PlansASessionOrTheOpenRun) {
  const Json planned = parse_json(R"({
      "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "fp16", "train_batch_size": 64},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "v100-32gb", "interconnect": "nvlink2"},
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 64]}, "runner": {"kind": "none"}})",
                                  "s");
  Served served;
  const Json plan = served.call("plan", {{"session", planned}, {"rows", true}});
  EXPECT_EQ(plan["configurations"], plan["rows"].size());
  const std::string file = directory_.write("s.json", planned.dump()).string();
  const Json printed = parse_program_json(run_krigtune({"plan", file, "--json"}).out);
  EXPECT_EQ(plan["best"], printed["best"]);
  EXPECT_EQ(plan["rows"][0].contains("breakdown"), false);
  EXPECT_EQ(plan["rows"][0]["memory_verdict"].is_string(), true);
  EXPECT_FALSE(served.call("plan", {{"session", file}}).contains("rows"));
  EXPECT_NE(served.refusal("plan").find("no run is open"), std::string::npos);
  served.call("open", {{"directory", run_directory()}, {"session", planned}});
  EXPECT_EQ(served.call("plan")["best"], printed["best"]);
}

TEST_F(ServeTest, WritesTheReport) {
  Served served;
  opened(served);
  EXPECT_NE(served.refusal("report").find("no trial was asked yet"), std::string::npos);
  run_trials(served, 6);
  const Json report = served.call("report");
  EXPECT_EQ(report["file"], (directory_ / "run/report.html").string());
  EXPECT_NE(read_text(report["file"].get<std::string>()).find("<html"), std::string::npos);
  const std::string elsewhere = (directory_ / "pages/r.html").string();
  EXPECT_EQ(served.call("report", {{"file", elsewhere}})["file"], elsewhere);
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
}

TEST_F(ServeTest, GoesOnAfterEveryLineThatItCannotUse) {
  Served served;
  opened(served);
  const std::pair<const char*, const char*> kLines[] = {
      {"", "not JSON"},
      {"ask", "not JSON"},
      {R"({"id": 1, "method": "ask")", "not JSON"},
      {"[1, 2]", "it is not a JSON object"},
      {R"({"id": [1], "method": "ask"})", "/id: a number or a text was expected"},
      {R"({"id": 1})", "/method: '' is not known"},
      {R"({"id": 1, "method": "tel"})", "did you mean 'tell'?"},
      {R"({"id": 1, "method": 7})", "/method"},
      {R"({"id": 1, "method": "ask", "params": [1]})", "/params"},
      {R"({"id": 1, "method": "ask", "param": {}})", "did you mean 'params'?"},
      {R"({"id": 1, "method": "ask", "params": {"counts": 1}})", "did you mean 'count'?"},
      {R"({"id": 1, "method": "ask", "params": {"count": 0}})", "/params/count: 0 is not accepted"},
      {R"({"id": 1, "method": "ask", "params": {"count": 1.5}})", "/params/count"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0}})", "the result of the trial is missing"},
      {R"({"id": 1, "method": "tell", "params": {"value": 1}})", "exactly one of"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 7, "value": 1}})", "there is no trial 7"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 99999999999, "value": 1}})", "/params/trial"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0, "value": "1"}})", "/params/value"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0, "value": NaN}})", "not JSON"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0, "status": "okay"}})", "did you mean 'ok'?"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0, "status": "oom", "value": 1}})",
       "value cannot be combined"},
      {R"({"id": 1, "method": "tell", "params": {"trial": 0, "value": 1, "metrics": {"a": "b"}}})",
       "/params/metrics/a"},
      {R"({"id": 1, "method": "open", "params": {}})", "directory"},
      {R"({"id": 1, "method": "open", "params": {"directory": ""}})", "a path was expected"},
      {R"({"id": 1, "method": "open", "params": {"directory": "/nowhere/at/all"}})", "there is no run here yet"},
      {R"({"id": 1, "method": "open", "params": {"directory": "/nowhere/r", "session": 3}})", "/params/session"},
      {R"({"id": 1, "method": "open", "params": {"directory": "/nowhere/r", "session": {"spce": {}}}})", "session: "},
      {R"({"id": 1, "method": "predict", "params": {"configurations": [7]}})", "/params/configurations/0"},
      {R"({"id": 1, "method": "predict", "params": {"configurations": {}}})", "/params/configurations"},
      {R"({"id": 1, "method": "report", "params": {"file": "/"}})", "is a directory"},
  };
  for (const auto& [line, part] : kLines) {
    const Json answered = served.answer(line);
    ASSERT_TRUE(answered.contains("error")) << line << answered.dump();
    const std::string text =
        answered["error"]["message"].get<std::string>() + "; " + answered["error"]["fix"].get<std::string>();
    EXPECT_NE(text.find(part), std::string::npos) << line << '\n' << text;
    EXPECT_EQ(answered["error"]["kind"], "user") << line;
  }
  EXPECT_TRUE(served.answer("ask")["id"].is_null());
  EXPECT_EQ(served.answer(R"({"id": "a", "method": "best"})")["id"], "a");
  EXPECT_EQ(served.ask()["trial"], 0) << "nothing was closed or asked";
}

TEST_F(ServeTest, NeedsAnOpenRun) {
  Served served;
  for (const char* method : {"ask", "tell", "best", "trials", "predict", "report"})
    EXPECT_NE(served.refusal(method).find("no run is open"), std::string::npos) << method;
}

TEST_F(ServeTest, AnotherRunMayBeOpenedAndTheFilesOfTheFirstAreWritten) {
  Served served;
  opened(served, "first");
  run_trials(served, 3);
  opened(served, "second");
  EXPECT_EQ(parse_csv(read_text(directory_ / "first/trials.csv"), "trials").rows.size(), 3U);
  EXPECT_EQ(served.ask()["trial"], 0);
}

TEST_F(ServeTest, RefusesAnotherSessionInTheSameDirectory) {
  Served served;
  opened(served);
  run_trials(served, 2);
  Json changed = session();
  changed["space"]["threads"] = {1, 2};
  EXPECT_NE(served.refusal("open", {{"directory", run_directory()}, {"session", changed}})
                .find("was begun with another session: /space/threads was [1,2,4,8,16], now [1,2]"),
            std::string::npos);
  EXPECT_EQ(served.ask()["trial"], 2) << "the run before stays open";
}

TEST_F(ServeTest, TheCommandNeedsItsOption) {
  const Said said = run_krigtune({"serve"});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("--stdio is missing"), std::string::npos) << said.err;
}

/// A pipe whose reader is tested.
class RequestReaderTest : public testing::Test {
 protected:
  RequestReaderTest() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~RequestReaderTest() override {
    ::close(ends_[0]);
    end();
  }
  void write(const std::string& text) { EXPECT_TRUE(write_all(ends_[1], text)); }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  int ends_[2] = {-1, -1};
};

using Event = cli::RequestReader::Event;

TEST_F(RequestReaderTest, ReadsLinesHoweverTheyArrive) {
  cli::RequestReader reader(ends_[0]);
  EXPECT_EQ(reader.next(0), Event::kNothingYet);
  write("one\ntwo\nth");
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), "one");
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), "two");
  EXPECT_EQ(reader.next(0), Event::kNothingYet);
  write("ree\n\nlast");
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), "three");
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), "");
  end();
  ASSERT_EQ(reader.next(-1), Event::kLine);
  EXPECT_EQ(reader.line(), "last");
  EXPECT_EQ(reader.next(-1), Event::kEnd);
  EXPECT_EQ(reader.next(-1), Event::kEnd);
}

TEST_F(RequestReaderTest, DropsALineThatIsTooLongAndReadsTheNext) {
  constexpr std::size_t kMost = 1000;
  cli::RequestReader reader(ends_[0], kMost);
  write(std::string(kMost, 'a') + "\n" + std::string(kMost + 1, 'b') + "\n" + std::string(5 * kMost, 'c'));
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), std::string(kMost, 'a'));
  EXPECT_EQ(reader.next(0), Event::kTooLong);
  EXPECT_EQ(reader.next(0), Event::kNothingYet);
  write("ccc\nd\n" + std::string(2 * kMost, 'e'));
  EXPECT_EQ(reader.next(0), Event::kTooLong);
  ASSERT_EQ(reader.next(0), Event::kLine);
  EXPECT_EQ(reader.line(), "d");
  end();
  EXPECT_EQ(reader.next(-1), Event::kTooLong);
  EXPECT_EQ(reader.next(-1), Event::kEnd);
  EXPECT_NE(cli::Server::answer_to_a_long_one().find("16777216 bytes"), std::string::npos);
}

}  // namespace krigtune::serve_test
