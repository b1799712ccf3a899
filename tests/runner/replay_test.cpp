#include "runner/replay_fixture.h"

namespace krigtune::replay_test {

TEST_F(Replay, LooksAConfigurationUp) {
  const runner::ReplayTable t = open(table("a,b,v,source\n1,x,10.5,here\n2,x,20,there\n"));
  EXPECT_EQ(t.size(), 2U);
  const trial::Outcome outcome = t.look_up({{"a", std::int64_t{1}}, {"b", std::string("x")}}, 0);
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics, (std::map<std::string, double>{{"speed", 10.5}}));
  EXPECT_EQ(std::get<trial::Measured>(outcome).value_sem, 0.0);
}

TEST_F(Replay, AConfigurationWithoutARowIsNotContained) {
  const runner::ReplayTable t = open(table("a,b,v\n1,x,1\n"));
  EXPECT_TRUE(t.contains({{"a", std::int64_t{1}}, {"b", std::string("x")}}));
  EXPECT_FALSE(t.contains({{"a", std::int64_t{2}}, {"b", std::string("x")}}));
  EXPECT_FALSE(t.contains({{"a", std::int64_t{1}}}));
  EXPECT_THROW(t.look_up({{"a", std::int64_t{2}}, {"b", std::string("x")}}, 0), std::logic_error);
}

TEST_F(Replay, OnlyTheSpacesParametersAreMatched) {
  const runner::ReplayTable t = open(table("a,b,gradient_accumulation_steps,v\n1,x,64,1\n"));
  EXPECT_TRUE(
      t.contains({{"b", std::string("x")}, {"a", std::int64_t{1}}, {"gradient_accumulation_steps", std::int64_t{2}}}));
}

TEST_F(Replay, NumbersAreComparedAsNumbersAndBooleansAsTheyAreWritten) {
  const runner::ReplayTable t = open(table("a,b,v\n4.0,True,1\n5e8,false,2\n0.10,0,3\n"));
  EXPECT_TRUE(t.contains({{"a", std::int64_t{4}}, {"b", true}}));
  EXPECT_TRUE(t.contains({{"a", std::int64_t{500000000}}, {"b", false}}));
  EXPECT_TRUE(t.contains({{"a", 0.1}, {"b", false}}));
}

TEST_F(Replay, WherePicksRowsAndComparesNumbersAsNumbers) {
  runner::ReplaySpec spec = table("model,n,a,b,v\n1B,8,1,1,1\n1B,8.0,2,1,2\n2B,8,3,1,3\n1B,16,4,1,4\n");
  spec.where = {{"model", "1B"}, {"n", "8"}};
  const runner::ReplayTable t = open(spec);
  EXPECT_EQ(t.size(), 2U);
  EXPECT_EQ(optimum(t), 2.0);
}

TEST_F(Replay, AParameterMayHaveAColumnOfAnotherName) {
  runner::ReplaySpec spec = table("tp,b,v\n1,1,7\n");
  spec.columns = {{"a", {"tp"}}};
  EXPECT_EQ(value_of(open(spec).look_up({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}, 0)), 7.0);
}

TEST_F(Replay, AnyStatusButOkIsAFailure) {
  runner::ReplaySpec spec = table("a,b,v,s\n1,1,5,ok\n2,1,,oom\n3,1,,OOM\n4,1,,exploded\n5,1,,\n");
  spec.status_column = "s";
  const runner::ReplayTable t = open(spec);
  const auto at = [&](std::int64_t a) { return t.look_up({{"a", a}, {"b", std::int64_t{1}}}, 0); };
  EXPECT_EQ(value_of(at(1)), 5.0);
  EXPECT_FALSE(std::get<trial::OutOfMemory>(at(2)).predicted);
  EXPECT_TRUE(std::holds_alternative<trial::OutOfMemory>(at(3)));
  EXPECT_EQ(std::get<trial::Failed>(at(4)).reason, trial::FailureReason::kCrash);
  EXPECT_EQ(std::get<trial::Failed>(at(5)).reason, trial::FailureReason::kCrash);
  EXPECT_TRUE(t.contains({{"a", std::int64_t{2}}, {"b", std::int64_t{1}}}));
}

TEST_F(Replay, AConfigurationIsOkIfAnyOfItsRowsIs) {
  runner::ReplaySpec spec = table("a,b,v,s\n1,1,,failed\n1,1,5,ok\n2,1,,failed\n2,1,,oom\n");
  spec.status_column = "s";
  for (const auto repeats : {runner::ReplaySpec::Repeats::kBest, runner::ReplaySpec::Repeats::kMedian,
                             runner::ReplaySpec::Repeats::kCycle}) {
    spec.repeats = repeats;
    const runner::ReplayTable t = open(spec);
    for (int n : {0, 1, 2}) EXPECT_EQ(value_of(t.look_up({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}, n)), 5.0);
    EXPECT_TRUE(
        std::holds_alternative<trial::OutOfMemory>(t.look_up({{"a", std::int64_t{2}}, {"b", std::int64_t{1}}}, 0)));
  }
}

TEST_F(Replay, RepeatsAreTheBestTheMedianOrTakeTurns) {
  runner::ReplaySpec spec = table("a,b,v\n1,1,3\n1,1,9\n1,1,4\n1,1,6\n");
  const space::Configuration c = {{"a", std::int64_t{1}}, {"b", std::int64_t{1}}};
  EXPECT_EQ(value_of(open(spec, true).look_up(c, 0)), 9.0);
  EXPECT_EQ(value_of(open(spec, false).look_up(c, 2)), 3.0);
  spec.repeats = runner::ReplaySpec::Repeats::kMedian;
  EXPECT_EQ(value_of(open(spec).look_up(c, 0)), 5.0);
  spec.repeats = runner::ReplaySpec::Repeats::kCycle;
  const runner::ReplayTable turns = open(spec);
  const std::vector<double> expected = {3.0, 9.0, 4.0, 6.0, 3.0};
  for (int n = 0; n < 5; ++n) EXPECT_EQ(value_of(turns.look_up(c, n)), expected[static_cast<std::size_t>(n)]);
}

TEST_F(Replay, TheOptimumIsTheBestThatALookUpCanGive) {
  runner::ReplaySpec spec = table("a,b,v,s\n1,1,3,ok\n1,1,9,ok\n1,1,4,ok\n2,1,5,ok\n3,1,100,failed\n");
  spec.status_column = "s";
  EXPECT_EQ(optimum(open(spec, true)), 9.0);
  EXPECT_EQ(optimum(open(spec, false)), 3.0);
  spec.repeats = runner::ReplaySpec::Repeats::kMedian;
  EXPECT_EQ(optimum(open(spec, true)), 5.0);
  EXPECT_EQ(optimum(open(spec, false)), 4.0);
  spec.repeats = runner::ReplaySpec::Repeats::kCycle;
  EXPECT_EQ(optimum(open(spec, true)), 5.0);
  EXPECT_EQ(optimum(open(spec, false), {std::int64_t{2}}), 5.0) << "rows outside the space do not count";
  runner::ReplaySpec failures = table("a,b,v,s\n1,1,3,failed\n");
  failures.status_column = "s";
  EXPECT_FALSE(optimum(open(failures)).has_value());
}

TEST_F(Replay, TheTrialsOfARunDirectoryAreATable) {
  runner::ReplaySpec spec = table(
      "trial,status,reason,strategy,a,b,value,value_sem,peak_memory_bytes,started_at\n"
      "0,ok,,baseline,2,true,101.5,0.25,123456,2026-08-23T10:00:00.000000\n"
      "1,oom,predicted,bayes,64,false,,,,2026-08-23T10:00:01.000000\n"
      "2,bounded,,bayes,8,true,3.5,,,2026-08-23T10:00:02.000000\n");
  spec.value.name = "value";
  spec.status_column = "status";
  const runner::ReplayTable t = open(spec);
  EXPECT_EQ(value_of(t.look_up({{"a", std::int64_t{2}}, {"b", true}}, 0)), 101.5);
  EXPECT_STREQ(trial::status_text(t.look_up({{"a", std::int64_t{64}}, {"b", false}}, 0)), "oom");
  EXPECT_EQ(std::get<trial::Bounded>(t.look_up({{"a", std::int64_t{8}}, {"b", true}}, 0)).at_best, 3.5);
}

TEST_F(Replay, WrongTablesAreRefusedWithTheirPlaceAndTheMend) {
  expect_error(table("a,beta,v\n1,1,1\n"), {"t.csv: line 1", "no column 'b'", "parameter 'b'", "'columns'"});
  expect_error(table("a,b,w\n1,1,1\n"), {"t.csv: line 1", "no column 'v'", "'value'"});
  expect_error(table("a,b,v\n1,1,1\n\n2,1,fast\n"), {"t.csv: line 4, column 'v': 'fast' is not a number"});
  expect_error(table("a,b,v\n1,1,\n"), {"line 2, column 'v': '' is not a number", "status column"});
  expect_error(table("a,b,v\n1,1,nan\n"), {"line 2, column 'v'"});
  expect_error(table("a,b,v\n1,1,1e999\n"), {"line 2, column 'v'"});
  expect_error(table("a,b,v\n"), {"t.csv", "no row"});
  expect_error(table("a,b,v,v\n1,1,1,2\n"), {"t.csv: line 1: two columns are named 'v'", "'value'"});
  expect_error(table("a,b,v,a\n1,1,1,2\n"), {"two columns are named 'a'", "parameter 'a'"});
  EXPECT_EQ(error_of(table("a,b,v,other,other\n1,1,1,2,3\n")), "no error") << "nobody reads that one";
  runner::ReplaySpec spec = table("n,a,b,v\n8,1,1,1\n16,1,1,1\n");
  spec.where = {{"n", "4"}};
  expect_error(spec, {"t.csv: no row has n = 4", "column 'n' has 16, 8"});
  spec.where = {{"m", "4"}};
  expect_error(spec, {"no column 'm'", "where"});
  spec.where.clear();
  spec.columns = {{"c", {"n"}}};
  expect_error(spec, {"maps 'c', which is not a parameter"});
  spec.columns.clear();
  spec.status_column = "status";
  expect_error(spec, {"no column 'status'"});
  spec.table = dir_ / "absent.csv";
  expect_error(spec, {"absent.csv"});
}

TEST_F(Replay, TheRunnerTakesTurnsAndRefusesWhatIsNotThere) {
  runner::ReplaySpec spec = table("a,b,v\n1,1,3\n1,1,9\n2,1,7\n");
  spec.repeats = runner::ReplaySpec::Repeats::kCycle;
  const runner::ReplayTable t = open(spec);
  const std::unique_ptr<trial::Runner> runner = runner::make_replay_runner(t);
  const space::Configuration one = {{"a", std::int64_t{1}}, {"b", std::int64_t{1}}};
  const space::Configuration two = {{"a", std::int64_t{2}}, {"b", std::int64_t{1}}};
  EXPECT_EQ(value_of(runner->run(one, dir_.path())), 3.0);
  EXPECT_EQ(value_of(runner->run(two, dir_.path())), 7.0);
  EXPECT_EQ(value_of(runner->run(one, dir_.path())), 9.0);
  EXPECT_EQ(std::get<trial::Failed>(runner->run({{"a", std::int64_t{3}}, {"b", std::int64_t{1}}}, dir_.path())).reason,
            trial::FailureReason::kInvalid);
}

}  // namespace krigtune::replay_test
