// Initial values by the host's rule (engine/host/rank_values.cpp), with one thread for each element. The four elements
// of tensor t from 4 i on are the two Box-Muller pairs of the Philox block with counter (i, t). They are computed in
// fp64, so that they equal the host's except for the last digit of log, sin and cos. The host would take minutes for a
// billion parameters.
#include <algorithm>
#include <stdexcept>

#include "engine/cuda/kernels/elements.h"
#include "engine/cuda/kernels/initial_values.h"
#include "engine/cuda/kernels/philox.h"

namespace krigtune::cuda {
namespace {

/// How a tensor is split over the tensor ranks, as in whole_element of schedule/parameters.cpp.
struct Cut {
  static constexpr std::size_t kMostBlocks = 3;

  schedule::Split split;
  std::int64_t elems, row_elems, rank, ranks;
  std::int64_t block_rows[kMostBlocks] = {};
  int blocks;

  Cut(const schedule::ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks)
      : split(tensor.split),
        elems(tensor.elems),
        row_elems(tensor.row_elems),
        rank(tensor_rank),
        ranks(tensor_ranks),
        blocks(static_cast<int>(tensor.block_rows.size())) {
    if (tensor.block_rows.size() > kMostBlocks) throw std::logic_error(tensor.name + " has too many blocks");
    std::copy(tensor.block_rows.begin(), tensor.block_rows.end(), block_rows);
  }

  /// Returns the index of the element in the whole tensor; -1 for padding.
  __device__ std::int64_t whole(std::int64_t elem) const {
    if (elem >= elems) return -1;
    if (split == schedule::Split::kNone) return elem;
    if (split == schedule::Split::kColumns) {
      const std::int64_t width = row_elems / ranks;
      return elem / width * row_elems + rank * width + elem % width;
    }
    std::int64_t local_row = elem / row_elems;
    std::int64_t before = 0;
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t rows = block_rows[block];
      const std::int64_t share = (rows + ranks - 1) / ranks;
      if (local_row < share) {
        const std::int64_t row = rank * share + local_row;
        return row < rows ? (before + row) * row_elems + elem % row_elems : -1;
      }
      local_row -= share;
      before += rows;
    }
    return -1;
  }
};

__device__ inline double normal(std::uint64_t seed, std::uint64_t tensor, std::int64_t element) {
  constexpr double kTwoPi = 6.283185307179586476925;
  const auto block = static_cast<std::uint64_t>(element) / 4;
  const Words words = philox({{low_word(block), high_word(block), low_word(tensor), high_word(tensor)}}, low_word(seed),
                             high_word(seed));
  const std::uint64_t pair = static_cast<std::uint64_t>(element) / 2 % 2;
  const double uniform = (static_cast<double>(words.pick(2 * pair)) + 0.5) * 0x1.0p-32;
  const double angle = kTwoPi * static_cast<double>(words.pick(2 * pair + 1)) * 0x1.0p-32;
  return sqrt(-2.0 * log(uniform)) * (element % 2 == 0 ? cos(angle) : sin(angle));
}

}  // namespace

void initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                    std::int64_t begin, const engine::OperandView& to, Queue queue) {
  const schedule::ParameterTensor& tensor = plan.tensors[static_cast<std::size_t>(index)];
  const Cut cut(tensor, tensor_rank, plan.tensor_ranks);
  const Elements values(to.data, to.type, false);
  const double mean = tensor.initial_mean;
  const double stddev = tensor.initial_stddev;
  const auto stream = static_cast<std::uint64_t>(index);
  launch_elements(queue, to.elems, [=] __device__(std::int64_t i) {
    const std::int64_t element = cut.whole(begin + i);
    const double draw = element < 0 || stddev == 0.0 ? 0.0 : stddev * normal(seed, stream, element);
    values.set(i, element < 0 ? 0.0F : static_cast<float>(mean + draw));
  });
}

}  // namespace krigtune::cuda
