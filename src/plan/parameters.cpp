// Initial values as GPT-2's (Radford et al. 2019, as in OpenAI's and nanoGPT's code): weights Normal(0, 0.02), the two
// projections into the residual stream scaled by 1 / sqrt(2 layers), biases 0, norm gains 1.
#include "parameters.h"

#include <fmt/format.h>

#include <cmath>

namespace krigtune {
namespace {

class Adder {
 public:
  Adder(ParameterTable& table, std::int64_t ranks)
      : table_(table), granule_elems_(ranks * kAlignmentBytes / size_bytes(DType::kFp32)) {}

  int add(std::string name, std::int64_t elems, double mean, double stddev) {
    const std::int64_t padded = (elems + granule_elems_ - 1) / granule_elems_ * granule_elems_;
    table_.tensors.push_back({std::move(name), elems, padded, table_.padded_elems, mean, stddev, Split::kNone, {}, 0});
    table_.padded_elems += padded;
    return static_cast<int>(table_.tensors.size()) - 1;
  }

 private:
  ParameterTable& table_;
  std::int64_t granule_elems_;
};

}  // namespace

ParameterTable make_parameters(const ModelSpec& model, std::int64_t ranks) {
  constexpr double kStddev = 0.02;
  const double residual_stddev = kStddev / std::sqrt(2.0 * static_cast<double>(model.layers));
  const std::int64_t h = model.hidden;
  const std::int64_t f = model.ffn_hidden;
  ParameterTable result;
  Adder to(result, ranks);
  result.table = to.add("table", model.vocab * h, 0.0, kStddev);
  result.positions = to.add("positions", model.seq_len * h, 0.0, kStddev);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const auto name = [&](const char* part) { return fmt::format("block{}.{}", i, part); };
    BlockTensors block{};
    block.norm1_gain = to.add(name("norm1.gain"), h, 1.0, 0.0);
    block.norm1_bias = to.add(name("norm1.bias"), h, 0.0, 0.0);
    block.qkv_weight = to.add(name("qkv.weight"), 3 * h * h, 0.0, kStddev);
    block.qkv_bias = to.add(name("qkv.bias"), 3 * h, 0.0, 0.0);
    block.out_weight = to.add(name("out.weight"), h * h, 0.0, residual_stddev);
    block.out_bias = to.add(name("out.bias"), h, 0.0, 0.0);
    block.norm2_gain = to.add(name("norm2.gain"), h, 1.0, 0.0);
    block.norm2_bias = to.add(name("norm2.bias"), h, 0.0, 0.0);
    block.up_weight = to.add(name("up.weight"), f * h, 0.0, kStddev);
    block.up_bias = to.add(name("up.bias"), f, 0.0, 0.0);
    block.down_weight = to.add(name("down.weight"), h * f, 0.0, residual_stddev);
    block.down_bias = to.add(name("down.bias"), h, 0.0, 0.0);
    result.blocks.push_back(block);
  }
  result.final_gain = to.add("final_norm.gain", h, 1.0, 0.0);
  result.final_bias = to.add("final_norm.bias", h, 0.0, 0.0);
  return result;
}

}  // namespace krigtune
