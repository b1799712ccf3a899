// A device for machines without one: memory is memory, kernels are loops, operations run in the order of the plan.
#include <cstring>

#include "cuda_device.h"
#include "host/bound_plan.h"
#include "host/number_types.h"
#include "host/rank_values.h"

namespace krigtune::cuda {
namespace {

double element(const OperandView& view, std::int64_t i) {
  if (view.type == DType::kFp32) return static_cast<double>(static_cast<const float*>(view.data)[i]);
  float value = 0.0F;
  widen(view.type, static_cast<const std::uint16_t*>(view.data) + i, 1, &value);
  return static_cast<double>(value);
}

void put_element(const OperandView& view, std::int64_t i, double sum) {
  const auto value = static_cast<float>(sum + (view.adds() ? element(view, i) : 0.0));
  if (view.type == DType::kFp32) {
    static_cast<float*>(view.data)[i] = value;
  } else {
    round_to(view.type, &value, 1, static_cast<std::uint16_t*>(view.data) + i);
  }
}

/// By definition, in fp64.
class PlainGemm final : public Gemm {
 public:
  void prepare(const Product& /*product*/) override {}
  void multiply(const Product& p, Queue /*queue*/) override {
    for (std::int64_t i = 0; i < p.rows; ++i) {
      for (std::int64_t j = 0; j < p.cols; ++j) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < p.depth; ++k) {
          sum += element(p.a, p.transpose_a ? k * p.rows + i : i * p.depth + k) *
                 element(p.b, p.transpose_b ? j * p.depth + k : k * p.cols + j);
        }
        put_element(p.d, i * p.cols + j, sum);
      }
    }
  }
};

class TrainerOnCpu final : public OneRankTrainer {
 public:
  TrainerOnCpu(const StepPlan& plan, const TrainingOptions& options)
      : plan_(plan), options_(options), memory_(plan, false), bound_(bind_plan(plan, memory_, {0, 0})) {
    put_first_values(plan, memory_, {0, 0}, options.seed);
  }

  double step() override {
    StepContext context;
    context.options = options_;
    context.step = steps_++;
    context.micro_steps = plan_.micro_steps;
    context.gradient_clipping = plan_.gradient_clipping;
    context.first_loss_scale = plan_.first_loss_scale;
    std::array<std::size_t, kStreamCount> next{};
    for (const Operation& operation : plan_.operations) {
      const BoundOperation& bound = bound_[index_of(operation.stream)][next[index_of(operation.stream)]++];
      if (is_collective(operation.kind)) {
        gather(bound);
      } else {
        device_kernel_for(operation.kind)({operation, bound.operands, context, scratch_.data(), nullptr, &gemm_});
      }
    }
    return sum_of_losses(plan_, memory_) / static_cast<double>(plan_.micro_steps);
  }

  std::vector<float> parameters() override {
    std::vector<float> all;
    for (const TensorHome& home : plan_.parameters) {
      const std::size_t begin = all.size();
      append_floats(plan_.buffers[static_cast<std::size_t>(home.range.buffer)].type,
                    held_bytes(plan_, memory_, home, 0), all);
      all.resize(begin + static_cast<std::size_t>(plan_.tensors[static_cast<std::size_t>(home.tensor)].elems));
    }
    return all;
  }

 private:
  // Among one rank, only an all-gather moves anything.
  static void gather(const BoundOperation& bound) {
    if (bound.operation->kind != OpKind::kAllGather) return;
    for (std::size_t i = 0; i + 1 < bound.operands.size(); i += 2) {
      const OperandView& shard = bound.operands[i];
      std::memmove(bound.operands[i + 1].data, shard.data,
                   static_cast<std::size_t>(shard.elems * size_bytes(shard.type)));
    }
  }

  StepPlan plan_;
  TrainingOptions options_;
  RankMemory memory_;
  BoundPlan bound_;
  PlainGemm gemm_;
  std::vector<float> scratch_ = std::vector<float>(kScratchFloats);
  std::int64_t steps_ = 0;
};

}  // namespace

std::string no_device_reason() { return ""; }

DeviceBuffer::DeviceBuffer(const std::vector<std::byte>& bytes)
    : data_(::operator new(bytes.size())), size_(bytes.size()) {
  std::memcpy(data_, bytes.data(), size_);
}
DeviceBuffer::~DeviceBuffer() { ::operator delete(data_); }
std::vector<std::byte> DeviceBuffer::read() const {
  const auto* begin = static_cast<const std::byte*>(data_);
  return {begin, begin + size_};
}

std::unique_ptr<Gemm> make_test_gemm() { return std::make_unique<PlainGemm>(); }

std::unique_ptr<OneRankTrainer> make_one_rank_trainer(const StepPlan& plan, const TrainingOptions& options) {
  return std::make_unique<TrainerOnCpu>(plan, options);
}

}  // namespace krigtune::cuda
