// What computations that are remembered do not depend on: each parameter is said here, so that a new one cannot be
// forgotten.
#include "cost/knob_keys.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "cost/cost_fixtures.h"
#include "cost/memory/memory_profile.h"
#include "cost/time/block_plans.h"
#include "cost/time/step_template.h"
#include "space/well_known.h"

namespace krigtune::knob_keys_test {
namespace {

using schedule::Knobs;
using Names = std::set<std::string>;

workload::Workload mixture() {
  workload::Workload workload;
  workload.model = {
      .layers = 16, .hidden = 64, .heads = 8, .kv_heads = 8, .ffn_hidden = 128, .vocab = 128, .seq_len = 64};
  workload.model.experts = {8, 2, 32, 64};
  workload.precision = workload::Precision::kBf16;
  workload.framework = workload::Framework::kMegatron;
  return workload;
}

space::Value value_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  return json.get<std::int64_t>();
}

// Of the parameter's usual range: all words, or the ends.
std::vector<space::Value> values_of(const std::string& name) {
  const Json range = parse_json(space::find_well_known(name)->default_range, name);
  std::vector<space::Value> values;
  const Json& listed = range.is_array() ? range : range.value("values", Json::array());
  for (const Json& each : listed) values.push_back(value_of(each));
  for (const char* end : {"min", "max"})
    if (range.is_object() && range.contains(end)) values.push_back(value_of(range[end]));
  return values;
}

// Configurations beside which a parameter has an effect.
std::vector<space::Configuration> backgrounds() {
  const space::Configuration plain{{"micro_batch", std::int64_t{1}}, {"gradient_accumulation_steps", std::int64_t{16}}};
  space::Configuration split = plain;
  split.set("tensor_parallel", std::int64_t{2});
  split.set("sequence_parallel", true);
  split.set("expert_parallel", std::int64_t{2});
  split.set("pipeline_parallel", std::int64_t{2});
  split.set("activation_checkpointing", std::string("full"));
  space::Configuration sharded = plain;
  sharded.set("zero_stage", std::int64_t{3});
  sharded.set("activation_checkpointing", std::string("selective"));
  space::Configuration shared = plain;
  shared.set("context_parallel", std::int64_t{2});
  return {plain, split, sharded, shared};
}

using Visit = std::function<void(const std::string& name, const Knobs& before, const Knobs& after)>;

// Calls it for each planned parameter and each of its values that changes the knobs.
void for_each_change(const Visit& visit) {
  for (const workload::Framework framework : {workload::Framework::kMegatron, workload::Framework::kDeepSpeed}) {
    workload::Workload workload = mixture();
    workload.framework = framework;
    for (const space::Configuration& background : backgrounds()) {
      const auto before = schedule::knobs_of(workload, gpus(2), background);
      if (!std::holds_alternative<Knobs>(before)) continue;
      for (const std::string& name : schedule::planned_parameters()) {
        for (const space::Value& value : values_of(name)) {
          space::Configuration changed = background;
          changed.set(name, value);
          const auto after = schedule::knobs_of(workload, gpus(2), changed);
          if (!std::holds_alternative<Knobs>(after) || std::get<Knobs>(after) == std::get<Knobs>(before)) continue;
          visit(name, std::get<Knobs>(before), std::get<Knobs>(after));
        }
      }
    }
  }
}

// The parameters that change nothing that is remembered.
Names left_out_by(Knobs (*key)(Knobs)) {
  Names matter, seen;
  for_each_change([&](const std::string& name, const Knobs& before, const Knobs& after) {
    seen.insert(name);
    if (key(before) != key(after)) matter.insert(name);
  });
  Names left_out;
  for (const std::string& name : seen)
    if (!matter.contains(name)) left_out.insert(name);
  return left_out;
}

TEST(KnobKeys, EveryPlannedParameterIsAmongTheChanges) {
  Names seen;
  for_each_change([&](const std::string& name, const Knobs&, const Knobs&) { seen.insert(name); });
  Names unseen;
  for (const std::string& name : schedule::planned_parameters())
    if (!seen.contains(name)) unseen.insert(name);
  EXPECT_EQ(unseen, Names()) << "no value of these changes the knobs of any background";
}

// How data ranks share and send what they have. All of it is timed for each configuration.
const Names kSharding = {"zero_stage",
                         "reduce_bucket_size",
                         "allgather_bucket_size",
                         "overlap_comm",
                         "offload_optimizer",
                         "offload_param",
                         "stage3_prefetch_bucket_size",
                         "stage3_param_persistence_threshold",
                         "stage3_max_live_parameters",
                         "stage3_max_reuse_distance"};
const Names kCopies = {"hybrid_shard", "secondary_shard"};
// The order in which micro-steps pass stages.
const Names kOrder = {"gradient_accumulation_steps", "pipeline_schedule", "virtual_pipeline"};
// How tokens travel between the ranks that share them.
const Names kExchanges = {"moe_dispatch", "moe_overlap", "tp_comm_overlap"};
const Names kKept = {"activation_checkpointing", "activation_checkpointing_layers", "recompute_modules"};

Names all_of(const std::vector<Names>& sets) {
  Names names;
  for (const Names& set : sets) names.insert(set.begin(), set.end());
  return names;
}

TEST(KnobKeys, LeaveOutWhatIsSaidHere) {
  EXPECT_EQ(left_out_by(cost::of_block), all_of({kSharding,
                                                 kCopies,
                                                 kOrder,
                                                 kExchanges,
                                                 {"context_parallel", "context_parallel_kind", "expert_parallel",
                                                  "pipeline_parallel", "activation_checkpointing_layers"}}));
  EXPECT_EQ(left_out_by(cost::of_template), all_of({kSharding, kCopies, kOrder}));
  EXPECT_EQ(left_out_by(cost::of_profile),
            all_of({kSharding,
                    kCopies,
                    kOrder,
                    kExchanges,
                    {"micro_batch", "pipeline_parallel", "activation_checkpointing_layers"}}));
  EXPECT_EQ(left_out_by(cost::of_tensors), all_of({kSharding,
                                                   kCopies,
                                                   kOrder,
                                                   kExchanges,
                                                   kKept,
                                                   {"context_parallel", "context_parallel_kind", "micro_batch"}}));
  EXPECT_EQ(left_out_by(cost::of_spans),
            all_of({kSharding,
                    kOrder,
                    kExchanges,
                    kKept,
                    {"context_parallel", "context_parallel_kind", "micro_batch", "sequence_parallel"}}));
}

double work_s(const cost::StepTemplate& of) {
  double sum_s = 0.0;
  for (const auto& unit : of.passes) {
    for (const cost::Pass& pass : unit) sum_s += pass.all.work_s + pass.cost.expert_comm_s + pass.cost.tensor_comm_s;
  }
  return sum_s;
}

// That which is left out makes no difference to what is computed of all knobs.
TEST(KnobKeys, WhatTheyLeaveOutChangesNothing) {
  const workload::Workload workload = mixture();
  cost::Machine machine = links_of(1e11, 1e10);
  machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e12;
  cost::BlockPlans plans;
  for_each_change([&](const std::string& name, const Knobs&, const Knobs& after) {
    const cost::MemoryProfile whole = cost::profile_memory(workload, after);
    const cost::MemoryProfile part = cost::profile_memory(workload, cost::of_profile(after));
    EXPECT_EQ(whole.kept_by({}, 1).total, part.kept_by({}, 1).total) << name;
    EXPECT_EQ(whole.head_forward.highest().total, part.head_forward.highest().total) << name;
    const plan::StepPlan& plan = plans.of(workload, after);
    EXPECT_DOUBLE_EQ(work_s(cost::make_template(workload, machine, after, plan)),
                     work_s(cost::make_template(workload, machine, cost::of_template(after), plan)))
        << name;
    const auto whole_spans = cost::GroupSpans::of(after, 8);
    const auto part_spans = cost::GroupSpans::of(cost::of_spans(after), 8);
    EXPECT_EQ(whole_spans.data.ranks, part_spans.data.ranks) << name;
    EXPECT_EQ(whole_spans.shards.ranks, part_spans.shards.ranks) << name;
    EXPECT_EQ(whole_spans.experts.ranks, part_spans.experts.ranks) << name;
    EXPECT_EQ(whole_spans.copies.ranks, part_spans.copies.ranks) << name;
    EXPECT_EQ(whole_spans.secondary.ranks, part_spans.secondary.ranks) << name;
  });
}

}  // namespace
}  // namespace krigtune::knob_keys_test
