#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/knobs.h"
#include "schedule/op_kind.h"
#include "schedule/parameters.h"
#include "workload/workload.h"

namespace krigtune::plan {

using BufferId = std::int32_t;
using OpId = std::int32_t;

/// Elements [begin + rank * rank_stride, ... + elems) of a buffer, where rank is the rank within the operation's group.
/// A plan is the same for all ranks.
struct Range {
  BufferId buffer = -1;
  std::int64_t begin_elems = 0;
  std::int64_t elems = 0;
  std::int64_t rank_stride_elems = 0;
};

enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

struct Operand {
  Range range;
  Access access = Access::kRead;
};

struct Shape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0;
  std::int64_t rows = 0, inner = 0, outer = 0;
  std::int64_t values = 0;  ///< width of attention's output, of all heads, if it is not `inner`
  std::int64_t groups = 1;  ///< equal products that the rows are divided among: the experts
  /// Of a product: y and its gradient have rows of `width` elements, of which it computes [begin, begin + outer) and
  /// leaves the others; 0: all are its own. Of a dropout: the whole rows, of which each tensor rank has an equal part.
  std::int64_t begin = 0, width = 0;
  std::int32_t site = 0;   ///< distinguishes the dropouts of a layer
  double dropout = 0.0;    ///< probability
  std::int64_t chunk = 0;  ///< of a scan: tokens that matrix products handle at once
};

/// One operation, without host pointers or closures. Its operands are ready when the earlier operations of its stream
/// and the operations in `waits` (of other streams) are done.
struct Operation {
  schedule::OpKind kind{};
  schedule::Stream stream = schedule::Stream::kCompute;
  schedule::Group group = schedule::Group::kData;
  schedule::Phase phase = schedule::Phase::kForward;
  std::int32_t layer = -1;  ///< transformer block; -1: embedding, head or none
  std::int32_t micro_step = 0;
  Shape shape;
  double scale = 1.0;
  std::vector<Operand> operands;
  std::vector<OpId> waits;
  double flops = 0.0;
  std::int64_t bytes_read = 0;     ///< from this rank's memory
  std::int64_t bytes_written = 0;  ///< to this rank's memory
  std::int64_t wire_bytes = 0;     ///< for collectives: sent by one rank
};

struct Buffer {
  std::string name;
  schedule::Term term{};
  schedule::DType type = schedule::DType::kFp32;
  std::int64_t elems = 0;
  bool persistent = false;  ///< keeps its contents from step to step
  schedule::Place place = schedule::Place::kDevice;
  std::int64_t offset_bytes = -1;  ///< in its place's arena, a multiple of kAlignmentBytes; set by the memory planner

  std::int64_t bytes() const { return elems * schedule::size_bytes(type); }
};

/// A range that keeps values of a tensor from step to step: its elements [first_elem, + range.elems), including
/// padding. If `sharded`, `first_elem` increases by range.elems from data rank to data rank.
struct TensorHome {
  int tensor = 0;
  std::int64_t first_elem = 0;
  bool sharded = false;
  Range range;
};

/// Limits on what may be in flight while the compute stream goes on; -1: unlimited.
struct Windows {
  std::int64_t reductions = -1;      ///< reductions of gradients that it has not waited for
  std::int64_t gathers = -1;         ///< gathers of parameters that it has not waited for
  std::int64_t gathered_elems = -1;  ///< parameters that are gathered and not yet released
};

/// One optimizer step of one rank as data: a pure value, and the same for all ranks.
struct StepPlan {
  std::int64_t ranks = 1;         ///< N, in the data-parallel group
  std::int64_t tensor_ranks = 1;  ///< t; the job has ranks * tensor_ranks ranks
  std::int64_t zero_stage = 0;
  workload::Dialect dialect = workload::Dialect::kCanonical;
  Windows windows;
  schedule::NcclKnobs nccl;  ///< for ranks that exchange by NCCL
  std::int64_t micro_batch = 1;
  std::int64_t micro_steps = 1;
  std::int64_t seq_len = 1;
  std::vector<schedule::ParameterTensor> tensors;  ///< in model order
  std::int64_t padded_parameter_elems = 0;         ///< Psi: sum of the padded tensors
  /// Parameters that the model computes with, each tensor once (over the data ranks)
  std::vector<TensorHome> parameters;
  std::vector<TensorHome> copies;  ///< further ranges that start with a parameter's values: fp32 masters, ...
  BufferId loss = -1;              ///< one element per micro-step
  BufferId control = -1;           ///< ControlElements, fp32; -1: neither clipping nor loss scaling
  double first_loss_scale = 1.0;
  double gradient_clipping = 0.0;  ///< largest norm of the gradients; 0: no clipping
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;  ///< in issue order
  std::int64_t arena_bytes = 0;       ///< planned peak of the device, to the byte
  std::int64_t host_arena_bytes = 0;  ///< planned peak of the host, to the byte: offloaded tensors

  /// Returns the tensor whose values, or (with Term::kGradients) whose gradient, begin at `begin_elems` of a store of
  /// whole tensors.
  int tensor_at(schedule::Term term, std::int64_t begin_elems) const;
  std::int64_t world() const { return ranks * tensor_ranks; }
  std::int64_t samples() const { return ranks * micro_batch * micro_steps; }
  std::int64_t group_ranks(schedule::Group group) const {
    return group == schedule::Group::kData ? ranks : tensor_ranks;
  }
};

}  // namespace krigtune::plan
