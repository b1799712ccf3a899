#pragma once
#include <optional>
#include <string>

#include "diagnose/measured_parts.h"
#include "diagnose/trace_file.h"

namespace krigtune::diagnose {

/// What an event is. Collectives by kind: `collective_kind`.
enum class Work { kProduct, kAttention, kMemory, kCollective, kCopy, kHostWork, kInput, kWait, kNone };
/// Of a kernel, an operator or an operation of krigtune-bench, by its category and its name.
Work work_of(const TraceEvent& event);
/// "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send_recv", or "collective".
std::string collective_kind(const std::string& name);

/// Whose communication a process group carries, by what Megatron-LM and PyTorch's device meshes call it.
enum class CommunicationGroup { kUnknown, kData, kTensor, kPipeline, kContext, kExpert };
/// Of "TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp_shard", ...
CommunicationGroup group_of(const std::string& description);

/// Where the time of a trace went, on its first device: the span from the first to the last kernel, moment by moment.
/// At each the first of these that is going on takes it: products, attention, other kernels, collectives by kind
/// and by group where the trace tells it (exposed, therefore), copies, work of the host, loading of data, waiting for
/// other ranks; else nothing runs.
///
/// Traces of torch.profiler with kernels are read by these; those without, of CPU ranks, by the innermost operators of
/// each thread; krigtune's own traces by rank and stream. Throws UserError where none of these is there.
MeasuredParts parts_of(const TraceFile& trace);

}  // namespace krigtune::diagnose
