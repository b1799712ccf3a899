#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace krigtune::diagnose {

/// One complete event ("ph": "X") of a trace.
struct TraceEvent {
  std::string name;
  std::string category;
  double start_us = 0.0;
  double duration_us = 0.0;
  std::int64_t process = 0;  ///< processes and threads by number, in the order in which they first occur
  std::int64_t thread = 0;
  std::string thread_name;  ///< as the file has it: "7", "stream 7"
  // Of NCCL's kernels, where PyTorch has written them (from 2.4 on): its "args".
  std::string collective = {};  ///< "Collective name": "allreduce", "_allgather_base"
  std::string group = {};       ///< "Process Group Description": "mesh_tp"; else "Process Group Name"
  int group_size = 0;           ///< 0: not told

  double end_us() const { return start_us + duration_us; }
};

/// A trace in Chrome's trace event format, as far as it is needed.
struct TraceFile {
  std::string program;  ///< "otherData" / "program": who wrote it, where it says so
  std::vector<TraceEvent> events;
};

/// Reads it event by event, never as a whole; packed by gzip or not. Throws UserError, one line, for what is no such
/// file, holds no event, or ends in the middle.
TraceFile read_trace(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
