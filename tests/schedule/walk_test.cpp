// What every sink can rely on, checked over random settings.
#include "schedule/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "schedule/random_settings.h"
#include "schedule/reduction.h"

namespace krigtune::schedule::walk {
namespace {

TEST(Parts, EachLayerGoesForwardOnceAndBackwardOnceInReverse) {
  RandomSettings random(1);
  for (int i = 0; i < 200; ++i) {
    const SettingCase drawn = random.next();
    const std::int64_t layers = drawn.tensors->parts().layers;
    std::vector<std::int64_t> forward;
    std::vector<std::int64_t> backward;
    std::set<std::int64_t> again;
    for (const Part& part : parts_of(*drawn.tensors, drawn.setting->knobs)) {
      if (!is_block(part.unit)) continue;
      if (part.phase == Phase::kForward) forward.push_back(part.layer);
      EXPECT_TRUE(part.phase != Phase::kRecompute || again.insert(part.layer).second);
      if (part.phase != Phase::kBackward) continue;
      backward.push_back(part.layer);
      const bool recomputes = drawn.setting->knobs.checkpointing == Checkpointing::kFull;
      EXPECT_EQ(again.contains(part.layer), recomputes) << drawn.text();
    }
    std::vector<std::int64_t> expected(static_cast<std::size_t>(layers));
    for (std::size_t l = 0; l < expected.size(); ++l) expected[l] = static_cast<std::int64_t>(l);
    EXPECT_EQ(forward, expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(backward, expected);
  }
}

// A part that does not end its unit's use is followed by the part that continues it.
TEST(Parts, AUseThatGoesOnIsTakenUpByTheNextPart) {
  RandomSettings random(2);
  for (int i = 0; i < 200; ++i) {
    const SettingCase drawn = random.next();
    const std::vector<Part> parts = parts_of(*drawn.tensors, drawn.setting->knobs);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const bool goes_on = p + 1 < parts.size() && !parts[p + 1].begins_use;
      EXPECT_EQ(parts[p].ends_use, !goes_on);
      EXPECT_TRUE(!goes_on || parts[p].unit_index == parts[p + 1].unit_index);
    }
  }
}

// Records what it is told, and checks it.
class Witness final : public GatheringSink, public ReductionSink, public PartSink, public UpdateSink {
 public:
  explicit Witness(const SettingCase& drawn) : setting_(*drawn.setting), text_(drawn.text()) {}

  void attach(Walk& walk) { walk_ = &walk; }

  void gather(std::span<const GatheredItem* const> items) override {
    for (const GatheredItem* item : items) {
      live_elems_ += item->elems;
      for (const int t : item->tensors) {
        EXPECT_TRUE(setting_.is_sharded(t)) << text_;
        ++held_[t];
      }
    }
    const std::span<const GatheredItem> current = walk_->gathering().current();
    const bool ahead = std::any_of(items.begin(), items.end(), [&](const GatheredItem* item) {
      return item < current.data() || item >= current.data() + current.size();
    });
    EXPECT_TRUE(!ahead || live_elems_ <= setting_.knobs.max_live_elems) << text_;
    EXPECT_TRUE(!ahead || setting_.policy.prefetches) << text_;
  }

  void let_go(const GatheredItem& item) override {
    live_elems_ -= item.elems;
    for (const int t : item.tensors) EXPECT_GE(--held_[t], 0) << text_;
  }

  void begin(const Part&) override {}

  void add(const Part& part) override {
    for (const int t : setting_.tensors.unit(part.unit_index)) {
      EXPECT_TRUE(!setting_.is_sharded(t) || held_[t] > 0) << text_ << ": tensor " << t << " is not there";
    }
    if (part.phase != Phase::kBackward) return;
    for (const int t : setting_.tensors.unit(part.unit_index)) {
      Reduction& reduction = walk_->reduction();
      EXPECT_EQ(reduction.begin(t), begun_.insert(t).second) << text_;
      // A tied table's gradient continues with the embedding's.
      const bool goes_on =
          part.unit == Unit::kHead && setting_.tensors.tied() && t == 0 && !setting_.tensors.copies_table();
      if (!goes_on) reduction.done(t);
    }
  }

  void pack(const Reduction& by, int t, bool) override {
    EXPECT_TRUE(setting_.policy.packs && !setting_.goes_alone(t)) << text_;
    EXPECT_LT(by.open_bucket(), setting_.policy.packed_buckets);
    packed_.push_back(t);
    packed_elems_ += setting_.tensors.padded(t);
    EXPECT_LE(packed_elems_, by.packed_bucket_elems()) << text_;
  }

  void reduce(const Reduction& by, std::span<const int> tensors, bool packed) override {
    EXPECT_TRUE(by.reduces_now()) << text_;
    if (packed) {
      EXPECT_TRUE(std::equal(packed_.begin(), packed_.end(), tensors.begin(), tensors.end())) << text_;
      packed_.clear();
      packed_elems_ = 0;
    }
    for (const int t : tensors) ++reduced_[t];
  }

  void end_micro_step() override {
    EXPECT_TRUE(packed_.empty());
    if (setting_.policy.shards_gradients) begun_.clear();
  }

  void control() override { EXPECT_TRUE(setting_.policy.controls && updated_.empty()) << text_; }
  void update(std::span<const int> bucket) override {
    for (const int t : bucket) ++updated_[t];
  }
  void deliver(Place to, std::span<const int> mastered) override {
    for (const int t : mastered) {
      EXPECT_TRUE(setting_.has_master(t) && setting_.home(t) == to && updated_[t] == 1) << text_;
      ++delivered_[t];
    }
  }
  void gather(std::span<const int> whole) override {
    for (const int t : whole) {
      EXPECT_TRUE(setting_.policy.shards_optimizer && !setting_.is_sharded(t) && updated_[t] == 1) << text_;
      ++regathered_[t];
    }
  }

  void check_micro_step(std::int64_t m) {
    const bool reduces = setting_.policy.shards_gradients || m + 1 == setting_.knobs.micro_steps;
    for (int t = 0; t < setting_.tensors.count(); ++t) EXPECT_EQ(reduced_[t], reduces ? 1 : 0) << text_;
    reduced_.clear();
  }

  void check_update() {
    for (int t = 0; t < setting_.tensors.count(); ++t) {
      EXPECT_EQ(updated_[t], 1) << text_;
      EXPECT_EQ(delivered_[t], setting_.has_master(t) ? 1 : 0) << text_;
      EXPECT_EQ(regathered_[t], setting_.policy.shards_optimizer && !setting_.is_sharded(t) ? 1 : 0) << text_;
    }
  }

 private:
  const Setting& setting_;
  std::string text_;
  Walk* walk_ = nullptr;
  std::int64_t live_elems_ = 0;
  std::map<int, int> held_, reduced_, updated_, delivered_, regathered_;
  std::set<int> begun_;
  std::vector<int> packed_;
  std::int64_t packed_elems_ = 0;
};

TEST(Walk, KeepsItsPromisesToEverySink) {
  RandomSettings random(3);
  for (int i = 0; i < 1000; ++i) {
    const SettingCase drawn = random.next();
    Witness witness(drawn);
    Walk walk(*drawn.setting, drawn.setting->knobs.micro_steps, witness, witness);
    witness.attach(walk);
    for (std::int64_t m = 0; m < drawn.setting->knobs.micro_steps; ++m) {
      walk.micro_step(witness);
      witness.check_micro_step(m);
    }
    walk_update(*drawn.setting, witness);
    witness.check_update();
    if (HasFailure()) FAIL() << drawn.text();
  }
}

// A model of two layers. In each block, two tensors exceed the persistence threshold of 1'000: 16 x 64 elements, up and
// down. The order of uses is embedding, 0, 1, head, head, 1, 0, embedding.
TEST(Gathering, KeepsWhatIsUsedAgainWithinTheReuseDistance) {
  workload::Workload workload;
  workload.model = {.layers = 2, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn_hidden = 64, .vocab = 31, .seq_len = 8};
  workload.dialect = workload::Dialect::kDeepSpeed;
  Knobs knobs;
  knobs.zero_stage = 3;
  knobs.persistence_elems = 1'000;
  const UnitTensors model = unit_tensors(workload, knobs);
  const StageTensors tensors(model, {2, true, true}, 16);
  const auto gathers = [&](std::int64_t reuse) {
    knobs.max_reuse_elems = reuse;
    const Setting setting{tensors, knobs, make_policy(workload, knobs)};
    struct Counter final : GatheringSink {
      void gather(std::span<const GatheredItem* const> items) override { tensors += items.size(); }
      void let_go(const GatheredItem&) override {}
      std::size_t tensors = 0;
    } counter;
    const std::vector<Part> parts = parts_of(tensors, knobs);
    Gathering gathering(setting, parts, 1, counter);
    for (std::size_t use = 0; use < parts.size(); ++use) gathering.begin_use();
    return counter.tensors;
  };
  std::int64_t head = 0;  // traversed between layer 1's forward and its backward
  for (const int t : tensors.unit(tensors.units() - 1)) head += 2 * tensors.elems(t);
  EXPECT_EQ(gathers(0), 8U);         // up and down of two layers, forward and backward
  EXPECT_EQ(gathers(head), 8U);      // not within the distance
  EXPECT_EQ(gathers(head + 1), 6U);  // layer 1 stays
  EXPECT_EQ(gathers(1'000'000), 4U);
}

}  // namespace
}  // namespace krigtune::schedule::walk
