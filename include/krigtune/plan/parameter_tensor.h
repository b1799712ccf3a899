#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "krigtune/plan/operation.h"

namespace krigtune {

/// How a tensor is cut over the tensor-parallel ranks.
enum class Split : std::uint8_t { kNone, kRows, kColumns };

/// One parameter tensor as one tensor-parallel rank holds it, in model order. Its padded length is a multiple of
/// N * 64 bytes: every rank's shard of it starts on 64 bytes. Tensor t lies at [begin_elems, + elems) of the whole, its
/// shard at begin_elems / N of a shard.
struct ParameterTensor {
  std::string name;
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;
  std::int64_t begin_elems = 0;
  double initial_mean = 0.0;
  double initial_stddev = 0.0;
  Split split = Split::kNone;
  /// Of the whole tensor: blocks of rows, each cut for itself (q, k, v; gate, up), and the length of a row. A split
  /// over columns has one block. Rows that fill a block up to a multiple of the ranks (a vocabulary) are behind its end
  /// and start as zeros.
  std::vector<std::int64_t> block_rows{};
  std::int64_t row_elems = 0;
};

/// The element of the whole tensor (row-major, blocks one after the other) that `tensor_rank` holds at `elem`; -1 for
/// one that fills up.
std::int64_t whole_element(const ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks,
                           std::int64_t elem);

/// A range that holds values of a tensor from step to step: its elements [first_elem, + range.elems), padding included.
/// `first_elem` moves by range.elems from data rank to data rank where `sharded`.
struct TensorHome {
  int tensor = 0;
  std::int64_t first_elem = 0;
  bool sharded = false;
  Range range;
};

}  // namespace krigtune
