#include "schedule/tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "schedule/random_settings.h"

namespace krigtune::schedule::tensors {
namespace {

workload::Workload tied_model(std::int64_t layers) {
  workload::Workload workload;
  workload.model = {
      .layers = layers, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn_hidden = 64, .vocab = 31, .seq_len = 8};
  workload.model.tied_embeddings = true;
  return workload;
}

TEST(StageTensors, AreThoseOfTheWholeModelInItsOrder) {
  RandomSettings random(1);
  for (int i = 0; i < 200; ++i) {
    const SettingCase drawn = random.next();
    const ParameterTable table = make_parameters(drawn.workload, drawn.setting->knobs);
    const std::int64_t layers = drawn.workload.model.layers;
    const StageTensors whole(unit_tensors(table), {layers, true, true, drawn.workload.model.other_layers_in(0, layers)},
                             granule_elems(drawn.setting->knobs.data_ranks, compute_type(drawn.workload.precision)));
    ASSERT_EQ(whole.count(), static_cast<int>(table.tensors.size()));
    for (int t = 0; t < whole.count(); ++t) {
      const ParameterTensor& tensor = table.tensors[static_cast<std::size_t>(t)];
      EXPECT_EQ(whole.elems(t), tensor.elems) << tensor.name;
      EXPECT_EQ(whole.padded(t), tensor.padded_elems) << tensor.name;
      EXPECT_EQ(whole.is_split(t), tensor.split != Split::kNone) << tensor.name;
    }
    EXPECT_EQ(whole.ready_order(), gradient_ready_order(table));
    EXPECT_EQ(whole.trained_padded(), table.padded_elems);
  }
}

TEST(StageTensors, EachIsReadyOnceAndInAUnit) {
  RandomSettings random(2);
  for (int i = 0; i < 200; ++i) {
    const SettingCase drawn = random.next();
    const StageTensors& tensors = *drawn.tensors;
    std::set<int> in_units;
    for (std::size_t u = 0; u < tensors.units(); ++u) {
      in_units.insert(tensors.unit(u).begin(), tensors.unit(u).end());
    }
    const std::set<int> ready(tensors.ready_order().begin(), tensors.ready_order().end());
    EXPECT_EQ(static_cast<int>(in_units.size()), tensors.count());
    EXPECT_EQ(ready, in_units);
    EXPECT_EQ(tensors.ready_order().size(), ready.size());
  }
}

// Backward begins with the head: if the embedding is in another stage, the gradient of the head's copy is complete
// there.
TEST(StageTensors, TheLastStagesCopyOfATiedTableIsReadyFirst) {
  const UnitTensors model = unit_tensors(tied_model(2), Knobs{});
  const StageTensors last(model, {2, false, true}, 16);
  EXPECT_TRUE(last.copies_table());
  EXPECT_EQ(last.ready_order().front(), last.count() - 1);
  EXPECT_EQ(last.index(0, -1), last.count() - 1);
  const StageTensors whole(model, {2, true, true}, 16);
  EXPECT_FALSE(whole.copies_table());
  EXPECT_EQ(whole.ready_order().back(), 0);
  EXPECT_EQ(whole.unit(whole.units() - 1).back(), 0);
}

TEST(Stores, TakeSixteenBytesAParameterWithAdamWInSixteenBits) {  // Rajbhandari et al. 2020, section 3.1
  workload::Workload workload;
  workload.precision = workload::Precision::kBf16;
  const auto bytes_of = [&](std::int64_t stage, std::int64_t ranks) {
    Knobs knobs;
    knobs.zero_stage = stage;
    const Stores stores = stores_of(make_policy(workload, knobs));
    double bytes = 0.0;
    const auto add = [&](const Store& store) {
      const bool holds = stage == 3 ? store.of_sharded : store.of_whole;
      if (holds) bytes += static_cast<double>(size_bytes(store.type)) / static_cast<double>(store.parts ? ranks : 1);
    };
    for (const Store* store :
         {&stores.parameters, &stores.parameter_shards, &stores.gradients, &stores.host_gradients, &stores.masters}) {
      add(*store);
    }
    for (const Store& moments : stores.moments) add(moments);
    return bytes;
  };
  // Figure 1 of that paper: K = 12, N = 64.
  EXPECT_DOUBLE_EQ(bytes_of(0, 64), 16.0);
  EXPECT_DOUBLE_EQ(bytes_of(1, 64), 4.0 + 12.0 / 64.0);
  EXPECT_DOUBLE_EQ(bytes_of(2, 64), 2.0 + 14.0 / 64.0);
  EXPECT_DOUBLE_EQ(bytes_of(3, 64), 16.0 / 64.0);
}

TEST(BucketEnds, WholeTensorsInOrderWithinTheLimitOrAlone) {
  RandomSettings random(3);
  for (int i = 0; i < 100; ++i) {
    const SettingCase drawn = random.next();
    const std::vector<int>& order = drawn.tensors->ready_order();
    const std::int64_t most = drawn.setting->knobs.reduce_bucket_elems;
    std::size_t begin = 0;
    for (const std::size_t end : bucket_ends(*drawn.tensors, most)) {
      ASSERT_LT(begin, end);
      std::int64_t elems = 0;
      for (std::size_t at = begin; at < end; ++at) elems += drawn.tensors->elems(order[at]);
      EXPECT_TRUE(elems <= most || end - begin == 1) << drawn.text();
      EXPECT_TRUE(end == order.size() || elems + drawn.tensors->elems(order[end]) > most) << drawn.text();
      begin = end;
    }
    EXPECT_EQ(begin, order.size());
  }
}

}  // namespace
}  // namespace krigtune::schedule::tensors
