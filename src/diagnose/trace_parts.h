#pragma once
#include <optional>
#include <string>

#include "diagnose/measured_parts.h"
#include "diagnose/trace_file.h"

namespace krigtune::diagnose {

/// The kind of work of an event. For collectives see `collective_kind`.
enum class Work { kProduct, kAttention, kMemory, kCollective, kCopy, kHostWork, kInput, kWait, kNone };
/// Classifies a kernel, an operator or an operation of krigtune-bench by its category and name.
Work work_of(const TraceEvent& event);
/// "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send_recv", or "collective".
std::string collective_kind(const std::string& name);

/// The communication that a process group carries, by the names that Megatron-LM and PyTorch's device meshes use.
enum class CommunicationGroup { kUnknown, kData, kTensor, kPipeline, kContext, kExpert };
/// Classifies "TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp_shard", ...
CommunicationGroup group_of(const std::string& description);

/// Returns where the time of a trace went on its first device, from the first to the last kernel. Each moment belongs
/// to the first of these activities that is in progress: products, attention, other kernels, collectives by kind and
/// (if known) by group, which are therefore exposed, copies, work of the host, loading of data, waiting for other
/// ranks. Otherwise nothing runs.
///
/// Traces of torch.profiler with kernels are read by those kernels; those without, from CPU ranks, by the innermost
/// operators of each thread; krigtune's own traces by rank and stream. Throws UserError if the trace has none of these.
MeasuredParts parts_of(const TraceFile& trace);

}  // namespace krigtune::diagnose
