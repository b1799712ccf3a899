// How fast is each device kernel, attention, matrix product and imitated collective on this GPU? Times single
// operations of plans of GPT-2 1.5B and of models of width 4096, and writes tables:
//
//   kernels.csv    bound by memory: bytes_per_s counts what the operation has to read and write, once each; of_copy is
//                  that over the rate of a copy of 1 GiB within the device, in the first row
//   attention.csv  causal attention; flops counts pairs of query and key that meet: about half of all, two products of
//                  them forward and five backward
//   gemm.csv       matrix products, 2 m n k
//   pacing.csv     collectives of an emulated world of eight on NVLink 4: for how long each was to hold its stream, and
//                  did
//
//   gpu_rates [--small] FOLDER      --small: tiny sizes and one call each, to try the program
//   gpu_rates [--small] --hopper-attention FOLDER    writes attention_hopper.csv alone: attention on the kernels for
//                  Hopper. A process of its own, for a kernel may fail and take its process with it
#include <fmt/format.h>

#include <set>
#include <tuple>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/cuda/attention_check.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/runtime/check.h"
#include "plan/op_traits.h"
#include "rates.h"

namespace krigtune::cuda {
namespace {

void time_attention(const Scale& scale, std::int64_t head_size, std::int64_t seq_len, std::int64_t queries_per_key,
                    bool on_hopper, Table& table) {
  constexpr std::int64_t kTokens = 16384;
  workload::Workload workload = one_layer(scale);
  workload.model.hidden = scale.small ? 2 * head_size : 2048;
  workload.model.heads = workload.model.hidden / head_size;
  workload.model.kv_heads = workload.model.heads / queries_per_key;
  workload.model.vocab = scale.small ? 64 : 512;
  workload.model.seq_len = seq_len;
  const plan::StepPlan plan = plan_of(workload, {.micro_batch = scale.small ? 1 : kTokens / seq_len});
  OperationTimer timer(plan, scale.effort, on_hopper);
  for (const plan::Operation& operation : plan.operations) {
    const bool forward = operation.kind == schedule::OpKind::kAttentionForward;
    if (!forward && operation.kind != schedule::OpKind::kAttentionBackward) continue;
    const double time_s = timer.time_s(operation);
    const plan::Shape& s = operation.shape;
    table.add({forward ? "forward" : "backward", fmt::to_string(head_size), fmt::to_string(s.seq),
               fmt::to_string(s.batch), fmt::to_string(s.heads), fmt::to_string(s.kv_heads), number(operation.flops),
               number(kMicroseconds * time_s), number(operation.flops / time_s)});
  }
}

void time_attention(const std::filesystem::path& folder, const Scale& scale, bool on_hopper) {
  Table table(folder / (on_hopper ? "attention_hopper.csv" : "attention.csv"),
              {"pass", "head_size", "seq_len", "batch", "heads", "kv_heads", "flops", "time_us", "flops_per_s"});
  const std::vector<std::int64_t> lengths =
      scale.small ? std::vector<std::int64_t>{80} : std::vector<std::int64_t>{1024, 2048, 4096};
  for (const std::int64_t head_size : {64, 128}) {
    for (const std::int64_t seq_len : lengths) time_attention(scale, head_size, seq_len, 1, on_hopper, table);
  }
  time_attention(scale, 128, lengths.back(), scale.small ? 2 : 4, on_hopper, table);
  table.write();
}

void time_products(const workload::Workload& workload, std::int64_t micro_batch, const Scale& scale, Table& table) {
  const plan::StepPlan plan = plan_of(workload, {.micro_batch = micro_batch});
  OperationTimer timer(plan, scale.effort);
  std::set<std::tuple<schedule::OpKind, std::int64_t, std::int64_t, std::int64_t>> seen;
  for (const plan::Operation& operation : plan.operations) {
    const plan::Shape& s = operation.shape;
    if (!plan::is_matrix_product(operation.kind) || !seen.insert({operation.kind, s.rows, s.inner, s.outer}).second)
      continue;
    const double time_s = timer.time_s(operation);
    table.add({plan::to_string(operation.kind), fmt::to_string(s.rows), fmt::to_string(s.inner),
               fmt::to_string(s.outer), number(operation.flops), number(kMicroseconds * time_s),
               number(operation.flops / time_s)});
  }
}

void time_products(const std::filesystem::path& folder, const Scale& scale) {
  Table table(folder / "gemm.csv", {"product", "rows", "inner", "outer", "flops", "time_us", "flops_per_s"});
  const workload::Workload gpt = one_layer(scale);
  time_products(gpt, scale.small ? 1 : 16, scale, table);
  if (!scale.small) {
    workload::Workload wide = gpt;
    wide.model.hidden = 4096;
    wide.model.heads = wide.model.kv_heads = 32;
    wide.model.ffn_hidden = 16384;
    wide.model.seq_len = 2048;
    time_products(wide, 4, scale, table);
    // Its linear layers have a product of 8192 x 8192 x 8192: what a GPU can do at best.
    workload::Workload square = gpt;
    square.model.hidden = square.model.ffn_hidden = 8192;
    square.model.heads = square.model.kv_heads = 64;
    square.model.vocab = 512;
    square.model.seq_len = 2048;
    time_products(square, 4, scale, table);
  }
  table.write();
}

/// Alone on its stream, so that nothing but the hold itself makes the collective longer than asked, and its copies
/// where those are slower than the network.
double held_s(const EmulatedDeviceLink& link, DeviceCommunicator& communicator, const plan::Operation& operation,
              std::span<const engine::OperandView> operands) {
  const StreamHandle stream = make_stream(true);
  const Span span;
  for (int call = 0; call < 2; ++call) {  // the first one loads the kernels
    link.occupy(stream.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.begin.get(), stream.get()));
    communicator.start(operation, operands, stream.get());
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(span.end.get(), stream.get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamSynchronize(stream.get()));
  }
  return span.elapsed_s();
}

void measure_pacing(const std::filesystem::path& folder, const Scale& scale) {
  constexpr std::int64_t kRanks = 8;
  const Json nvlink = {{"gpus_per_node", kRanks}, {"emulate_network", "nvlink4"}};
  const workload::EmulatedNetwork network =
      workload::read_cluster(nvlink, "gpu_rates", "/cluster").emulated_network.value();
  const plan::GroupSpan span{kRanks, 1, kRanks};
  EmulatedDeviceLink link;
  const auto communicator = make_emulated_communicator(network, span, link);
  Table table(folder / "pacing.csv", {"collective", "bytes", "asked_us", "held_us", "error", "copies_us"});
  const std::int64_t most = std::int64_t{1} << (scale.small ? 20U : 30U);
  const DeviceBytes memory = allocate_device(most);
  fill_numbers(memory.get(), most, nullptr);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  for (std::int64_t bytes = std::int64_t{1} << 20U; bytes <= most; bytes *= 4) {
    for (const schedule::OpKind kind :
         {schedule::OpKind::kAllGather, schedule::OpKind::kReduceScatter, schedule::OpKind::kAllReduce}) {
      const engine::OperandView whole{memory.get(), bytes / 2, plan::Access::kReadWrite, schedule::DType::kBf16};
      const engine::OperandView shard{memory.get(), bytes / 2 / kRanks, plan::Access::kRead, schedule::DType::kBf16};
      std::vector<engine::OperandView> operands{whole};
      if (kind == schedule::OpKind::kAllGather) operands = {shard, whole};
      plan::Operation operation;
      operation.kind = kind;
      operation.wire_bytes = (kind == schedule::OpKind::kAllReduce ? 2 : 1) * bytes * (kRanks - 1) / kRanks;
      const double asked_s = plan::collective_time_s(network, kind, span, operation.wire_bytes);
      link.set_held(false);
      const double copies = held_s(link, *communicator, operation, operands);
      link.set_held(true);
      const double held = held_s(link, *communicator, operation, operands);
      table.add({plan::to_string(kind), fmt::to_string(bytes), number(kMicroseconds * asked_s),
                 number(kMicroseconds * held), fmt::format("{:.4f}", held / asked_s - 1.0),
                 number(kMicroseconds * copies)});
    }
  }
  table.write();
}

int measure(const std::vector<std::string>& arguments) {
  Scale scale;
  bool on_hopper = false;
  std::string folder;
  for (const std::string& argument : arguments) {
    if (argument == "--small") {
      scale = {true, {.batch_s = 0.0, .batches = 1}};
    } else if (argument == "--hopper-attention") {
      on_hopper = true;
    } else {
      folder = argument;
    }
  }
  if (folder.empty() || folder.front() == '-')
    throw UserError("there is no folder", "gpu_rates [--small] [--hopper-attention] FOLDER");
  usable_gpus();
  require_code_for(0);
  KRIGTUNE_CHECK_CUDA(cudaSetDevice(0));
  make_writable_directory(folder);
  if (on_hopper) {
    if (!may_use_hopper_attention(0)) throw UserError("GPU 0 is no Hopper, or there is no 90a code", "leave it out");
    time_attention(folder, scale, true);
    return 0;
  }
  time_kernels(folder, scale);
  time_attention(folder, scale, false);
  time_products(folder, scale);
  measure_pacing(folder, scale);
  return 0;
}

}  // namespace
}  // namespace krigtune::cuda

int main(int argc, char** argv) {
  try {
    return krigtune::cuda::measure({argv + 1, argv + argc});
  } catch (const krigtune::UserError& error) {
    fmt::print(stderr, "gpu_rates: {}\n", error.what());
    return 2;
  } catch (const krigtune::EnvironmentError& error) {
    fmt::print(stderr, "gpu_rates: {}\n", error.what());
    return krigtune::BenchExit::kEnvironmentLacks;
  } catch (const krigtune::cuda::DeviceError& error) {
    const bool none = error.exit_code() == krigtune::BenchExit::kNoDevice;
    fmt::print(stderr, "gpu_rates: {}{}\n", none ? "no GPU can be used: " : "", error.what());
    return error.exit_code();
  }
}
