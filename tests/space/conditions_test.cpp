// Constraints and conditional parameters in small examples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "space/encoder.h"
#include "space/spaces.h"
#include "user_error.h"

namespace krigtune::conditions_test {

std::vector<std::string> texts_of(const space::Space& space) {
  std::vector<std::string> texts;
  for (const space::Configuration& c : all_of(space)) texts.push_back(c.text());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Constraint, KeepsWhatMeetsIt) {
  const space::Space space = constrained(R"({"a": [1, 2, 3], "b": [1, 2, 3]})", {"a + b == 4", "a != 2"});
  EXPECT_EQ(texts_of(space), (Texts{"a=1 b=3", "a=3 b=1"}));
  EXPECT_EQ(space.count(), 2);
  const std::vector<space::ExclusionCount> exclusions = space.exclusions();
  EXPECT_EQ(exclusions.at(4).constraint, "a + b == 4");
  EXPECT_EQ(exclusions.at(4).count, 6);
  EXPECT_EQ(exclusions.at(5).constraint, "a != 2");
  EXPECT_EQ(exclusions.at(5).count, 1);
}

TEST(Constraint, KnowsTheFactsOfTheJob) {
  const space::JobFacts facts{
      .ranks = 8, .train_batch_size = 64, .numbers = {{"gpus_per_node", 4.0}, {"seq_len", 1024.0}}};
  const char* json = R"({"micro_batch": [1, 2, 4, 8], "tensor_parallel": [1, 2, 4, 8]})";
  EXPECT_EQ(constrained(json, {"tensor_parallel <= gpus_per_node"}, facts).count(), 12);
  EXPECT_EQ(constrained(json, {"micro_batch * seq_len <= 2048"}, facts).count(), 8);
  EXPECT_EQ(constrained(json, {"dp == 2"}, facts).count(), 4);
  EXPECT_EQ(constrained(json, {"ranks == 8 && train_batch_size == 64"}, facts).count(), 16);
  EXPECT_EQ(constrained(json, {"gradient_accumulation_steps == 8"}, facts).count(), 4) << "64 = mb * 8 / tp * 8";
  EXPECT_EQ(constrained(R"({"x": [1, 2]})", {"dp * x == 6"}, {.ranks = 6, .well_known = false}).count(), 1);
}

TEST(Constraint, TakesWellKnownParametersThatAreNotTunedAtTheirDefault) {
  const char* json = R"({"micro_batch": [1, 2]})";
  EXPECT_EQ(constrained(json, {"tensor_parallel <= 1 && offload_param == 'none' && !overlap_comm"}).count(), 2);
  EXPECT_THROW(constrained(json, {"tensor_parallel <= 1"}, {.well_known = false}), UserError);
}

TEST(Constraint, SeesKnobsAsWhatTheyMean) {
  // Below stage 3 the knob has no effect and stands for its first value, which the constraint forbids. So those stages
  // have no configuration.
  const space::Space space = constrained(R"({"zero_stage": [2, 3], "stage3_prefetch_bucket_size": [1, 2]})",
                                         {"stage3_prefetch_bucket_size >= 2"}, {.ranks = 2});
  EXPECT_EQ(texts_of(space), Texts{"zero_stage=3 stage3_prefetch_bucket_size=2"});
}

TEST(Constraint, ThatIsWrongIsNamed) {
  const char* json = R"({"zero_stage": [1, 2], "where": ["cpu", "none"]})";
  EXPECT_EQ(user_error_of([&] {
              constrained(json, {"zero_stage > 1", "where == 'cpu' && zero_stge == 3"});
            }),
            "the constraint \"where == 'cpu' && zero_stge == 3\": at character 19: unknown name 'zero_stge'; did you "
            "mean 'zero_stage'?");
  EXPECT_EQ(user_error_of([&] { constrained(json, {"where < 3"}); }),
            "the constraint \"where < 3\": at character 1: texts have no order; texts can be compared with == and != "
            "only");
  EXPECT_EQ(user_error_of([&] { constrained(json, {"where == zero_stage"}); }),
            "the constraint \"where == zero_stage\": at character 7: a text is compared with a number; compare texts "
            "with texts, numbers with numbers");
  EXPECT_EQ(user_error_of([&] { constrained(json, {"zero_stage"}); }),
            "the constraint \"zero_stage\": at character 1: a condition was expected, not a number; compare it: ... <= "
            "8");
}

constexpr const char* kConditional = R"({
  "prefetch": {"values": [10, 20], "when": "stage == 3"},
  "stage": [2, 3],
  "device": {"values": ["cpu", "nvme"], "when": "prefetch > 10"}
})";

TEST(When, LeavesOutWhatDoesNotExist) {
  const space::Space space = space_from(kConditional);
  EXPECT_EQ(texts_of(space), (Texts{"stage=2", "prefetch=10 stage=3", "prefetch=20 stage=3 device=cpu",
                                    "prefetch=20 stage=3 device=nvme"}));
  EXPECT_EQ(space.count(), 4);
  EXPECT_EQ(space.lattice_count(), 8);
  EXPECT_EQ(space.columns(), (Texts{"prefetch", "stage", "device"}));
  EXPECT_EQ(space.exclusions().front().count, 8);
  EXPECT_FALSE(space.contains({{"prefetch", std::int64_t{10}}, {"stage", std::int64_t{2}}}));
  EXPECT_FALSE(space.contains({{"stage", std::int64_t{3}}}));
  EXPECT_TRUE(space.contains({{"stage", std::int64_t{2}}}));
}

TEST(When, DropsInCompletionWhatDoesNotExist) {
  const space::Space space = space_from(kConditional);
  space::Configuration c{{"prefetch", std::int64_t{20}}, {"stage", std::int64_t{2}}, {"device", "nvme"}};
  EXPECT_EQ(space.complete(c), space::Exclusion::kNone);
  EXPECT_EQ(c.text(), "stage=2") << "the device falls with prefetch";
}

TEST(When, LetsConstraintsRestThatUseWhatDoesNotExist) {
  const space::Space space = constrained(kConditional, {"prefetch >= 20", "stage == 3 || device == 'cpu'"});
  EXPECT_EQ(texts_of(space), (Texts{"stage=2", "prefetch=20 stage=3 device=cpu", "prefetch=20 stage=3 device=nvme"}));
}

TEST(When, IsEnteredByAStepWithTheFirstValue) {
  const space::Space space = space_from(kConditional);
  const auto steps = [&](const space::Configuration& c) {
    Texts texts;
    for (const space::Configuration& neighbour : space.neighbours(c)) texts.push_back(neighbour.text());
    return texts;
  };
  EXPECT_EQ(steps({{"stage", std::int64_t{2}}}), Texts{"prefetch=10 stage=3"});
  EXPECT_EQ(steps({{"prefetch", std::int64_t{10}}, {"stage", std::int64_t{3}}}),
            (Texts{"prefetch=20 stage=3 device=cpu", "stage=2"}));
  const space::Space real = space_from(R"({"n": [1, 2], "x": {"type": "real", "min": 1, "max": 100, "scale": "log",
                                                       "when": "n == 2"}})");
  EXPECT_NEAR(space::as_number(*real.neighbours({{"n", std::int64_t{1}}}).at(0).find("x")), 10.0, 1e-12);
}

TEST(When, MayNotGoInACircle) {
  EXPECT_EQ(user_error_of([] {
              space_from(R"({"a": {"values": [1, 2], "when": "b == 1"}, "b": {"values": [1, 2], "when": "c == 1"},
                             "c": {"values": [1, 2], "when": "a == 1"}})");
            }),
            "conditions that go in a circle: a needs b needs c needs "
            "a; drop one \"when\"");
  EXPECT_THROW(space_from(R"({"a": {"values": [1, 2], "when": "a == 1"}})"), UserError);
}

TEST(When, ThatIsWrongIsNamed) {
  EXPECT_EQ(user_error_of([] { space_from(R"({"a": {"values": [1, 2], "when": "zero_stag == 3"}})"); }),
            "\"when\" of 'a': at character 1: unknown name 'zero_stag'; did you mean 'zero_stage'?");
  EXPECT_THROW(space_from(R"({"gradient_accumulation_steps": {"values": [1, 2], "when": "ranks == 1"}})",
                          {.ranks = 1, .train_batch_size = 4}),
               UserError);
}

TEST(When, ThatWouldGrowBeyondReasonIsRefused) {
  std::string json = R"({"p0": [1, 2])";
  for (int i = 1; i < 40; ++i) {
    json += fmt::format(R"(, "p{}": {{"values": [1, 2], "when": "p{} > 1 && p{} < 3"}})", i, i - 1, i - 1);
  }
  EXPECT_NE(user_error_of([&] { space_from(json + "}"); }).find("refer to each other too often"), std::string::npos);
}

TEST(When, IsEncodedInTheMiddleOrAsACategoryOfItsOwn) {
  const space::Space space = space_from(kConditional);
  const space::Encoder encoder(space);
  const space::EncodedPoint absent = encoder.encode({{"stage", std::int64_t{2}}});
  EXPECT_EQ(absent.ordered, (std::vector<double>{0.5, 0.0}));
  EXPECT_EQ(absent.categories, (std::vector<int>{3}));
  for (const space::Configuration& c : all_of(space)) EXPECT_EQ(encoder.decode(encoder.encode(c)).text(), c.text());
}

}  // namespace krigtune::conditions_test
