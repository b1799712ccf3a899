#include "runner/replay_fixture.h"

namespace krigtune::replay_tables_test {

using ReplayTables = Replay;  // from other people, with their words, units and sizes

TEST_F(ReplayTables, ColumnsMayHaveOtherUnits) {
  runner::ReplaySpec spec = table("bucket_mb,b,ms\n0.07,1,20\n500,1,10\n 47.6837158203125 ,1,40\n");
  spec.columns = {{"a", {"bucket_mb", 1e6}}};
  spec.value = {"ms", 1e-3};
  const runner::ReplayTable t = open(spec, false);
  const auto at = [&](const space::Value& a) { return value_of(t.look_up({{"a", a}, {"b", std::int64_t{1}}}, 0)); };
  EXPECT_DOUBLE_EQ(at(std::int64_t{70000}), 0.02);
  EXPECT_DOUBLE_EQ(at(std::int64_t{500000000}), 0.01);
  EXPECT_DOUBLE_EQ(at(47683715.8203125), 0.04);
  EXPECT_EQ(optimum(t, {std::int64_t{70000}, std::int64_t{500000000}}), 0.01);
}

TEST_F(ReplayTables, FurtherColumnsAreMetrics) {
  runner::ReplaySpec spec = table("a,b,v,t,mem_gb,sem\n1,1,5,0.25,1.5,0.5\n2,1,6,nan,,\n");
  spec.metrics = {{"step_time_s", {"t"}}, {"peak_memory_bytes", {"mem_gb", 1e9}}, {"value_sem", {"sem"}}};
  const runner::ReplayTable t = open(spec);
  const trial::Outcome one = t.look_up({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}, 0);
  EXPECT_EQ(std::get<trial::Measured>(one).metrics,
            (std::map<std::string, double>{{"speed", 5.0}, {"step_time_s", 0.25}}));
  EXPECT_EQ(std::get<trial::Measured>(one).peak_memory, Bytes{1500000000});
  EXPECT_EQ(std::get<trial::Measured>(one).value_sem, 0.5);
  const trial::Outcome two = t.look_up({{"a", std::int64_t{2}}, {"b", std::int64_t{1}}}, 0);
  EXPECT_EQ(std::get<trial::Measured>(two).metrics.size(), 1U);
  EXPECT_FALSE(std::get<trial::Measured>(two).peak_memory.has_value());
}

TEST_F(ReplayTables, MetricsFollowTheRowThatIsPicked) {
  runner::ReplaySpec spec = table("a,b,v,t\n1,1,3,30\n1,1,9,90\n1,1,4,10\n");
  spec.metrics = {{"t", {"t"}}};
  const space::Configuration c = {{"a", std::int64_t{1}}, {"b", std::int64_t{1}}};
  const auto t_of = [&](const runner::ReplaySpec& with, int n) {
    return std::get<trial::Measured>(open(with).look_up(c, n)).metrics.at("t");
  };
  EXPECT_EQ(t_of(spec, 0), 90.0);
  spec.repeats = runner::ReplaySpec::Repeats::kCycle;
  EXPECT_EQ(t_of(spec, 2), 10.0);
  spec.repeats = runner::ReplaySpec::Repeats::kMedian;
  EXPECT_EQ(t_of(spec, 0), 30.0) << "of the metric by itself: not that of the row with the median value";
}

TEST_F(ReplayTables, TheMedianOfThreeOrMoreHasAStandardError) {
  runner::ReplaySpec spec = table("a,b,v\n1,1,1\n1,1,2\n1,1,3\n2,1,1\n2,1,3\n");
  spec.repeats = runner::ReplaySpec::Repeats::kMedian;
  const runner::ReplayTable t = open(spec);
  const trial::Outcome three = t.look_up({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}, 0);
  // s = 1: 1.2533141373155 / sqrt(3).
  EXPECT_LE(std::abs(std::get<trial::Measured>(three).value_sem - 0.7236012545582), 1e-12);
  EXPECT_EQ(std::get<trial::Measured>(three).metrics.size(), 1U);
  const trial::Outcome two = t.look_up({{"a", std::int64_t{2}}, {"b", std::int64_t{1}}}, 0);
  EXPECT_EQ(std::get<trial::Measured>(two).value_sem, 0.0);
}

TEST_F(ReplayTables, StatusWordsOfOthersAreUnderstood) {
  std::string text = "a,b,v,s\n";
  const std::vector<std::string> ok = {"ok", " OK ", "success", "Completed", "0"};
  const std::vector<std::string> oom = {"oom", "OOM", "out_of_memory", "OUT_OF_MEMORY", "Out of memory"};
  const std::vector<std::string> failed = {"1", "failed", "ok?", "true", "timeout"};
  int a = 0;
  for (const auto* words : {&ok, &oom, &failed}) {
    for (const std::string& word : *words) text += std::to_string(a++) + ",1,5," + word + "\n";
  }
  runner::ReplaySpec spec = table(text);
  spec.status_column = "s";
  const runner::ReplayTable t = open(spec);
  for (std::int64_t i = 0; i < 15; ++i) {
    EXPECT_STREQ(trial::status_text(t.look_up({{"a", i}, {"b", std::int64_t{1}}}, 0)), i < 5    ? "ok"
                                                                                       : i < 10 ? "oom"
                                                                                                : "failed")
        << i;
  }
}

TEST_F(ReplayTables, FailuresKeepTheirReason) {
  runner::ReplaySpec spec = table(
      "a,b,v,s,r\n1,1,,failed,Timeout\n2,1,,failed,CUDA driver\n3,1,,oom,predicted\n4,1,,failed,interrupted\n"
      "5,1,,failed,environment\n6,1,,failed,\n");
  spec.status_column = "s";
  spec.reason_column = "r";
  const runner::ReplayTable t = open(spec);
  const auto at = [&](std::int64_t a) { return t.look_up({{"a", a}, {"b", std::int64_t{1}}}, 0); };
  const trial::Outcome driver = at(2);
  EXPECT_EQ(std::get<trial::Failed>(at(1)).reason, trial::FailureReason::kTimeout);
  EXPECT_EQ(std::get<trial::Failed>(driver).reason, trial::FailureReason::kCrash);
  EXPECT_EQ(std::get<trial::Failed>(driver).last_lines, "the table says failed: CUDA driver");
  EXPECT_TRUE(std::get<trial::OutOfMemory>(at(3)).predicted);
  for (const std::int64_t a : {4, 5}) {
    EXPECT_FALSE(t.contains({{"a", a}, {"b", std::int64_t{1}}})) << "nothing was learned of it";
  }
  EXPECT_EQ(std::get<trial::Failed>(at(6)).last_lines, "the table says failed");
}

TEST_F(ReplayTables, BlanksAroundFieldsDoNotCount) {
  runner::ReplaySpec spec = table(" a , b,v , s\n 1 ,x , 7 , ok \r\n");
  spec.status_column = "s";
  EXPECT_EQ(value_of(open(spec).look_up({{"a", std::int64_t{1}}, {"b", std::string("x")}}, 0)), 7.0);
}

TEST_F(ReplayTables, AParameterThatDoesNotExistThereIsAnEmptyField) {
  const runner::ReplayTable t = open(table("a,b,v\n1,,7\n2,4,8\n"));
  EXPECT_EQ(value_of(t.look_up({{"a", std::int64_t{1}}}, 0)), 7.0);
  EXPECT_FALSE(t.contains({{"a", std::int64_t{2}}}));
  EXPECT_EQ(value_of(t.look_up({{"a", std::int64_t{2}}, {"b", std::int64_t{4}}}, 0)), 8.0);
}

// The reference is the generator of the table, called again.
TEST_F(ReplayTables, ALargeTableGivesEveryRowBack) {
  constexpr std::int64_t kRows = 20000;
  const auto value_at = [](std::int64_t i) { return static_cast<double>((i * 7919) % 20011) + 1.0; };
  std::string text = "a,b,v,note\n";
  for (std::int64_t i = 0; i < kRows; ++i) {
    text += std::to_string(i % 200) + "," + std::to_string(i / 200) + "," + std::to_string(value_at(i)) + ",\"x, y\"\n";
  }
  const runner::ReplayTable t = open(table(text));
  EXPECT_EQ(t.size(), static_cast<std::size_t>(kRows));
  double best = 0.0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(value_of(t.look_up({{"a", i % 200}, {"b", i / 200}}, 0)), value_at(i)) << i;
    best = std::max(best, value_at(i));
  }
  std::vector<space::Value> a;
  std::vector<space::Value> b;
  for (std::int64_t i = 0; i < 200; ++i) a.emplace_back(i);
  for (std::int64_t i = 0; i < kRows / 200; ++i) b.emplace_back(i);
  EXPECT_EQ(t.optimum(space::Space({{"a", std::move(a)}, {"b", std::move(b)}}, {.well_known = false})), best);
}

TEST_F(ReplayTables, WrongMetricsAreRefusedWithTheirPlace) {
  runner::ReplaySpec spec = table("a,b,v,t\n1,1,1,soon\n");
  spec.metrics = {{"t", {"t"}}};
  expect_error(spec, {"t.csv: line 2, column 't': 'soon' is not a number", "empty"});
  spec.metrics = {{"t", {"u"}}};
  expect_error(spec, {"no column 'u'", "'metrics'"});
  spec.metrics = {{"speed", {"v"}}};
  expect_error(spec, {"'metrics' names 'speed'"});
  spec.metrics.clear();
  spec.reason_column = "why";
  expect_error(spec, {"no column 'why'", "'reason'"});
  expect_error(table("a,b,v\n1,1,\"1,024\"\n"), {"line 2, column 'v': '1,024' is not a number"});
}

}  // namespace krigtune::replay_tables_test
