#include "engine/host/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/host/number_types.h"
#include "engine/host/thread_communicator.h"
#include "krigtune/rng.h"

namespace krigtune::communicator_test {

using Wholes = std::vector<std::vector<float>>;  // by rank

Wholes random_wholes(int ranks, std::size_t elems) {
  Wholes wholes;
  for (int rank = 0; rank < ranks; ++rank) {
    Rng rng(9, static_cast<std::uint64_t>(rank));
    std::vector<float> whole(elems);
    for (float& value : whole) value = static_cast<float>(rng.normal() * std::pow(10.0, rng.uniform() * 6.0 - 3.0));
    wholes.push_back(whole);
  }
  return wholes;
}

void on_all_ranks(int ranks, const std::function<void(int, engine::Communicator&)>& work) {
  const SystemClock clock;
  engine::ThreadGroup group(ranks, clock);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { work(rank, *group.member(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Cuts a range into two segments: the first 2/3 and the remainder, both multiples of the number of ranks.
std::vector<engine::Segment> cut(std::vector<float>& whole) {
  const auto first = static_cast<std::int64_t>(whole.size()) / 3 * 2;
  return {{whole.data(), first, nullptr},
          {whole.data() + first, static_cast<std::int64_t>(whole.size()) - first, nullptr}};
}

class ThreadCommunicatorOfRanks : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
  std::size_t elems() const { return static_cast<std::size_t>(ranks()) * 3 * 1000; }
};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadCommunicatorOfRanks, testing::Values(1, 2, 3, 4));

TEST_P(ThreadCommunicatorOfRanks, AllReduceSumsInTheOrderOfTheRanks) {
  const Wholes before = random_wholes(ranks(), elems());
  Wholes wholes = before;
  on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
    const auto segments = cut(wholes[static_cast<std::size_t>(rank)]);
    communicator.all_reduce({segments, 0});
  });
  std::vector<float> sums = before[0];
  for (int rank = 1; rank < ranks(); ++rank) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += before[static_cast<std::size_t>(rank)][i];
  }
  for (const auto& whole : wholes) EXPECT_EQ(whole, sums);  // bit by bit
}

TEST_P(ThreadCommunicatorOfRanks, ReduceScatterThenAllGatherIsAllReduceBitByBit) {
  Wholes reduced = random_wholes(ranks(), elems());
  Wholes gathered = reduced;
  on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
    communicator.all_reduce({cut(reduced[static_cast<std::size_t>(rank)]), 0});
    auto segments = cut(gathered[static_cast<std::size_t>(rank)]);
    communicator.reduce_scatter({segments, 0});
    for (engine::Segment& segment : segments) {
      segment.shard = static_cast<float*>(segment.whole) + segment.elems / ranks() * rank;
    }
    communicator.all_gather({segments, 0});
  });
  EXPECT_EQ(gathered, reduced);
}

TEST_P(ThreadCommunicatorOfRanks, SumsOf16BitsAreFormedInFp32AndRoundedOnce) {
  for (const schedule::DType type : {schedule::DType::kBf16, schedule::DType::kFp16}) {
    Wholes values = random_wholes(ranks(), elems());
    std::vector<std::vector<std::uint16_t>> wholes;
    std::vector<float> sums(elems(), 0.0F);
    for (auto& value : values) {
      std::vector<std::uint16_t> bits(elems());
      engine::round_to(type, value.data(), static_cast<std::int64_t>(elems()), bits.data());
      engine::widen(type, bits.data(), static_cast<std::int64_t>(elems()), value.data());
      for (std::size_t i = 0; i < elems(); ++i) sums[i] = wholes.empty() ? value[i] : sums[i] + value[i];
      wholes.push_back(bits);
    }
    std::vector<std::uint16_t> expected(elems());
    engine::round_to(type, sums.data(), static_cast<std::int64_t>(elems()), expected.data());
    on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
      const std::vector<engine::Segment> all = {
          {wholes[static_cast<std::size_t>(rank)].data(), static_cast<std::int64_t>(elems()), nullptr, type}};
      communicator.all_reduce({all, 0});
    });
    for (const auto& whole : wholes) EXPECT_EQ(whole, expected);
  }
}

TEST_P(ThreadCommunicatorOfRanks, AllReduceMaxTakesTheLargestAndKeepsNan) {
  Wholes wholes = random_wholes(ranks(), 101);  // not a multiple of the ranks
  wholes.back()[7] = NAN;
  std::vector<float> largest = wholes[0];
  for (const auto& whole : wholes) {
    for (std::size_t i = 0; i < whole.size(); ++i) largest[i] = std::max(largest[i], whole[i]);
  }
  on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
    auto& whole = wholes[static_cast<std::size_t>(rank)];
    const std::vector<engine::Segment> all = {{whole.data(), static_cast<std::int64_t>(whole.size())}};
    communicator.all_reduce_max({all, 0});
  });
  for (const auto& whole : wholes) {
    EXPECT_TRUE(std::isnan(whole[7]));
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(i == 7 || whole[i] == largest[i]) << i;
  }
}

TEST_P(ThreadCommunicatorOfRanks, ReduceScatterLeavesForeignPartsAlone) {
  const Wholes before = random_wholes(ranks(), elems());
  Wholes wholes = before;
  on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
    auto& whole = wholes[static_cast<std::size_t>(rank)];
    const std::vector<engine::Segment> all = {{whole.data(), static_cast<std::int64_t>(whole.size()), nullptr}};
    communicator.reduce_scatter({all, 0});
  });
  const std::size_t part = elems() / static_cast<std::size_t>(ranks());
  for (std::size_t rank = 0; rank < wholes.size(); ++rank) {
    for (std::size_t i = 0; i < elems(); ++i) {
      if (i / part != rank) {
        EXPECT_EQ(wholes[rank][i], before[rank][i]);
      }
    }
  }
}

TEST_P(ThreadCommunicatorOfRanks, AllGatherTakesShardsFromElsewhere) {
  const Wholes shards = random_wholes(ranks(), 500);
  Wholes wholes(static_cast<std::size_t>(ranks()), std::vector<float>(static_cast<std::size_t>(ranks()) * 500));
  on_all_ranks(ranks(), [&](int rank, engine::Communicator& communicator) {
    auto& whole = wholes[static_cast<std::size_t>(rank)];
    const auto& shard = shards[static_cast<std::size_t>(rank)];
    const std::vector<engine::Segment> all = {{whole.data(), static_cast<std::int64_t>(whole.size()), shard.data()}};
    communicator.all_gather({all, 0});
  });
  std::vector<float> expected;
  for (const auto& shard : shards) expected.insert(expected.end(), shard.begin(), shard.end());
  for (const auto& whole : wholes) EXPECT_EQ(whole, expected);
}

TEST(ThreadCommunicator, FreesTheOthersWhenARankFails) {
  const SystemClock clock;
  engine::ThreadGroup group(3, clock);
  std::atomic<int> freed{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_THROW(group.member(rank)->all_reduce({}), engine::Aborted);
      ++freed;
    });
  }
  group.abort();  // rank 2 never arrives
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(freed.load(), 2);
}

// A clock that stands still and records the deadlines of sleepers. Safe to use from several threads.
class NotingClock final : public Clock {
 public:
  double now_s() const override { return now_s_; }
  std::int64_t unix_us() const override { return 0; }
  void sleep_until_s(double deadline_s) const override {
    const std::lock_guard lock(mutex_);
    deadlines_.push_back(deadline_s);
  }
  void set_s(double now_s) { now_s_ = now_s; }
  std::vector<double> deadlines() const {
    const std::lock_guard lock(mutex_);
    return deadlines_;
  }

 private:
  double now_s_ = 0.0;
  mutable std::mutex mutex_;
  mutable std::vector<double> deadlines_;
};

TEST(EmulatedLink, SerialisesWhatOverlaps) {
  engine::EmulatedLink link;
  EXPECT_DOUBLE_EQ(link.reserve_until_s(10.0, 2.5), 12.5);
  EXPECT_DOUBLE_EQ(link.reserve_until_s(11.0, 1.5), 14.0);  // after the first one
  EXPECT_DOUBLE_EQ(link.reserve_until_s(20.0, 1.5), 21.5);  // the link has been free
}

TEST(EmulatedLink, CostsNothingWhereNothingIsSent) {
  engine::EmulatedLink link;
  EXPECT_DOUBLE_EQ(link.reserve_until_s(3.0, 0.0), 3.0);
  EXPECT_DOUBLE_EQ(link.reserve_until_s(3.0, 1.0), 4.0);
}

TEST(EmulatedCommunicator, MovesTheDataAndSleepsToTheEndOfItsSlot) {
  NotingClock clock;
  clock.set_s(7.0);
  engine::ThreadGroup group(2, clock);
  std::vector<std::vector<float>> wholes = {{1, 2}, {10, 20}};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto base = group.member(rank);
      engine::EmulatedLink link;
      const workload::EmulatedNetwork network{"test", 0.25, 8.0};
      const auto emulated = engine::make_emulated(*base, link, network, {2, 1, 2}, clock);
      const std::vector<engine::Segment> all = {{wholes[static_cast<std::size_t>(rank)].data(), 2, nullptr}};
      emulated->all_reduce({all, 16});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wholes[0], (std::vector<float>{11, 22}));
  EXPECT_EQ(wholes[1], (std::vector<float>{11, 22}));
  EXPECT_EQ(clock.deadlines(), (std::vector<double>{9.25, 9.25}));  // 7 + 0.25 + 16 / 8
}

}  // namespace krigtune::communicator_test
