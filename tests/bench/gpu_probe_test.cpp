// krigtune-bench on machines with and without a driver, GPUs and the libraries of CUDA: a fake driver in place of
// NVIDIA's, and a fake program in place of krigtune-bench-cuda beside a copy of krigtune-bench.
#include "engine/gpu_probe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/ended.h"
#include "trial/temporary_directory.h"

namespace krigtune::gpu_probe_test {

constexpr const char* kLoaderFails =
    "echo \"$0: error while loading shared libraries: libnccl.so.2: cannot open shared object file: No such file or "
    "directory\" >&2; exit 127\n";
constexpr const char* kStarts = "[ \"$1\" = --version ] || echo \"trains on GPUs: $*\"\n";
constexpr const char* kMissing =
    "krigtune-bench-cuda cannot start: libnccl.so.2: cannot open shared object file: No such file or directory";

class Machine : public testing::Test {
 protected:
  Machine() { std::filesystem::copy_file(KRIGTUNE_BENCH, folder_ / "krigtune-bench"); }

  Ended run(const std::string& variables, const std::string& arguments) {
    return run_shell(variables + " '" + (folder_ / "krigtune-bench").string() + "' " + arguments, folder_.path());
  }
  Ended run_with_gpus(int gpus, const std::string& arguments) {
    return run("LD_LIBRARY_PATH='" + std::string(FAKE_DRIVER) + "' FAKE_GPUS=" + std::to_string(gpus), arguments);
  }
  void cuda_program(const std::string& text) { folder_.write_program("krigtune-bench-cuda", text); }
  std::string job(int ranks, bool emulates = false) {
    Json job = {{"workload", {{"model", {{"layers", 1}, {"hidden", 16}, {"heads", 1}, {"vocab", 32}, {"seq_len", 8}}}}},
                {"cluster", {{"gpus_per_node", ranks}}},
                {"memory", {{"limit_gib", 1}}}};
    if (emulates) job["cluster"]["emulate_network"] = {{"latency_us", 10}, {"bytes_per_s", 1e9}};
    return "--steps 1 --json --config '" + folder_.write("job.json", job.dump()).string() + "' ";
  }

  TemporaryDirectory folder_;
};

/// Properties that only a build with krigtune-bench-cuda can show.
class MachineWithCuda : public Machine {
 protected:
  void SetUp() override {
    if (!engine::no_cuda_reason().empty()) GTEST_SKIP() << engine::no_cuda_reason();
  }
};

std::int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void expect_no_gpu(const Ended& probed, const std::string& why) {
  EXPECT_EQ(probed.exit_code, 77);
  EXPECT_NE(probed.out.find(why), std::string::npos) << probed.out;
  EXPECT_EQ(lines_in(probed.out), 1) << probed.out;
  EXPECT_EQ(probed.err, "");
}

TEST_F(Machine, WithoutADriverHasNoGpu) {
  if (engine::probe_gpus().driver_version > 0) GTEST_SKIP() << "there is a driver";
  expect_no_gpu(run("", "--probe"), "there is no NVIDIA driver");
  EXPECT_EQ(run("", job(1)).err, "") << "nobody asked for GPUs";
}

TEST_F(Machine, WithADriverAndNoGpuSaysSo) {
  expect_no_gpu(run_with_gpus(0, "--probe"), "the NVIDIA driver finds no GPU (cuInit gives 100)");
  EXPECT_EQ(run_with_gpus(0, job(1)).err, "");
  EXPECT_EQ(run_with_gpus(0, job(1) + "--device cuda").exit_code, 77);
}

TEST_F(Machine, WithoutItsLibrariesCannotUseItsGpus) {
  cuda_program(kLoaderFails);
  expect_no_gpu(run_with_gpus(2, "--probe"), std::string("2 GPUs that cannot be used: ") + kMissing);
  const Ended probed = run_with_gpus(2, "--probe --json");
  EXPECT_EQ(probed.exit_code, 77);
  EXPECT_EQ(probed.document()["message"].get<std::string>().find(kMissing), 0U) << probed.out;

  const Ended by_itself = run_with_gpus(2, job(2));
  EXPECT_EQ(by_itself.exit_code, 0);
  EXPECT_EQ(by_itself.document()["device"], "cpu");
  EXPECT_EQ(by_itself.err.find(std::string("krigtune-bench: trains on CPU ranks, as ") + kMissing), 0U);
  EXPECT_EQ(lines_in(by_itself.err), 1) << by_itself.err;

  const Ended required = run_with_gpus(2, job(2) + "--device cuda");
  EXPECT_EQ(required.exit_code, 77);
  EXPECT_EQ(required.document()["reason"], "environment");
  EXPECT_NE(required.err.find(kMissing), std::string::npos);
  EXPECT_EQ(lines_in(required.err), 1) << required.err;
}

TEST_F(MachineWithCuda, SaysWhatElseKeepsTheProgramFromStarting) {
  expect_no_gpu(run_with_gpus(1, "--probe"), "cannot start: there is no '");
  cuda_program("kill -4 $$\n");
  expect_no_gpu(run_with_gpus(1, "--probe"), "cannot start: it was ended by signal 4");
  cuda_program("echo 'cuBLASLt was not found: no libcublasLt.so.13 on LD_LIBRARY_PATH' >&2; exit 3\n");
  expect_no_gpu(run_with_gpus(1, "--probe"), "cannot start: cuBLASLt was not found: no libcublasLt.so.13 on LD_");
  cuda_program("exit 3\n");
  expect_no_gpu(run_with_gpus(1, "--probe"), "cannot start: it ends with code 3");
}

// Also where krigtune-bench was built without CUDA: the program beside it brings the engine.
TEST_F(Machine, GivesJobsThatFitToItsGpus) {
  cuda_program(kStarts);
  EXPECT_EQ(run_with_gpus(2, "--probe").exit_code, 0);
  const auto on_gpus = [&](int gpus, const std::string& arguments) {
    return run_with_gpus(gpus, arguments).out.rfind("trains on GPUs: --steps 1 --json --config ", 0) == 0;
  };
  EXPECT_TRUE(on_gpus(2, job(2)));
  EXPECT_TRUE(on_gpus(1, job(1)));
  EXPECT_TRUE(on_gpus(1, job(4, true))) << "one GPU plays one rank of an imitated network";
  EXPECT_TRUE(on_gpus(1, job(2) + "--device cuda")) << "that program says what is missing";
  EXPECT_FALSE(on_gpus(2, job(2) + "--device cpu"));
  const Ended too_many = run_with_gpus(2, job(4));
  EXPECT_EQ(too_many.document()["device"], "cpu");
  EXPECT_EQ(too_many.err,
            "krigtune-bench: trains on CPU ranks, as the cluster has 4 GPUs per node, and this machine has 2\n");
}

TEST_F(Machine, WhoseBuildHasNoCudaSaysSo) {
  if (engine::no_cuda_reason().empty()) GTEST_SKIP() << "this build has krigtune-bench-cuda";
  expect_no_gpu(run_with_gpus(1, "--probe"), "1 GPU that cannot be used: this build has no CUDA engine");
}

}  // namespace krigtune::gpu_probe_test
