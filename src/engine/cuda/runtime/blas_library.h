#pragma once
#include <cublasLt.h>

#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {

/// The functions of cuBLASLt that the program calls, taken from the library that is found at run time. Their names are
/// the library's without "cublasLt".
struct BlasFunctions {
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtGetStatusName) get_status_name;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoCheck) algo_check;
  decltype(&cublasLtMatmulAlgoConfigSetAttribute) algo_config_set_attribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set_attribute;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_attribute;
};
/// Opens cuBLASLt at the first call. Throws EnvironmentError if there is none.
const BlasFunctions& blas();

/// Throws DeviceError unless cuBLASLt's code is 0: with kOutOfMemory if an allocation failed, otherwise with kInternal.
void check_blas(int code, const char* call, const char* file, int line);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_BLAS(call) ::krigtune::cuda::check_blas(static_cast<int>(call), #call, __FILE__, __LINE__)
