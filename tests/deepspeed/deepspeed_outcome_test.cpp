#include <gtest/gtest.h>

#include <map>

#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/ds_outcome.h"
#include "deepspeed/job/ds_trial.h"
#include "trial/expect_failed.h"

namespace krigtune::deepspeed_outcome_test {

const std::filesystem::path kRecorded = KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs";

// The files of a real job in the form in which the runner would find them. Recorded exit codes are Python's (-6: signal
// 6); that of a job that the time limit ended is null. Each step in the csv files also has a line of times in stdout.
deepspeed::DsEnd recorded(const std::string& name, const Json& code) {
  const std::string text = read_text(kRecorded / (name + ".txt"));
  const std::string out = "==== stdout\n", err = "==== stderr\n";
  const std::size_t middle = text.find(err);
  deepspeed::DsEnd end;
  end.standard_output = text.substr(out.size(), middle - out.size());
  end.standard_error = text.substr(middle + err.size());
  end.hung = code.is_null();
  end.wall_s = 25.0;
  end.exit_code = code.is_null() ? 143 : code.get<int>() < 0 ? 128 - code.get<int>() : code.get<int>();
  end.steps = static_cast<std::int64_t>(deepspeed::step_times_in(end.standard_output).size());
  end.steps_due = 10;
  end.oom_kills = 0;
  return end;
}

constexpr const char* kRefused = "DeepSpeed refuses the configuration: ";
constexpr const char* kNotStarted = "the launcher did not start the job: ";
constexpr const char* kNoMemory =
    "out of memory on the host: RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
    "allocate memory: you tried to allocate 4194304 bytes. Error code 12 (Cannot allocate memory)";
constexpr const char* kKilled =
    "a rank was killed (SIGKILL) after 5 of 10 steps, neither by krigtune nor by the kernel's OOM killer";

const std::map<std::string, std::string>& sentences() {
  static const std::string kRefusal = kRefused, kLaunch = kNotStarted;
  static const std::map<std::string, std::string> kSentences = {
      {"success", "all 10 steps were timed"},
      {"success_torchrun", "all 10 steps were timed"},
      {"harmless_error_line", "all 10 steps were timed"},
      {"aborted_at_exit", "all 10 steps were timed; what came after them (exit code 1) does not count"},
      {"too_short",
       "the script ended by itself after 4 of 10 steps: let it train longer, or measure fewer (warmup_steps, "
       "measure_steps)"},
      {"out_of_memory", kNoMemory},
      {"out_of_memory_torchrun", kNoMemory},
      {"out_of_memory_at_once",
       "out of memory on the host: terminate called after throwing an instance of 'std::bad_alloc'"},
      {"invalid_batch", kRefusal + "AssertionError: Check batch related parameters. train_batch_size is not equal to "
                                   "micro_batch_per_gpu * gradient_acc_step * world_size 48 != 2 * 8 * 2"},
      {"invalid_stage", kRefusal + "stage: Input should be 0, 1, 2, 3 or 3 (it is 5)"},
      {"invalid_unknown_key", kRefusal + "reduce_bucket: Extra inputs are not permitted (it is 1000)"},
      {"invalid_type", kRefusal +
                           "reduce_bucket_size: Input should be a valid integer, unable to parse string as an integer "
                           "(it is 'large')"},
      {"invalid_fractional_bucket", kRefusal +
                                        "stage3_prefetch_bucket_size: Input should be a valid integer, got a number "
                                        "with a fractional part (it is 14745.6)"},
      {"invalid_stage3_one_bit", kRefusal + "AssertionError: OneBitAdam is not a supported DeepSpeed Optimizer"},
      {"invalid_json", kRefusal +
                           "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 38 "
                           "(char 37)"},
      {"invalid_hf_flags", kRefusal + "ValueError: Please correct the following DeepSpeed config values that mismatch "
                                      "TrainingArguments values: ds gradient_accumulation_steps=4 vs hf "
                                      "gradient_accumulation_steps=8"},
      {"metric_folder_missing",
       kRefusal + "FileNotFoundError: [Errno 2] No such file or directory: '/trial/missing/metrics.json'"},
      {"killed", kKilled},
      {"killed_torchrun", kKilled},
      {"hang", "ended after 25.0 s, because its output no longer grew (5 of 10 steps)"},
      {"launcher_bad_hostfile",
       kLaunch + "ValueError: Hostfile contains a bad entry: worker-0 slots=two, unable to proceed with launching"},
      {"launcher_no_such_host", kLaunch + "ValueError: Hostname 'worker-9' not found in hostfile"},
      {"launcher_port_in_use",
       kLaunch + "port 34299 is in use: give another one (--master_port), or end the process that uses it"},
      {"launcher_port_in_use_torchrun",
       kLaunch + "port 49383 is in use: give another one (--master_port), or end the process that uses it"},
      {"invalid_negative_bucket", kRefusal + "reduce_bucket_size: Input should be greater than 0 (it is -5)"},
      {"invalid_opened_itself",
       "the script opens its configuration itself and cannot read base64: let the runner's \"config_as\" be \"path\""},
      {"another_configuration",
       "the command ended well, but no step was timed: the script trains without DeepSpeed or gives it another "
       "configuration, has a pipeline engine (which is not timed), or its first rank does not see the trial's "
       "directory"},
      {"reported_cublas",
       "out of memory on the device: RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
       "`cublasCreate(handle)`"},
      {"reported_host_out_of_memory",
       "out of memory on the host: memory allocation of memory allocation of 20971522097152 bytes failed"},
      {"reported_slurm_oom_kill",
       "out of memory on the host: slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step "
       "tasks have been OOM Killed."},
      {"reported_srun", kLaunch +
                            "srun: error: Unable to create step for job 17627941: Requested node configuration is "
                            "not available"},
      {"reported_nccl",
       "the ranks did not find one another: DistBackendError: NCCL error in: "
       "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO for "
       "details), NCCL version 2.19.3"},
      {"reported_killed",
       "a rank was killed (SIGKILL) after 0 of 10 steps, neither by krigtune nor by the kernel's OOM killer"},
      {"reported_ascend_out_of_memory",
       "out of memory on the device: rtFftsPlusTaskLaunch execute failed, reason=[driver error:out of "
       "memory][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]"},
      {"reported_driver_out_of_memory", "out of memory on the device: RuntimeError: CUDA driver error: out of memory"},
      {"reported_nccl_out_of_memory", "out of memory on the device: DistBackendError: Cuda failure 2 'out of memory'"},
      {"reported_pinned_out_of_memory",
       "out of memory on the host, which was to be pinned: RuntimeError: CUDA error: out of memory"},
      {"reported_rich_out_of_memory",
       "out of memory on the device: OutOfMemoryError: CUDA out of memory. Tried to allocate 250.00 MiB (GPU 0; 39.41 "
       "GiB total capacity; 37.60 GiB already allocated; 148.56 MiB free; 37.72 GiB reserved in total by PyTorch) If "
       "reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."},
      {"reported_rich_batch", kRefusal +
                                  "AssertionError: Check batch related parameters. train_batch_size is not equal to "
                                  "micro_batch_per_gpu * gradient_acc_step * world_size 64 != 4 * 8 * 1"},
      {"reported_killed_accelerate",
       "a rank was killed (SIGKILL) after 0 of 10 steps, neither by krigtune nor by the kernel's OOM killer"},
      {"reported_shared_memory",
       "shared memory (/dev/shm) is too small, in a container raise it (docker run --shm-size 16g): ERROR: Unexpected "
       "bus error encountered in worker. This might be caused by insufficient shared memory (shm)."},
      {"reported_bus_error",
       "a rank ended by SIGBUS (bus error), as when shared memory (/dev/shm) is full; in a container raise it (docker "
       "run --shm-size 16g)"},
      {"reported_disk_full", "a disk is full: OSError: [Errno 28] No space left on device"},
      {"reported_watchdog",
       "a collective did not end in time (0 of 10 steps): [E1107 03:11:12.101 ProcessGroupNCCL.cpp:616] [Rank 1] "
       "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=211, OpType=_ALLGATHER_BASE, NumelIn=16777216, "
       "NumelOut=134217728, Timeout(ms)=1800000) ran for 1800043 milliseconds before timing out."},
      {"reported_cuda_mismatch",
       "it ended (exit code 1): CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.4 does not "
       "match the version torch was compiled with 11.8, unable to compile cuda/cpp extensions without a matching cuda "
       "version."},
      {"launcher_no_script", kLaunch +
                                 "/venv/bin/python: can't open file '/job/train_missing.py': [Errno 2] No such file or "
                                 "directory"},
  };
  return kSentences;
}

TEST(DeepSpeedOutcome, IsThatOfTheRecordedJobs) {
  const Json cases = load_json(kRecorded / "cases.json");
  EXPECT_GE(cases.size(), 49U);
  for (const auto& [name, job] : cases.items()) {
    const deepspeed::DsVerdict verdict = deepspeed::judge(recorded(name, job.at("rc")));
    EXPECT_EQ(deepspeed::to_string(verdict.what), job.at("class").get<std::string>()) << name;
    const auto sentence = sentences().find(name);
    if (sentence != sentences().end()) {
      EXPECT_EQ(verdict.sentence, sentence->second) << name;
    }
    EXPECT_EQ(verdict.sentence.find('\n'), std::string::npos) << name;
    const bool is_cut = name == "invalid_own_optimizer_offload" || name == "reported_device_out_of_memory" ||
                        name == "reported_npu_out_of_memory";
    EXPECT_EQ(sentence == sentences().end(), is_cut) << name;  // tested below
  }
}

TEST(DeepSpeedOutcome, ALongSentenceIsCut) {
  const deepspeed::DsVerdict verdict = deepspeed::judge(recorded("invalid_own_optimizer_offload", 1));
  const std::string begin =
      "DeepSpeed refuses the configuration: ZeRORuntimeException: You are using ZeRO-Offload with a client provided "
      "optimizer";
  EXPECT_EQ(verdict.sentence.substr(0, begin.size()), begin);
  EXPECT_LE(verdict.sentence.size(), 400U);
  const std::string device = deepspeed::judge(recorded("reported_device_out_of_memory", 1)).sentence;
  EXPECT_EQ(device.rfind("out of memory on the device: OutOfMemoryError: CUDA out of memory. Tried to allocate 786.00 "
                         "MiB (GPU 0; 39.56 GiB total capacity;",
                         0),
            0U)
      << device;
  EXPECT_LE(device.size(), 400U);
}

TEST(DeepSpeedOutcome, TellsWhatWasAskedFor) {
  EXPECT_EQ(deepspeed::judge(recorded("out_of_memory", 1)).requested, Bytes{4194304});
  EXPECT_FALSE(deepspeed::judge(recorded("out_of_memory_at_once", -6)).requested);
  EXPECT_EQ(deepspeed::judge(recorded("reported_device_out_of_memory", 1)).requested, Bytes{786 << 20});
  EXPECT_FALSE(deepspeed::judge(recorded("reported_host_out_of_memory", 134))
                   .requested);  // two ranks wrote into each other's line
}

// Here somebody else ended the same job.
TEST(DeepSpeedOutcome, AKillIsOutOfMemoryOnlyWhereTheOomKillerHasARecord) {
  for (const auto& [name, code] : std::map<std::string, int>{{"killed", 247}, {"killed_torchrun", 1}}) {
    deepspeed::DsEnd end = recorded(name, code);
    end.oom_kills = 1;
    EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory) << name;
    EXPECT_EQ(deepspeed::judge(end).sentence, "out of memory on the host: the kernel's OOM killer ended a rank")
        << name;
    end.oom_kills = std::nullopt;
    EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kKilled) << name;
    EXPECT_NE(deepspeed::judge(end).sentence.find("as far as is known"), std::string::npos) << name;
    end.oom_kills = 0;
    end.standard_error += "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0\n";
    EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory) << name;
  }
  deepspeed::DsEnd shell;
  shell.exit_code = 137;
  EXPECT_EQ(deepspeed::judge(shell).what, deepspeed::DsClass::kKilled);
  shell.oom_kills = 1;
  EXPECT_EQ(deepspeed::judge(shell).what, deepspeed::DsClass::kOutOfMemory);
}

// Running out of memory while ranks connect is not a network problem, and an NCCL error after a step is a crash.
TEST(DeepSpeedOutcome, NcclsComplaintIsLauncherTroubleOnlyWhileTheRanksConnect) {
  deepspeed::DsEnd end = recorded("reported_nccl", 1);
  expect_failed(deepspeed::outcome_of(deepspeed::judge(end), end), trial::FailureReason::kEnvironment);
  end.steps = 1;
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kCrash);
  end.steps = 0;
  end.standard_error =
      "Traceback (most recent call last):\nRuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:1333, unhandled cuda "
      "error, NCCL version 2.18.1 Cuda failure 'out of memory'\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory);
}

// The rank that has no memory left says so in a line of its own, and the others cannot reach it.
TEST(DeepSpeedOutcome, LackOfMemoryAnywhereCountsMoreThanTheNetworksComplaint) {
  deepspeed::DsEnd end = recorded("reported_nccl", 1);
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kLauncher);
  end.standard_output += "n1:471:512 [3] include/alloc.h:99 NCCL WARN Cuda failure 2 'out of memory'\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory);
  end = recorded("launcher_port_in_use", 1);
  end.standard_error += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory);
}

// The others wait for a rank that raised something, until the watchdog ends them.
TEST(DeepSpeedOutcome, AWatchdogsTimeoutIsAHangUnlessARankRaisedSomethingElse) {
  deepspeed::DsEnd end = recorded("reported_watchdog", 1);
  end.steps = 3;
  expect_failed(deepspeed::outcome_of(deepspeed::judge(end), end), trial::FailureReason::kHang);
  end.standard_error =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 3, in <module>\n"
      "[rank0]: IndexError: list index out of range\n" +
      end.standard_error;
  EXPECT_EQ(deepspeed::judge(end).sentence,
            "it ended after 3 of 10 steps (exit code 1): IndexError: list index out of range");
  end = recorded("reported_nccl", 1);
  end.standard_error += recorded("reported_watchdog", 1).standard_error;
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kHang);
}

TEST(DeepSpeedOutcome, AFullDiskIsAShortageOnlyIfNoRankRaisedSomethingElse) {
  deepspeed::DsEnd end = recorded("reported_disk_full", 1);
  expect_failed(deepspeed::outcome_of(deepspeed::judge(end), end), trial::FailureReason::kEnvironment);
  end.standard_error =
      "wandb: WARNING could not write: No space left on device\nTraceback (most recent call last):\n"
      "  File \"train.py\", line 3, in <module>\nIndexError: list index out of range\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kCrash);
}

// Libraries report it in their own words if the host's memory is far too small (experiments/deepspeed_cpu).
TEST(DeepSpeedOutcome, OfLibrariesThatGetNoHostMemoryIsOutOfMemory) {
  for (const char* line : {"OpenBLAS error: Memory allocation still failed after 10 retries, giving up.",
                           "OSError: [Errno 12] Cannot allocate memory", "MemoryError",
                           "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 2.00 GiB for an array"}) {
    deepspeed::DsEnd end;
    end.exit_code = 1;
    end.standard_error = std::string(line) + "\n";
    EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory) << line;
    EXPECT_EQ(deepspeed::judge(end).sentence, std::string("out of memory on the host: ") + line);
  }
}

TEST(DeepSpeedOutcome, MemoryOnTheDeviceIsToldFromTheHosts) {
  deepspeed::DsEnd end;
  end.exit_code = 1;
  end.standard_error =
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"train.py\", line 3, in <module>\n"
      "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has\n";
  const deepspeed::DsVerdict verdict = deepspeed::judge(end);
  EXPECT_EQ(verdict.sentence,
            "out of memory on the device: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has");
  EXPECT_EQ(verdict.requested, from_gib(2.5));
  EXPECT_TRUE(std::holds_alternative<trial::OutOfMemory>(deepspeed::outcome_of(verdict, end)));
}

// One rank runs out of memory, and the others wait for it until krigtune ends them.
TEST(DeepSpeedOutcome, AHangForWantOfMemoryIsOutOfMemory) {
  deepspeed::DsEnd end = recorded("hang", nullptr);
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kHang);
  end.standard_error = "RuntimeError: CUDA error: out of memory\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory);
}

TEST(DeepSpeedOutcome, MemoryThatRunsOutAfterTheLastTimedStepIsNoSuccess) {
  deepspeed::DsEnd end = recorded("out_of_memory", 1);
  end.steps = end.steps_due;
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kOutOfMemory);
  end.standard_error = "a note on CUDA out of memory, by somebody who says much\n";  // not an exception
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kSuccess);
}

// The words of a refusal are a crash if training has begun or if they come from other code than DeepSpeed's.
TEST(DeepSpeedOutcome, AnAssertionOfTheScriptOrAfterAStepIsACrash) {
  deepspeed::DsEnd end = recorded("invalid_stage3_one_bit", 1);
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kInvalid);
  end.steps = 1;
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kCrash);
  end.steps = 0;
  end.standard_error =
      "Traceback (most recent call last):\n  File \"/site-packages/deepspeed/runtime/engine.py\", line 9, in forward\n"
      "  File \"/home/me/model.py\", line 3, in forward\nAssertionError: the batch is odd\n";
  EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kCrash);
  EXPECT_EQ(deepspeed::judge(end).sentence, "it ended (exit code 1): AssertionError: the batch is odd");
}

TEST(DeepSpeedOutcome, AGoodEndWithoutAStepNamesThePossibleReasons) {
  const deepspeed::DsVerdict verdict = deepspeed::judge(deepspeed::DsEnd{});
  EXPECT_EQ(verdict.what, deepspeed::DsClass::kTooShort);
  EXPECT_NE(verdict.sentence.find("pipeline engine"), std::string::npos);
}

TEST(DeepSpeedOutcome, OfShellsSshAndOptionsIsLauncherTrouble) {
  for (const auto& [line, code] :
       std::map<std::string, int>{{"sh: 1: deepspeed: not found", 127},
                                  {"ssh: connect to host n2 port 22: Connection refused", 1},
                                  {"train.py: error: unrecognized arguments: --per_device_train_batch_size 4", 2},
                                  {"There are not enough slots available in the system to satisfy the 8 slots", 1},
                                  {"srun: error: Unable to allocate resources: Invalid partition name specified", 1}}) {
    deepspeed::DsEnd end;
    end.exit_code = code;
    end.standard_error = line + "\n";
    EXPECT_EQ(deepspeed::judge(end).what, deepspeed::DsClass::kLauncher) << line;
    expect_failed(deepspeed::outcome_of(deepspeed::judge(end), end), trial::FailureReason::kEnvironment);
  }
}

// The words of argparse, click, transformers and absl for a flag that the user did not type.
TEST(DeepSpeedOutcome, AFlagThatKrigtuneAddedIsNotBlamedOnTheScript) {
  for (const char* line :
       {"train.py: error: unrecognized arguments: --epochs 2 --gradient_accumulation_steps 2",
        "Error: No such option: --gradient_accumulation_steps (Possible options: --gradient-checkpointing)",
        "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--gradient-accumulation-steps', "
        "'2']",
        "FATAL Flags parsing error: Unknown command line flag 'gradient_accumulation_steps'"}) {
    deepspeed::DsEnd end;
    end.exit_code = 2;
    end.standard_error = std::string("Usage: trainer.py [OPTIONS]\n") + line + "\n";
    end.users_command = {"deepspeed", "train.py", "--deepspeed", "ds.json", "--epochs", "2"};
    end.argv = end.users_command;
    EXPECT_EQ(deepspeed::judge(end).sentence.find("which krigtune added"), std::string::npos) << line;
    end.argv.insert(end.argv.end(), {"--gradient_accumulation_steps", "2"});
    const deepspeed::DsVerdict verdict = deepspeed::judge(end);
    EXPECT_EQ(verdict.what, deepspeed::DsClass::kLauncher) << line;
    EXPECT_EQ(verdict.sentence.rfind("the script does not take --gradient_accumulation_steps, which krigtune added", 0),
              0U)
        << verdict.sentence;
  }
}

TEST(DeepSpeedOutcome, OfEachClassHasItsReason) {
  expect_failed(deepspeed::outcome_of(deepspeed::judge(recorded("hang", nullptr)), recorded("hang", nullptr)),
                trial::FailureReason::kHang);
  expect_failed(deepspeed::outcome_of(deepspeed::judge(recorded("too_short", 0)), recorded("too_short", 0)),
                trial::FailureReason::kBadResult);
  expect_failed(deepspeed::outcome_of(deepspeed::judge(recorded("killed", 247)), recorded("killed", 247)),
                trial::FailureReason::kCrash);
  deepspeed::DsEnd late = recorded("hang", nullptr);
  late.hung = false;
  late.timed_out = true;
  EXPECT_EQ(deepspeed::judge(late).sentence, "ended at its time limit, after 25.0 s (5 of 10 steps)");
  expect_failed(deepspeed::outcome_of(deepspeed::judge(late), late), trial::FailureReason::kTimeout);
  const deepspeed::DsEnd invalid = recorded("invalid_stage", 1);
  const trial::Failed failed =
      expect_failed(deepspeed::outcome_of(deepspeed::judge(invalid), invalid), trial::FailureReason::kInvalid);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.last_lines, deepspeed::judge(invalid).sentence);
  deepspeed::DsEnd crash;
  crash.exit_code = 3;
  crash.standard_error = "what the script said\n";
  EXPECT_EQ(
      expect_failed(deepspeed::outcome_of(deepspeed::judge(crash), crash), trial::FailureReason::kCrash).last_lines,
      "it ended (exit code 3)\nwhat the script said");
}

}  // namespace krigtune::deepspeed_outcome_test
