// Ranks as processes: how they find one another, the results of their collectives, how they notice that one has gone.
// Here the "processes" are threads, but sockets connect them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/host/communicator.h"
#include "engine/host/launch.h"
#include "engine/host/number_types.h"
#include "engine/host/sockets.h"
#include "engine/host/thread_communicator.h"
#include "engine/host/transport_communicator.h"
#include "engine/thread_processes.h"
#include "krigtune/rng.h"
#include "programs/bench/heartbeat.h"

namespace krigtune::processes_test {

engine::Environment variables(std::map<std::string, std::string> all) {
  return [all = std::move(all)](const std::string& name) -> std::optional<std::string> {
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Launch, IsReadFromWhatTheLauncherSays) {
  EXPECT_EQ(engine::launch_from(variables({})).kind, engine::Launch::Kind::kAlone);
  // A batch script of Slurm is not a step, and a job of one process is alone.
  EXPECT_EQ(engine::launch_from(variables({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})).kind,
            engine::Launch::Kind::kAlone);
  EXPECT_EQ(engine::launch_from(variables({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).kind, engine::Launch::Kind::kAlone);

  const engine::Launch mpi =
      engine::launch_from(variables({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_EQ(mpi.kind, engine::Launch::Kind::kMpi);
  EXPECT_EQ(mpi.rank, 1);
  EXPECT_EQ(mpi.size, 4);

  std::map<std::string, std::string> torchrun = {
      {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "1234"}};
  const engine::Launch sockets = engine::launch_from(variables(torchrun));
  EXPECT_EQ(sockets.kind, engine::Launch::Kind::kSockets);
  EXPECT_EQ(sockets.rendezvous.rank, 3);
  EXPECT_EQ(sockets.rendezvous.size, 8);
  EXPECT_EQ(sockets.rendezvous.host, "node1");
  EXPECT_EQ(sockets.rendezvous.port, 1234);
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(engine::launch_from(variables(torchrun)).rendezvous.port, 1235);

  std::map<std::string, std::string> srun = {{"SLURM_PROCID", "5"},
                                             {"SLURM_STEP_NUM_TASKS", "8"},
                                             {"SLURM_STEP_NUM_NODES", "2"},
                                             {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                                             {"SLURM_JOB_ID", "123456"}};
  const engine::Launch step = engine::launch_from(variables(srun));
  EXPECT_EQ(step.kind, engine::Launch::Kind::kSockets);
  EXPECT_EQ(step.rank, 5);
  EXPECT_EQ(step.rendezvous.host, "gpu07");
  EXPECT_GE(step.rendezvous.port, 20000);
  EXPECT_LT(step.rendezvous.port, 32000);
  srun["PMIX_RANK"] = "5";
  EXPECT_EQ(engine::launch_from(variables(srun)).kind, engine::Launch::Kind::kMpi);
}

TEST(Launch, SeesTheRankThatItsVariablesName) {
  std::map<std::string, std::string> all = {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"},
                                            {"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "0"},
                                            {"WORLD_SIZE", "1"},           {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  for (const auto& [name, value] : engine::local_rank_variables(3, 4, 1234, "secret")) {
    all.erase(name);
    if (value) all[name] = *value;
  }
  const engine::Launch launch = engine::launch_from(variables(all));
  EXPECT_EQ(launch.kind, engine::Launch::Kind::kSockets);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.rendezvous.host, engine::loopback_host());
  EXPECT_EQ(launch.rendezvous.port, 1234);
  EXPECT_EQ(launch.rendezvous.token, "secret");
}

TEST(Launch, RefusesVariablesThatMakeNoSense) {
  EXPECT_THROW(engine::launch_from(variables({{"RANK", "2"}, {"WORLD_SIZE", "2"}})), UserError);
  EXPECT_THROW(engine::launch_from(variables({{"RANK", "x"}, {"WORLD_SIZE", "2"}})), UserError);
  EXPECT_THROW(engine::launch_from(variables({{"OMPI_COMM_WORLD_SIZE", "2"}})), UserError);
}

TEST(Launch, KnowsTheFirstHostOfAList) {
  EXPECT_EQ(engine::first_host("node1"), "node1");
  EXPECT_EQ(engine::first_host("node1,node2"), "node1");
  EXPECT_EQ(engine::first_host("n[007-010,12],m3"), "n007");
  EXPECT_EQ(engine::first_host("n[3,5]"), "n3");
}

TEST(Sockets, ListenWhereProcessesOfOneMachineMeet) {
  const engine::Socket first = engine::listen_at(engine::loopback_host(), 0);
  EXPECT_EQ(first.local_host(), engine::loopback_host());
  EXPECT_THROW(engine::listen_at(engine::loopback_host(), first.local_port()), EnvironmentError) << "the port is taken";
}

std::vector<int> all_ranks(int size) {
  std::vector<int> all;
  for (int r = 0; r < size; ++r) all.push_back(r);
  return all;
}

/// One rank's data for a collective: floats, then 16-bit numbers, in ranges that no chunk divides.
struct Data {
  explicit Data(int rank, std::int64_t elems) {
    Rng rng(11, static_cast<std::uint64_t>(rank));
    for (std::int64_t i = 0; i < elems; ++i) floats.push_back(static_cast<float>(rng.normal()));
    halves.resize(static_cast<std::size_t>(elems));
    engine::round_to(schedule::DType::kBf16, floats.data(), elems, halves.data());
  }
  std::vector<engine::Segment> segments() {
    const auto half_elems = static_cast<std::int64_t>(halves.size());
    return {{halves.data(), half_elems, nullptr, schedule::DType::kBf16},
            {floats.data(), static_cast<std::int64_t>(floats.size()), nullptr, schedule::DType::kFp32}};
  }
  bool operator==(const Data&) const = default;

  std::vector<float> floats;
  std::vector<std::uint16_t> halves;
};

using Use = std::function<void(engine::Communicator&, std::vector<engine::Segment>&, int rank)>;

std::vector<Data> by_threads(int size, std::int64_t elems, const Use& use) {
  const SystemClock clock;
  engine::ThreadGroup group(size, clock);
  std::vector<Data> data;
  for (int rank = 0; rank < size; ++rank) data.emplace_back(rank, elems);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto segments = data[static_cast<std::size_t>(rank)].segments();
      use(*group.member(rank), segments, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return data;
}

std::vector<Data> by_sockets(int size, std::int64_t elems, const Use& use) {
  const SystemClock clock;
  std::vector<Data> data;
  for (int rank = 0; rank < size; ++rank) data.emplace_back(rank, elems);
  as_processes(size, [&](engine::Processes& processes) {
    const auto communicator = engine::make_transport_communicator(processes.open(all_ranks(size)), clock);
    auto segments = data[static_cast<std::size_t>(processes.rank())].segments();
    use(*communicator, segments, processes.rank());
  });
  return data;
}

// Ranges from a few bytes to several chunks. communicator_test.cpp compares threads with sums computed by hand.
TEST(TransportCommunicator, GivesBitByBitWhatThreadsGive) {
  for (const int size : {1, 2, 3}) {
    for (const std::int64_t elems : {std::int64_t{6}, std::int64_t{1'200'006}}) {
      const auto expect = [&](const char* what, const Use& use) {
        EXPECT_TRUE(by_sockets(size, elems, use) == by_threads(size, elems, use)) << what << " of " << size;
      };
      expect("all_reduce", [](engine::Communicator& c, auto& segments, int) { c.all_reduce({segments, 0}); });
      expect("all_reduce_max", [](engine::Communicator& c, auto& segments, int) { c.all_reduce_max({segments, 0}); });
      expect("reduce_scatter", [](engine::Communicator& c, auto& segments, int) { c.reduce_scatter({segments, 0}); });
      expect("all_gather", [&](engine::Communicator& c, auto& segments, int rank) {
        for (engine::Segment& segment : segments) {
          segment.shard =
              static_cast<std::byte*>(segment.whole) + segment.elems / size * rank * schedule::size_bytes(segment.type);
        }
        c.all_gather({segments, 0});
      });
    }
  }
}

TEST(TransportCommunicator, CutsAnAllReduceThatTheRanksDoNotDivide) {
  const Use use = [](engine::Communicator& c, auto& segments, int) { c.all_reduce({segments, 0}); };
  EXPECT_TRUE(by_sockets(3, 1, use) == by_threads(3, 1, use));
  EXPECT_TRUE(by_sockets(3, 700'001, use) == by_threads(3, 700'001, use));
}

TEST(Processes, OpenGroupsOfTheirOwn) {
  as_processes(4, [](engine::Processes& processes) {
    const int rank = processes.rank();
    const std::vector<int> mine = {rank % 2, rank % 2 + 2};
    const auto group = processes.open(mine);
    EXPECT_EQ(group->size(), 2);
    EXPECT_EQ(group->rank(), rank / 2);
    EXPECT_EQ(engine::all_say(*group, rank), mine);
    EXPECT_EQ(engine::all_say(processes.control(), rank), all_ranks(4));
  });
}

TEST(Processes, LearnThatOneHasGoneAndWhy) {
  as_processes(3, [](engine::Processes& processes) {
    const auto group = processes.open(all_ranks(3));
    if (processes.rank() == 1) return processes.abort(11);
    EXPECT_THROW(engine::all_say(*group, 1), engine::PeerLost);
    EXPECT_EQ(processes.announced_exit_code(), 11);
  });
  as_processes(2, [](engine::Processes& processes) {
    const auto group = processes.open(all_ranks(2));
    if (processes.rank() == 1) return;  // without saying anything
    EXPECT_THROW(engine::all_say(*group, 1), engine::PeerLost);
    EXPECT_EQ(processes.announced_exit_code(), std::nullopt);
  });
}

TEST(Processes, GiveUpWhenInterrupted) {
  as_processes(2, [](engine::Processes& processes) {
    const auto group = processes.open(all_ranks(2));
    if (processes.rank() == 0) {
      std::thread other([&] { processes.interrupt(); });
      EXPECT_THROW(engine::all_say(*group, 1), engine::Aborted);
      other.join();
    }
    engine::all_say(processes.control(), 1);  // their agreements continue to work
  });
}

TEST(Processes, OfJobsOfDifferentSizesDoNotMix) {
  const SystemClock clock;
  const int port = free_port();
  std::thread other([&] {
    EXPECT_THROW(engine::connect_by_sockets({1, 3, engine::loopback_host(), port, 20.0}, clock), EnvironmentError);
  });
  EXPECT_THROW(engine::connect_by_sockets({0, 2, engine::loopback_host(), port, 20.0}, clock), EnvironmentError);
  other.join();
}

// Connections to rank 0 that belong to none of its ranks.
class Strangers {
 public:
  Strangers(int port, const Clock& clock) : port_(port), clock_(clock) {}

  void come(int how_many, std::span<const std::byte> saying) {
    for (int i = 0; i < how_many; ++i) {
      sockets_.push_back(engine::connect_to(engine::loopback_host(), port_, clock_.now_s() + kPatienceS, clock_));
      sockets_.back().send_all(saying, clock_.now_s() + kPatienceS, clock_);
    }
  }

 private:
  static constexpr double kPatienceS = 20.0;
  int port_;
  const Clock& clock_;
  std::vector<engine::Socket> sockets_;
};

// A valid Hello with another token, as a rank that was started in another job sends it.
std::vector<std::byte> hello_with_another_token(int size, const Clock& clock) {
  const engine::Socket listener = engine::listen_at(engine::loopback_host(), 0);
  std::thread rank([&] {
    const engine::Rendezvous other{1, size, engine::loopback_host(), listener.local_port(), 20.0, "another token"};
    EXPECT_THROW(engine::connect_by_sockets(other, clock), EnvironmentError);
  });
  pollfd waiting{listener.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
  const engine::Socket caller(::accept(listener.descriptor(), nullptr, nullptr));
  std::vector<std::byte> hello(72);
  EXPECT_TRUE(caller.receive_all(hello, clock.now_s() + 20.0, clock));
  caller.shut_down();
  rank.join();
  return hello;
}

// More silent strangers than could be served one after the other, garbage, far too much of it, half a Hello, and a
// correct Hello with another token: the ranks still find one another, compute, and open further groups.
TEST(Processes, AreNotHinderedByStrangers) {
  const SystemClock clock;
  const int port = free_port();
  const std::vector<std::byte> hello = hello_with_another_token(2, clock);
  const auto job = [&](int rank) {
    return engine::Rendezvous{rank, 2, engine::loopback_host(), port, 20.0, "the job's token"};
  };
  std::thread first([&] {
    const auto processes = engine::connect_by_sockets(job(0), clock);
    EXPECT_EQ(engine::all_say(processes->control(), 10), (std::vector<int>{10, 11}));
    const auto group = processes->open(all_ranks(2));
    EXPECT_EQ(engine::all_say(*group, 20), (std::vector<int>{20, 21}));
  });
  Strangers strangers(port, clock);
  strangers.come(60, {});
  strangers.come(5, std::vector<std::byte>(72, std::byte{0x2a}));
  strangers.come(5, std::vector<std::byte>(100'000, std::byte{0x2a}));
  strangers.come(5, std::span(hello).first(40));
  strangers.come(5, hello);
  strangers.come(200, {});
  const auto processes = engine::connect_by_sockets(job(1), clock);
  EXPECT_EQ(engine::all_say(processes->control(), 11), (std::vector<int>{10, 11}));
  strangers.come(20, {});
  strangers.come(5, hello);
  const auto group = processes->open(all_ranks(2));
  EXPECT_EQ(engine::all_say(*group, 21), (std::vector<int>{20, 21}));
  first.join();
}

TEST(Processes, WithoutTheTokenDoNotJoin) {
  const SystemClock clock;
  const int port = free_port();
  std::thread first([&] {
    try {
      engine::connect_by_sockets({0, 2, engine::loopback_host(), port, 2.0, "a token"}, clock);
      ADD_FAILURE() << "nobody came who knew it";
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("1 who did not know its token"));
    }
  });
  EXPECT_THROW(engine::connect_by_sockets({1, 2, engine::loopback_host(), port, 20.0, ""}, clock), EnvironmentError);
  first.join();
}

// A program has taken the port before rank 0 came, and answers for as long as rank 0 would.
TEST(Processes, DoNotTakeAnybodyForRank0) {
  const SystemClock clock;
  const engine::Socket listener = engine::listen_at(engine::loopback_host(), 0);
  std::thread rank([&] {
    try {
      engine::connect_by_sockets({1, 2, engine::loopback_host(), listener.local_port(), 20.0, "a token"}, clock);
      ADD_FAILURE() << "it was not rank 0";
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is not rank 0 of this job"));
    }
  });
  pollfd waiting{listener.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
  const engine::Socket caller(::accept(listener.descriptor(), nullptr, nullptr));
  EXPECT_TRUE(caller.send_all(std::vector<std::byte>(1000), clock.now_s() + 20.0, clock));
  rank.join();
}

TEST(Sockets, ListenAtTheGivenAddressOnly) {
  if (engine::loopback_host() != "127.0.0.1") GTEST_SKIP() << "this machine has no IPv4";
  const engine::Socket one = engine::listen_at("127.0.0.2", 0);
  EXPECT_EQ(one.local_host(), "127.0.0.2");
  // An address of TEST-NET-1 (RFC 5737), which no machine has.
  EXPECT_THROW(engine::listen_at("192.0.2.1", 0), EnvironmentError);
  EXPECT_EQ(engine::listen_at("192.0.2.1", 0, engine::Elsewhere::kEverywhere).local_host(), "0.0.0.0");
}

TEST(Launch, RefusesPortsAndSizesThatThereAreNot) {
  const auto refused = [](const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> all = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
    for (const auto& [name, value] : more) all[name] = value;
    EXPECT_THROW(engine::launch_from(variables(all)), UserError) << testing::PrintToString(more);
  };
  for (const char* port : {"99999999", "65536", "0", "-1", "", "1e3", "29500x", "9223372036854775808"}) {
    refused({{"MASTER_PORT", port}});
  }
  refused({{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  for (const char* size : {"2000000000", "-2", "", "two", "2.0"}) refused({{"WORLD_SIZE", size}});
  EXPECT_EQ(
      engine::launch_from(variables({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65535"}})).rendezvous.port,
      65535);
}

TEST(Heartbeat, KnowsWhatIsMissing) {
  ManualClock clock;
  bench::Heartbeat heartbeat("/dev/full", clock);
  EXPECT_EQ(heartbeat.lost(), "");
  heartbeat.beat("init", 0);
  EXPECT_EQ(heartbeat.lost(), "No space left on device");
  bench::Heartbeat unheard("/dev/null", clock);
  unheard.beat("init", 0);
  EXPECT_EQ(unheard.lost(), "");
}

TEST(Heartbeat, WritesALineABeat) {
  const auto file = std::filesystem::temp_directory_path() / ("krigtune_heartbeat_" + std::to_string(getpid()));
  ManualClock clock;
  bench::Heartbeat heartbeat(file, clock);
  heartbeat.beat("init", 0);
  clock.advance_s(1.5);
  heartbeat.beat("measure", 7);
  heartbeat.beat("measure", 8, {{"step_time_s", 0.5}});
  EXPECT_EQ(read_text(file),
            "{\"phase\":\"init\",\"step\":0,\"t_s\":0.0}\n"
            "{\"phase\":\"measure\",\"step\":7,\"t_s\":1.5}\n"
            "{\"phase\":\"measure\",\"step\":8,\"t_s\":1.5,\"step_time_s\":0.5}\n");
  EXPECT_EQ(heartbeat.last().step, 8);
  std::filesystem::remove(file);
  EXPECT_THROW(bench::Heartbeat("/nowhere/heartbeat", clock), EnvironmentError);
}

TEST(Watchdog, BarksOnceWhenNoBeatHasCome) {
  ManualClock clock;
  bench::Heartbeat heartbeat("", clock);
  heartbeat.beat("measure", 3);
  clock.advance_s(10.0);
  std::atomic<int> barks = 0;
  bench::Beat heard;
  const bench::Watchdog watchdog(heartbeat, 2.0, clock, [&](const bench::Beat& last) {
    heard = last;
    ++barks;
    barks.notify_all();
  });
  barks.wait(0);
  EXPECT_EQ(barks.load(), 1);
  EXPECT_EQ(heard.step, 3);
  ManualClock still;
  bench::Heartbeat alive("", still);
  const bench::Watchdog silent(alive, 2.0, still, [](const bench::Beat&) { FAIL(); });
}

}  // namespace krigtune::processes_test
