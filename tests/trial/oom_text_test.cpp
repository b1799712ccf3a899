#include <gtest/gtest.h>

#include <csignal>

#include "trial/failure_text.h"

namespace krigtune::oom_text_test {

bool runs_out(const std::string& text) { return trial::find_memory_complaint(text, {}).has_value(); }

// The programs printed these lines: issues of PyTorch, NCCL, JAX, nextflow, Megatron-LM and DeepSpeed on GitHub.
TEST(OomText, TheWordsOfTheUsualProgramsAreKnown) {
  for (const char* line :
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 79.15 GiB total capacity)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 79 GiB",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB.",
        "cudaErrorMemoryAllocation: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "enqueue.cc:1085 NCCL WARN Cuda failure 'out of memory'",
        "NCCL WARN Cuda failure 2 'out of memory'",
        "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 2 'out of memory'",
        "RuntimeError: NCCL error: unhandled cuda error, out of memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you "
        "tried "
        "to allocate 4096 bytes. Error code 12 (Cannot allocate memory)",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "MemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)",
        "OSError: [Errno 12] Cannot allocate memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM "
        "Killed.",
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 3495064.0 cgroup.",
        "srun: error: n1: task 0: Out Of Memory",
        "Out of memory: Killed process 4711 (python3) total-vm:1024kB, anon-rss:512kB",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 74066 bytes.",
        "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 2; 60.97 GiB total capacity)",
        "RuntimeError: MUSA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA driver error: out of memory",
        "rtFftsPlusTaskLaunch execute failed, reason=[driver error:out of memory][FUNC:FuncErrorReason]"}) {
    EXPECT_TRUE(runs_out(std::string("step 1\n") + line + "\nstep 2")) << line;
    EXPECT_EQ(trial::find_memory_complaint(std::string("step 1\n") + line, {})->line, line);
  }
}

// Nobody says who sent it, so this is not yet lack of memory.
TEST(OomText, ASignalIsReadFromLaunchersReports) {
  for (const char* line :
       {"[launch.py:319:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
        "['python', 'train.py'] exits with return code = 247",
        "E0325 20:57:27.620000 2606 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
        "local_rank: 5 (pid: 2630) of binary: /root/miniconda3/bin/python",
        "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).", "=   EXIT CODE: 9",
        "subprocess.CalledProcessError: Command '['python3', 'train.py']' died with <Signals.SIGKILL: 9>.",
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."}) {
    EXPECT_TRUE(trial::tells_of_signal(1, std::string("step 1\n") + line, SIGKILL)) << line;
    EXPECT_FALSE(trial::tells_of_signal(1, line, SIGBUS)) << line;
    EXPECT_FALSE(runs_out(line)) << line;
  }
  for (const int code : {137, 247}) EXPECT_TRUE(trial::tells_of_signal(code, "", SIGKILL));
  for (const int code : {135, 249}) EXPECT_TRUE(trial::tells_of_signal(code, "", SIGBUS));
  for (const char* line : {"=   EXIT CODE: 99", "exits with return code = -95", "<Signals.SIGKILL: 9>.", "Killed"})
    EXPECT_FALSE(trial::tells_of_signal(1, line, SIGKILL)) << line;
}

TEST(OomText, OtherTroubleIsNot) {
  for (const char* line :
       {"", "error", "ERROR: wandb could not connect", "a warning that will raise an error in version 4.46",
        "memory: 12 GiB of 80 GiB", "NCCL WARN Cuda failure 'invalid device context'", "unhandled cuda error",
        "RESOURCE_EXHAUSTED: too many requests", "Killed", "Segmentation fault (core dumped)",
        "failed (exitcode: 1) local_rank: 0", "exits with return code = 1", "MemAllocated=12GB, MaxMemAllocated=13GB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."}) {
    EXPECT_FALSE(runs_out(line)) << line;
  }
}

TEST(OomText, TheRequestIsReadWithItsUnit) {
  EXPECT_EQ(trial::requested_in("CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0"), Bytes{2684354560});
  EXPECT_EQ(trial::requested_in("Tried to allocate 20.00 MiB."), Bytes{20 << 20});
  EXPECT_EQ(trial::requested_in("Tried to allocate 512 bytes"), Bytes{512});
  EXPECT_EQ(trial::requested_in("can't allocate memory: you tried to allocate 4096 bytes. Error"), Bytes{4096});
  EXPECT_EQ(trial::requested_in("Out of memory allocating 20029400304 bytes."), Bytes{20029400304});
  for (const char* line : {"Tried to allocate more than 1EB memory", "tried to allocate -5 bytes", "allocate",
                           "tried to allocate 5 apples", "tried to allocate 1e300 bytes", "allocate 99999999999 GiB",
                           "Tried to allocate nan GiB", "Tried to allocate inf GiB"}) {
    EXPECT_FALSE(trial::requested_in(line).has_value()) << line;
  }
}

TEST(OomText, PatternsOfTheUserAreAdded) {
  const std::vector<Pattern> patterns = {Pattern("arena [0-9]+ exhausted|^no room$")};
  EXPECT_TRUE(trial::find_memory_complaint("x\narena 12 exhausted\n", patterns).has_value());
  EXPECT_TRUE(trial::find_memory_complaint("x\nno room", patterns).has_value());
  EXPECT_FALSE(trial::find_memory_complaint("x\nthere is no room here", patterns).has_value());
}

TEST(OomText, ALineWithoutEndIsNoDanger) {
  const std::vector<Pattern> patterns = {Pattern("(x|xx)+y$"), Pattern("(.*) (.*)never")};
  EXPECT_FALSE(trial::find_memory_complaint(std::string(1 << 20, ' '), patterns).has_value());
  EXPECT_FALSE(trial::find_memory_complaint(std::string(1 << 20, '\0'), patterns).has_value());
  EXPECT_FALSE(trial::find_memory_complaint(std::string(1 << 20, 'x'), patterns).has_value());
  EXPECT_TRUE(runs_out("MemoryError " + std::string(1 << 20, 'x')));
}

}  // namespace krigtune::oom_text_test
