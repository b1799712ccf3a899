// Slots of one machine, for described machines instead of real ones.
#include "executor/local.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "core/files.h"
#include "executor/machine_parts.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::local_test {
namespace {

using executor::MachineParts;

// Two NUMA nodes with eight processors and four GPUs each.
MachineParts eight_gpus() {
  MachineParts machine;
  machine.cores = {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
  for (int gpu = 0; gpu < 8; ++gpu) machine.gpus.push_back({gpu, gpu / 4});
  return machine;
}

std::unique_ptr<trial::Executor> slots_of(int slots, MachineParts machine, const std::string& gpus = "auto") {
  executor::LocalSpec spec;
  spec.slots = slots;
  spec.gpus_per_trial = gpus;
  return executor::make_slots(spec, std::move(machine), "run");
}

trial::TrialNeeds of_gpus(int gpus) { return {.ranks = gpus, .gpus_per_node = gpus}; }

trial::TrialTask task(int number, int gpus) { return {number, "trial", of_gpus(gpus)}; }

const char* nothing_inherited(const char* /*name*/) { return nullptr; }

std::string value_of(const std::vector<std::pair<std::string, std::string>>& variables, const std::string& name) {
  for (const auto& [known, value] : variables) {
    if (known == name) return value;
  }
  return "not set";
}

}  // namespace

TEST(LocalSlots, NeverShareAGpuASlotOrAPort) {
  const auto executor = slots_of(8, eight_gpus());
  std::vector<std::unique_ptr<trial::Place>> places;
  std::set<int> gpus, slots, ports;
  for (const int wanted : {1, 2, 4, 1}) {
    ASSERT_TRUE(executor->has_room(of_gpus(wanted)));
    places.push_back(executor->place(task(0, wanted)));
    const trial::PlaceFacts facts = places.back()->facts();
    EXPECT_EQ(static_cast<int>(facts.gpus.size()), wanted);
    for (const int gpu : facts.gpus) EXPECT_TRUE(gpus.insert(gpu).second) << gpu;
    EXPECT_TRUE(slots.insert(facts.slot).second);
    EXPECT_TRUE(ports.insert(facts.port).second);
  }
  EXPECT_EQ(gpus.size(), 8U);
  EXPECT_FALSE(executor->has_room(of_gpus(1)));
  places.erase(places.begin() + 1);
  EXPECT_TRUE(executor->has_room(of_gpus(2)));
  EXPECT_FALSE(executor->has_room(of_gpus(3)));
  EXPECT_EQ(executor->place(task(5, 2))->facts().slot, 1);  // the smallest free one
}

TEST(LocalSlots, KeepATrialOnOneNumaNodeWhereANodeHasEnough) {
  const auto executor = slots_of(8, eight_gpus());
  const auto one = executor->place(task(0, 1));  // leaves three on its node
  const auto four = executor->place(task(1, 4));
  EXPECT_EQ(four->facts().gpus, (std::vector<int>{4, 5, 6, 7}));
  const auto two = executor->place(task(2, 2));
  EXPECT_EQ(two->facts().gpus, (std::vector<int>{1, 2}));
  EXPECT_EQ(two->where(), "slot 2, GPUs 1,2");
  EXPECT_EQ(one->where(), "slot 0, GPU 0");
}

TEST(LocalSlots, AreNoMoreThanSaid) {
  const auto executor = slots_of(2, eight_gpus());
  EXPECT_EQ(executor->capacity(), 2);
  EXPECT_EQ(executor->usual_gpus(), 4);
  const auto a = executor->place(task(0, 1));
  const auto b = executor->place(task(1, 1));
  EXPECT_FALSE(executor->has_room(of_gpus(1)));
}

TEST(LocalSlots, RefuseWhatTheMachineNeverHas) {
  const auto executor = slots_of(2, eight_gpus());
  EXPECT_NE(user_error_of([&] { executor->has_room(of_gpus(16)); }).find("needs 16 GPUs, and this machine has 8"),
            std::string::npos);
  MachineParts cpus;
  cpus.cores = {{0, 1}};
  EXPECT_NE(user_error_of([&] { slots_of(2, cpus, "2"); }).find("no visible GPU"), std::string::npos);
  EXPECT_NE(user_error_of([&] { slots_of(9, eight_gpus()); }).find("9 slots share 8 GPUs"), std::string::npos);
}

TEST(LocalSlots, DivideTheCoresOfAMachineWithoutGpus) {
  MachineParts machine;
  machine.cores = {{0, 4, 1, 5}, {2, 6, 3, 7}};
  EXPECT_EQ(executor::divided_cores(machine, 2), machine.cores);
  EXPECT_EQ(executor::divided_cores(machine, 4), (std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(executor::divided_cores(machine, 3), (std::vector<std::vector<int>>{{0, 4}, {1, 5, 2}, {6, 3, 7}}));
  machine.cores = {{0, 1}};
  EXPECT_EQ(executor::divided_cores(machine, 3), (std::vector<std::vector<int>>{{0}, {0}, {1}}));
}

TEST(LocalSlots, GiveEachGpuTheCoresBesideIt) {
  MachineParts machine = eight_gpus();
  EXPECT_EQ(executor::cores_of_gpus(machine)[5], (std::vector<int>{10, 11}));
  machine.gpus[0].numa_node = -1;  // unknown for one GPU: all cores are divided
  EXPECT_EQ(executor::cores_of_gpus(machine)[0], (std::vector<int>{0, 1}));
  EXPECT_EQ(executor::cores_of_gpus(machine)[7], (std::vector<int>{14, 15}));
}

TEST(LocalSlots, ReadListsOfProcessors) {
  EXPECT_EQ(executor::cpu_list("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(executor::cpu_list(""), std::vector<int>());
  EXPECT_EQ(executor::cpu_list("x"), std::vector<int>());
}

// Two lines as nvidia-smi of driver 535 prints them, and a third one for a GPU in a large domain.
constexpr const char* kListing =
    "0, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 00000000:3B:00.0\n"
    "1, GPU-1c0ffee0-0000-0000-0000-000000000001, 00000000:AF:00.0\n"
    "2, GPU-1c0ffee0-0000-0000-0000-000000000002, 00000001:AF:00.0\n";

TEST(LocalSlots, KnowTheGpusThatTheTunerMaySee) {
  const auto node_of = [](const std::string& device) {
    return device == "0000:3b:00.0" ? 0 : device == "0000:af:00.0" ? 1 : device == "0001:af:00.0" ? 2 : -7;
  };
  const auto numbers = [&](const std::optional<std::string>& visible, const char* listing = kListing) {
    std::vector<int> found;
    for (const executor::GpuPart& gpu : executor::gpus_in(listing, visible, node_of)) found.push_back(gpu.number);
    return found;
  };
  EXPECT_EQ(numbers(std::nullopt), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(executor::gpus_in(kListing, std::nullopt, node_of)[2].numa_node, 2);
  EXPECT_EQ(numbers("2,0"), (std::vector<int>{2, 0}));
  EXPECT_EQ(numbers("GPU-8932"), (std::vector<int>{0}));
  EXPECT_EQ(numbers("1,-1,2"), (std::vector<int>{1}));  // CUDA stops there
  EXPECT_EQ(numbers(""), std::vector<int>());
  EXPECT_EQ(numbers("3,5", ""), (std::vector<int>{3, 5}));  // without nvidia-smi
  EXPECT_EQ(numbers(std::nullopt, "NVIDIA-SMI has failed\n"), std::vector<int>());
}

TEST(LocalSlots, TellATrialItsShareUnlessTheUserSaysOtherwise) {
  executor::SlotShare share{{.slot = 1, .gpus = {2, 3}, .port = 29501}, {4, 5, 6, 7, 8, 9}, "/run/slots/1", true};
  const auto plain = executor::slot_environment(share, {}, nothing_inherited);
  EXPECT_EQ(value_of(plain, "CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(value_of(plain, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(value_of(plain, "MASTER_PORT"), "29501");
  EXPECT_EQ(value_of(plain, "OMP_NUM_THREADS"), "3");
  EXPECT_EQ(value_of(plain, "TRITON_CACHE_DIR"), "/run/slots/1/triton");
  EXPECT_EQ(value_of(plain, "TORCHINDUCTOR_CACHE_DIR"), "/run/slots/1/inductor");
  EXPECT_EQ(value_of(plain, "TORCH_EXTENSIONS_DIR"), "/run/slots/1/extensions");
  const auto asked = executor::slot_environment(
      share, {{"OMP_NUM_THREADS", "1"}, {"MASTER_PORT", "5"}},
      [](const char* name) { return std::string(name) == "TRITON_CACHE_DIR" ? "/mine" : nullptr; });
  for (const char* name : {"OMP_NUM_THREADS", "MASTER_PORT", "TRITON_CACHE_DIR"})
    EXPECT_EQ(value_of(asked, name), "not set") << name;
  share.has_gpus = false;
  share.facts.gpus.clear();
  const auto of_cores = executor::slot_environment(share, {}, nothing_inherited);
  EXPECT_EQ(value_of(of_cores, "CUDA_VISIBLE_DEVICES"), "not set");
  EXPECT_EQ(value_of(of_cores, "OMP_NUM_THREADS"), "6");
}

// The program prints what it may use. This thread may still use what it could before.
TEST(LocalSlots, BindThePrograms) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(first), &before)) ++first;
  MachineParts machine;
  machine.cores = {{first}};
  const TemporaryDirectory directory;
  executor::LocalSpec spec;
  spec.slots = 2;
  const auto executor = executor::make_slots(spec, machine, directory.path());
  trial::ProcessSpec program;
  program.argv = {"/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status; echo $MASTER_PORT $KEEP"};
  program.environment = {{"KEEP", "kept"}};
  program.stdout_file = directory / "out";
  program.stderr_file = directory / "err";
  const auto place = executor->place(task(0, 0));
  const trial::ProcessResult result = place->run(program, SystemClock());
  EXPECT_EQ(result.exit_code, 0) << read_text(directory / "err");
  EXPECT_EQ(read_text(directory / "out"),
            "Cpus_allowed_list:\t" + std::to_string(first) + "\n" + std::to_string(place->facts().port) + " kept\n");
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace krigtune::local_test
