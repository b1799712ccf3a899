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
  std::int64_t process = 0;  ///< processes and threads are numbered in the order in which they first occur
  std::int64_t thread = 0;
  std::string thread_name;  ///< as in the file: "7", "stream 7"
  // The "args" of NCCL's kernels, if PyTorch has written them (since 2.4):
  std::string collective = {};  ///< "Collective name": "allreduce", "_allgather_base"
  std::string group = {};       ///< "Process Group Description": "mesh_tp"; otherwise "Process Group Name"
  int group_size = 0;           ///< 0: unknown

  double end_us() const { return start_us + duration_us; }
};

/// The parts of a trace in Chrome's trace event format that are needed here.
struct TraceFile {
  std::string program;  ///< "otherData" / "program": the program that wrote it, if stated
  std::vector<TraceEvent> events;
};

/// Reads a trace event by event, never as a whole, with or without gzip compression. Throws a one-line UserError if the
/// file is not a trace, contains no event, or is truncated.
TraceFile read_trace(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
