#pragma once
#include <cstddef>
#include <string>

namespace krigtune::cuda {

/// The version of a library of NVIDIA that is opened at run time.
struct LibraryVersion {
  std::size_t version = 0;  ///< as the library reports it; 0: the library is missing
  std::string path;         ///< of the library's file
  std::string missing;      ///< why the library is missing: one line; otherwise empty
};
LibraryVersion blas_version();  ///< of cuBLASLt, which all training needs
LibraryVersion nccl_version();  ///< of NCCL, which a job on one GPU does not need

}  // namespace krigtune::cuda
