// Small handmade traces in the form of torch.profiler and krigtune-bench, so that every sum can be checked on paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/files.h"
#include "diagnose/trace_parts.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::trace_test {

using diagnose::Limit;

std::string event(const std::string& category, const std::string& name, double ts, double dur, int pid = 0,
                  const std::string& tid = "7") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": )" + std::to_string(pid) +
         R"(, "tid": )" + tid + R"(, "ts": )" + std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
         R"(, "args": {"stream": 7, "name": "not the event's", "dur": 1, "grid": [1, 2, 3]}})";
}

std::string trace_of(const std::vector<std::string>& events, const std::string& more = "") {
  std::string text = R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [)";
  for (const std::string& one : events) text += (one == events.front() ? "" : ",\n") + one;
  return text + "]" + more + "}";
}

// A device, in microseconds: a product 0 to 100, an elementwise kernel 100 to 140, an all-reduce on another stream 90
// to 200 (60 of 110 exposed), a copy 195 to 220 (20 exposed), nothing until 300, while the loader runs 260 to 290, and
// flash attention 300 to 350. The host's events belong to another process.
std::string device_trace() {
  return trace_of(
      {event("kernel", "sm90_xmma_gemm_bf16bf16_tn", 0, 100), event("kernel", "elementwise_kernel<4>", 100, 40),
       event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", 90, 110, 0, "20"),
       event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 195, 25, 0, "21"),
       event("kernel", "flash_fwd_kernel<Flash_fwd_kernel_traits>", 300, 50),
       event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 260, 30, 4711),
       event("user_annotation", "ProfilerStep#3", -50, 200, 4711),
       event("user_annotation", "ProfilerStep#4", 150, 220, 4711), event("cpu_op", "aten::mm", -20, 500, 4711),
       event("cuda_runtime", "cudaLaunchKernel", -10, 5, 4711), event("kernel", "another_device", 0, 900, 1),
       R"({"ph": "i", "name": "a mark", "ts": 5}, {"ph": "M", "name": "process_name", "pid": 0})"},
      R"(, "traceName": "trace.json")");
}

class Traces : public testing::Test {
 protected:
  diagnose::TraceFile read(const std::string& text) const {
    return diagnose::read_trace(directory_.write("trace.json", text));
  }
  diagnose::MeasuredParts parts(const std::string& text) const { return diagnose::parts_of(read(text)); }
  std::string trouble(const std::string& text) const {
    const std::string line = user_error_of([&] { parts(text); });
    const std::size_t at = line.find("trace.json");
    return at == std::string::npos ? line : line.substr(at);
  }
  TemporaryDirectory directory_;
};

double seconds_of(const diagnose::MeasuredParts& parts, const std::string& name) {
  for (const diagnose::Part& part : parts.parts) {
    if (part.name == name) return part.seconds;
  }
  return NAN;
}

const diagnose::Part& part_of(const diagnose::MeasuredParts& parts, const std::string& name) {
  for (const diagnose::Part& part : parts.parts) {
    if (part.name == name) return part;
  }
  throw std::runtime_error("no part " + name);
}

TEST_F(Traces, OfADeviceGiveEveryMomentToOnePart) {
  const diagnose::MeasuredParts parts = this->parts(device_trace());
  constexpr double kMicro = 1e-6;
  EXPECT_NEAR(parts.span_s, 350 * kMicro, 1e-12);
  EXPECT_EQ(parts.steps, 2.0);
  EXPECT_NEAR(seconds_of(parts, "products"), 100 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "attention"), 50 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "other kernels"), 40 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "all_reduce, exposed"), 60 * kMicro, 1e-12);
  EXPECT_NEAR(*part_of(parts, "all_reduce, exposed").all_s, 110 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "copies"), 20 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "data loading"), 30 * kMicro, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "nothing"), 50 * kMicro, 1e-12);
  double sum = 0.0;
  for (const diagnose::Part& part : parts.parts) sum += part.seconds;
  EXPECT_NEAR(sum, parts.span_s, 1e-12);
  ASSERT_EQ(parts.remarks.size(), 1U);
  EXPECT_EQ(parts.remarks.front(), "kernels: 3, half of them shorter than 50 us");
}

TEST_F(Traces, OfADeviceHaveTheirVerdictsInOrder) {
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(parts(device_trace()));
  std::vector<Limit> limits;
  for (const diagnose::Verdict& verdict : verdicts) limits.push_back(verdict.limit);
  EXPECT_EQ(limits, (std::vector<Limit>{Limit::kCommunication, Limit::kHost, Limit::kInput, Limit::kCopies}));
  EXPECT_NEAR(verdicts.front().share, 60.0 / 350.0, 1e-9);
  EXPECT_EQ(verdicts.front().quantity, "(all_reduce, exposed) / time of the device");
}

// PyTorch writes the group of NCCL's kernels: a product 0 to 100; a tensor-parallel all-reduce 100 to 160, which a
// data-parallel reduce-scatter overlaps from 140 to 190; a kernel without an informative name 200 to 230.
TEST_F(Traces, TellWhoseGroupCommunicates) {
  const auto collective = [](const std::string& name, double ts, double dur, const std::string& arguments) {
    return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 20, "ts": )" +
           std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) + R"(, "args": {)" + arguments + "}}";
  };
  const diagnose::MeasuredParts parts = this->parts(trace_of(
      {event("kernel", "gemm", 0, 100),
       collective("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 100, 60,
                  R"("Collective name": "allreduce", "Group size": 4, "Process Group Name": "7",
                     "Process Group Description": "TENSOR_MODEL_PARALLEL_GROUP")"),
       collective("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 140, 50,
                  R"("Process Group Description": "mesh_dp_shard", "Group size": 16, "Process Group Name": "2")"),
       collective("ncclDevKernel_Generic", 200, 30,
                  R"("Collective name": "_allgather_base", "Process Group Name": "0",
                     "Process Group Description": "undefined")")}));
  EXPECT_NEAR(seconds_of(parts, "all_reduce (TENSOR_MODEL_PARALLEL_GROUP, 4 ranks), exposed"), 60e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "reduce_scatter (mesh_dp_shard, 16 ranks), exposed"), 30e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "all_gather (group 0), exposed"), 30e-6, 1e-12);
  std::vector<Limit> limits;
  for (const diagnose::Verdict& verdict : diagnose::verdicts_of(parts)) {
    if (verdict.limit != Limit::kCompute && verdict.limit != Limit::kHost) limits.push_back(verdict.limit);
  }
  EXPECT_EQ(limits.front(), Limit::kTensorCommunication);
  EXPECT_EQ(std::count(limits.begin(), limits.end(), Limit::kDataCommunication), 1);
  EXPECT_EQ(std::count(limits.begin(), limits.end(), Limit::kCommunication), 1);
}

TEST_F(Traces, KnowGroupsByWhatFrameworksCallThem) {
  using diagnose::CommunicationGroup;
  const std::pair<const char*, CommunicationGroup> kKnown[] = {
      {"TENSOR_MODEL_PARALLEL_GROUP", CommunicationGroup::kTensor},
      {"mesh_tp", CommunicationGroup::kTensor},
      {"DATA_PARALLEL_GROUP_WITH_CP", CommunicationGroup::kData},
      {"INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", CommunicationGroup::kData},
      {"EXPERT_DATA_PARALLEL_GROUP", CommunicationGroup::kData},
      {"mesh_dp_replicate", CommunicationGroup::kData},
      {"TENSOR_AND_DATA_PARALLEL_GROUP", CommunicationGroup::kUnknown},
      {"PIPELINE_MODEL_PARALLEL_GROUP", CommunicationGroup::kPipeline},
      {"mesh_pp", CommunicationGroup::kPipeline},
      {"EXPERT_MODEL_PARALLEL_GROUP", CommunicationGroup::kExpert},
      {"CONTEXT_PARALLEL_GROUP", CommunicationGroup::kContext},
      {"default_pg", CommunicationGroup::kUnknown},
      {"", CommunicationGroup::kUnknown}};
  for (const auto& [name, group] : kKnown) EXPECT_EQ(diagnose::group_of(name), group) << name;
}

// On a thread of operators, an outer one is counted without those that it calls: layer_norm 0 to 100 calls addmm (so it
// is composed) 10 to 70. Another thread reduces from 60 to 160, exposed from 100 on. The loader's own operators belong
// to the loader.
TEST_F(Traces, OfOperatorsCountTheInnermostOne) {
  const diagnose::MeasuredParts parts = this->parts(
      trace_of({event("cpu_op", "aten::layer_norm", 0, 100, 9, "1"), event("cpu_op", "aten::addmm", 10, 60, 9, "1"),
                event("user_annotation", "gloo:all_reduce", 60, 100, 9, "2"),
                event("cpu_op", "c10d::allreduce_", 165, 2, 9, "1"),
                event("user_annotation", "enumerate(DataLoader)#_next", 170, 30, 9, "1"),
                event("cpu_op", "aten::stack", 175, 20, 9, "1"), event("cpu_op", "aten::add_", 200, 10, 9, "1")}));
  EXPECT_NEAR(seconds_of(parts, "products"), 60e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "other operators"), (40 + 2 + 10) * 1e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "all_reduce, exposed"), 60e-6, 1e-12);
  EXPECT_NEAR(*part_of(parts, "all_reduce, exposed").all_s, 100e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "data loading"), 30e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "nothing"), (5 + 3) * 1e-6, 1e-12);
}

TEST_F(Traces, OfKrigtuneItselfAreReadByStream) {
  const diagnose::MeasuredParts parts = this->parts(trace_of(
      {event("forward", "linear_forward block 0", 0, 40, 0, "0"), event("forward", "gelu_forward", 40, 10, 0, "0"),
       event("backward", "reduce_scatter block 0", 30, 50, 0, "2"),
       event("wait", "other ranks before all_gather", 80, 20, 0, "1"), event("wait", "wait to adamw", 80, 25, 0, "0"),
       event("optimizer", "adamw", 105, 15, 0, "4"), event("forward", "linear_forward block 0", 0, 500, 1, "0")},
      R"(, "otherData": {"program": "krigtune-bench", "step": 3})"));
  EXPECT_NEAR(seconds_of(parts, "products"), 40e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "other operators"), 10e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "reduce_scatter, exposed"), 30e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "waiting for other ranks"), 20e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "host work"), 15e-6, 1e-12);
  EXPECT_NEAR(seconds_of(parts, "nothing"), 5e-6, 1e-12);
}

TEST_F(Traces, AListOfEventsAloneIsATraceToo) {
  const diagnose::TraceFile trace = read("[" + event("kernel", "gemm", 1, 2) + "]");
  ASSERT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.events.front().name, "gemm");
  EXPECT_EQ(trace.events.front().end_us(), 3.0);
}

TEST_F(Traces, CutAnywhereTheyAreOneClearLine) {
  const std::string whole = device_trace();
  for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
    const std::string line = trouble(whole.substr(0, length));
    EXPECT_TRUE(line.find("the trace ends in the middle, at byte") != std::string::npos) << length << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

// RFC 1952 with the data in one stored block (RFC 1951, 3.2.4), as gzip writes data that it does not compress.
std::string gzip(const std::string& text) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11);
  const auto number = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) packed += static_cast<char>((value >> (8U * static_cast<unsigned>(i))) & 0xffU);
  };
  const auto length = static_cast<std::uint32_t>(text.size());  // less than 64 KiB
  number(length, 2);
  number(~length, 2);
  packed += text;
  number(~crc, 4);
  number(length, 4);
  return packed;
}

TEST_F(Traces, MayBePackedAndTellWhereTheyAreCut) {
  const std::string packed = gzip(device_trace());
  const std::string line = trouble(packed);
  if (line.find("built without zlib") != std::string::npos) GTEST_SKIP() << line;
  EXPECT_EQ(line, "no error");
  EXPECT_EQ(parts(packed).span_s, parts(device_trace()).span_s);
  for (std::size_t length = 20; length + 10 < packed.size(); length += 101) {
    EXPECT_NE(trouble(packed.substr(0, length)).find("the packed file ends in the middle"), std::string::npos)
        << length;
  }
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_NE(trouble(damaged).find("it cannot be unpacked"), std::string::npos) << trouble(damaged);
}

TEST_F(Traces, WhatIsNoTraceIsSaid) {
  EXPECT_EQ(trouble("no JSON at all"),
            "trace.json: it is not JSON from byte 2; a trace is a JSON file with \"traceEvents\"");
  EXPECT_EQ(trouble("{\"a\": 1}"),
            "trace.json: it has no \"traceEvents\"; a trace is what torch.profiler's export_chrome_trace or "
            "krigtune-bench --trace writes");
  EXPECT_EQ(trouble("{\"traceEvents\": []}"),
            "trace.json: it has no event with a duration (\"ph\": \"X\"); profile at least one whole step");
  EXPECT_EQ(trouble(trace_of({event("python_function", "f", 1, 2)})),
            "the trace has neither kernels nor operators (categories \"kernel\", \"cpu_op\"); profile with activities "
            "CPU and CUDA, or take krigtune-bench --trace");
}

TEST_F(Traces, KernelsAndCollectivesAreKnownByTheirNames) {
  const auto kernel = [](const char* name) { return diagnose::work_of({name, "kernel", 0, 0, 0, 0, ""}); };
  using diagnose::Work;
  EXPECT_EQ(kernel("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn"), Work::kProduct);
  EXPECT_EQ(kernel("void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm>"), Work::kProduct);
  EXPECT_EQ(kernel("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"), Work::kProduct);
  EXPECT_EQ(kernel("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32"), Work::kProduct);
  EXPECT_EQ(kernel("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<>"), Work::kAttention);
  EXPECT_EQ(kernel("fmha_cutlassF_bf16_aligned_64x64_rf_sm80"), Work::kAttention);
  EXPECT_EQ(kernel("void at::native::vectorized_elementwise_kernel<4>"), Work::kMemory);
  EXPECT_EQ(kernel("ncclKernel_ReduceScatter_RING_LL_Sum"), Work::kCollective);
  EXPECT_EQ(diagnose::work_of({"volta_sgemm_128x64_tn", "Kernel", 0, 0, 0, 0, ""}), Work::kProduct);  // PyTorch 1.11
  EXPECT_EQ(diagnose::collective_kind("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)"), "all_gather");
  EXPECT_EQ(diagnose::collective_kind("gloo:reduce_scatter"), "reduce_scatter");
  EXPECT_EQ(diagnose::collective_kind("ncclDevKernel_SendRecv"), "send_recv");
}

}  // namespace krigtune::trace_test
