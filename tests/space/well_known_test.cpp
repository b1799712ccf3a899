#include "space/well_known.h"

#include <gtest/gtest.h>

#include <set>

#include "core/files.h"
#include "space/spaces.h"
#include "space/well_known.h"

namespace krigtune {
namespace {

space::Parameter parsed_range(const space::WellKnownParameter& known) {
  const Json space = {{known.name, parse_json(known.default_range, known.name)}};
  return space::read_parameters(space, known.name, "/space").at(0);
}

// `test_space_well_known --write-reference FILE` writes it.
TEST(WellKnown, AreDocumentedAsTheyAre) {
  EXPECT_EQ(read_text(KRIGTUNE_PARAMETER_REFERENCE), space::parameter_reference())
      << "rewrite it: test_space_well_known --write-reference docs/parameters.md";
}

TEST(WellKnown, StandOnceAndAreFound) {
  std::set<std::string> names;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    EXPECT_TRUE(names.insert(known.name).second) << known.name;
    EXPECT_EQ(space::find_well_known(known.name), &known);
  }
  EXPECT_EQ(space::find_well_known("zero_stag"), nullptr);
}

TEST(WellKnown, OtherNamesMeanOneOfThemEach) {
  std::set<std::string> others;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    for (const space::OtherName& other : known.other_names) {
      EXPECT_TRUE(others.insert(other.name).second) << other.name;
      EXPECT_EQ(space::find_well_known(other.name), nullptr) << other.name;
      EXPECT_EQ(space::well_known_name(other.name), known.name);
    }
  }
  EXPECT_EQ(space::well_known_name("tensor_model_parallel_size"), "tensor_parallel");
  EXPECT_EQ(space::well_known_name("zero_stage"), "zero_stage");
  EXPECT_EQ(space::well_known_name("learning_rate"), "");
}

TEST(WellKnown, HaveADefaultOfTheKindOfTheirRange) {
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const space::Parameter parameter = parsed_range(known);
    EXPECT_GE(parameter.values.size(), 2U) << known.name;
    EXPECT_EQ(parameter.values.front().index(), known.default_value.index()) << known.name;
    EXPECT_TRUE(parameter.scale != space::Scale::kRank || parameter.index_of(known.default_value) >= 0) << known.name;
  }
}

TEST(WellKnown, RangesMakeASpaceTogether) {
  std::vector<space::Parameter> parameters;
  for (const space::WellKnownParameter& known : space::well_known_parameters())
    parameters.push_back(parsed_range(known));
  const space::Space space(parameters, {.ranks = 8, .train_batch_size = 512, .parameter_count = 1'500'000'000});
  EXPECT_GT(space.count(), 100'000'000);
  EXPECT_LT(space.count(), space.lattice_count());
}

// Compares the words about parameters without effect with the rules.
TEST(WellKnown, SayWhereTheyHaveNoEffect) {
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const std::string name = known.name;
    const bool of_its_own = name == "sequence_parallel" || name == "activation_checkpointing_layers" ||  // below
                            name == "context_parallel" || name == "expert_parallel" || name == "virtual_pipeline" ||
                            name == "pipeline_schedule" || name == "expert_tensor_parallel" || name == "moe_dispatch" ||
                            name == "moe_overlap" || name == "context_parallel_kind" || name == "tp_comm_overlap" ||
                            name == "recompute_modules";
    if (name == "zero_stage" || name == "tensor_parallel" || name == "pipeline_parallel" || of_its_own) continue;
    const space::Parameter parameter = parsed_range(known);
    const auto is_dead = [&](std::int64_t stage, std::int64_t ranks) {
      const space::Space space({{"zero_stage", {stage}}, parameter}, {.ranks = ranks});
      return space.count() == 1;
    };
    const std::string words = known.no_effect;
    const bool alone =
        words.find("one data-parallel rank") != std::string::npos || words.find("one rank") != std::string::npos;
    EXPECT_EQ(is_dead(3, 1), alone || name == "allgather_bucket_size") << name;
    EXPECT_EQ(is_dead(2, 2), words.find("below stage 3") != std::string::npos) << name;
    EXPECT_EQ(is_dead(0, 2), words.find("stage") != std::string::npos) << name;
  }
}

TEST(WellKnown, KnobsOfParallelismAndCheckpointingNeedThem) {
  const auto count = [](const char* knob, const char* of, const space::Value& value) {
    return space::Space({parsed_range(*space::find_well_known(knob)), {of, {value}}}, {.ranks = 4}).count();
  };
  EXPECT_EQ(count("sequence_parallel", "tensor_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("sequence_parallel", "tensor_parallel", std::int64_t{2}), 2);
  EXPECT_EQ(count("expert_tensor_parallel", "tensor_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("expert_tensor_parallel", "tensor_parallel", std::int64_t{4}), 2);
  EXPECT_EQ(count("moe_dispatch", "expert_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("moe_dispatch", "expert_parallel", std::int64_t{4}), 2);
  EXPECT_EQ(count("context_parallel_kind", "context_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("context_parallel_kind", "context_parallel", std::int64_t{4}), 2);
  EXPECT_EQ(count("virtual_pipeline", "pipeline_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("virtual_pipeline", "pipeline_parallel", std::int64_t{2}), 6);
  EXPECT_EQ(count("pipeline_schedule", "pipeline_parallel", std::int64_t{1}), 1);
  EXPECT_EQ(count("pipeline_schedule", "pipeline_parallel", std::int64_t{2}), 4);
  EXPECT_EQ(count("activation_checkpointing_layers", "activation_checkpointing", std::string("selective")), 1);
  EXPECT_EQ(count("activation_checkpointing_layers", "activation_checkpointing", std::string("full")), 5);
  EXPECT_EQ(count("recompute_modules", "activation_checkpointing", std::string("full")), 1);
  EXPECT_EQ(count("recompute_modules", "activation_checkpointing", std::string("selective")), 6);
}

TEST(WellKnown, OfStage3MeanNothingBelowIt) {
  int of_stage3 = 0;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    // Other frameworks than DeepSpeed shard over a part of the ranks at lower stages, too.
    if (known.deepspeed.first_stage < 3 || known.name == std::string_view(space::kHybridShard)) continue;
    ++of_stage3;
    const space::Space below({{space::kZeroStage, {std::int64_t{2}}}, parsed_range(known)}, {.ranks = 2});
    EXPECT_EQ(below.count(), 1) << known.name;
  }
  EXPECT_EQ(of_stage3, 6);
}

TEST(WellKnown, NeedOtherDataParallelRanksWhereTheyCommunicateWithThem) {
  std::set<std::string> names;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    if (space::needs_other_data_ranks(known)) names.insert(known.name);
  }
  EXPECT_EQ(names, std::set<std::string>({space::kReduceBucket, space::kAllgatherBucket, space::kOverlap,
                                          space::kPrefetch, space::kHybridShard, space::kSecondaryShard}));
}

// The value with which a file may omit a knob has the knob's kind, and every text is a value of the knob's range.
TEST(WellKnown, RowsAgreeWithThemselves) {
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const space::Parameter range = parsed_range(known);
    EXPECT_EQ(*known.no_effect == '\0', *known.no_effect_if == '\0') << known.name;
    EXPECT_TRUE(!known.deepspeed.off || range.index_of(*known.deepspeed.off) >= 0) << known.name;
    EXPECT_TRUE(!known.deepspeed.is_offload || known.deepspeed.off) << known.name;
    for (const space::WordCost& cost : known.rule.words)
      EXPECT_GE(range.index_of(std::string(cost.word)), 0) << known.name;
    for (const space::Value& value : range.values) {
      const auto* integer = std::get_if<std::int64_t>(&value);
      EXPECT_TRUE(integer == nullptr || *integer >= known.smallest) << known.name;
    }
  }
}

TEST(WellKnown, NamesWithoutEffectAreAllInTheTable) {
  for (const space::Parameter& knob : {space::Parameter{"stage3_made_up", {std::int64_t{1}, std::int64_t{2}}}}) {
    EXPECT_EQ(space::Space({knob}, {.ranks = 2}).count(), 1) << "every knob of stage 3 follows its rule";
    EXPECT_EQ(space::find_well_known(knob.name), nullptr);
  }
}

TEST(KnownFacts, StandOnce) {
  std::set<std::string> names;
  for (const space::KnownFact& fact : space::known_facts()) EXPECT_TRUE(names.insert(fact.name).second) << fact.name;
  EXPECT_EQ(names.size(), 11U);
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--write-reference") {
    krigtune::write_atomically(argv[2], krigtune::space::parameter_reference());
    return 0;
  }
  return RUN_ALL_TESTS();
}
