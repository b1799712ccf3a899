#pragma once
#include <cstddef>
#include <string>

namespace krigtune::cuda {

/// A library of NVIDIA's that is opened at run time.
struct LibraryVersion {
  std::size_t version = 0;  ///< as the library says it; 0: it is not there
  std::string path;         ///< of its file
  std::string missing;      ///< why it is not there: one line; empty otherwise
};
LibraryVersion blas_version();  ///< cuBLASLt, without which nothing can be trained
LibraryVersion nccl_version();  ///< which a job of one GPU can do without

}  // namespace krigtune::cuda
