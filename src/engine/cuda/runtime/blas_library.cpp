// cuBLASLt takes half a gigabyte and is installed in CUDA's folders or as a Python wheel, so it is not linked but
// opened where it is found. The functions used here have the same signatures, numbers and sizes in versions 12 and 13
// (compare their headers). The library contains its own CUDA runtime.
#include "engine/cuda/runtime/blas_library.h"

#include "core/error.h"
#include "engine/cuda/runtime/library_search.h"
#include "engine/cuda/runtime/library_versions.h"

namespace krigtune::cuda {
namespace {

struct BlasLibrary {
  FoundLibrary found;
  BlasFunctions functions{};
};

BlasLibrary open_blas() {
  BlasLibrary blas{find_library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}), {}};
  FoundLibrary& found = blas.found;
  if (!found.library) return blas;
  BlasFunctions& f = blas.functions;
  const FunctionBinder bind{found, "cuBLASLt", "12"};
  bind("cublasLtGetVersion", f.get_version);
  bind("cublasLtGetStatusName", f.get_status_name);
  bind("cublasLtCreate", f.create);
  bind("cublasLtDestroy", f.destroy);
  bind("cublasLtMatmul", f.matmul);
  bind("cublasLtMatmulAlgoCheck", f.algo_check);
  bind("cublasLtMatmulAlgoConfigSetAttribute", f.algo_config_set_attribute);
  bind("cublasLtMatmulAlgoGetHeuristic", f.get_heuristic);
  bind("cublasLtMatmulDescCreate", f.desc_create);
  bind("cublasLtMatmulDescDestroy", f.desc_destroy);
  bind("cublasLtMatmulDescSetAttribute", f.desc_set_attribute);
  bind("cublasLtMatrixLayoutCreate", f.layout_create);
  bind("cublasLtMatrixLayoutDestroy", f.layout_destroy);
  bind("cublasLtMatmulPreferenceCreate", f.preference_create);
  bind("cublasLtMatmulPreferenceDestroy", f.preference_destroy);
  bind("cublasLtMatmulPreferenceSetAttribute", f.preference_set_attribute);
  return blas;
}

const BlasLibrary& blas_library() {
  static const BlasLibrary library = open_blas();
  return library;
}

}  // namespace

const BlasFunctions& blas() {
  const BlasLibrary& library = blas_library();
  if (!library.found.missing.empty()) throw EnvironmentError(library.found.missing, kLibraryHint);
  return library.functions;
}

LibraryVersion blas_version() {
  const BlasLibrary& library = blas_library();
  if (!library.found.missing.empty()) return {0, library.found.path, library.found.missing};
  return {library.functions.get_version(), library.found.path, ""};
}

void check_blas(int code, const char* call, const char* file, int line) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  const int exit_code = code == CUBLAS_STATUS_ALLOC_FAILED ? BenchExit::kOutOfMemory : BenchExit::kInternal;
  fail(exit_code, call, blas().get_status_name(static_cast<cublasStatus_t>(code)), code, file, line);
}

}  // namespace krigtune::cuda
