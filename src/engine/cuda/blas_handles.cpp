#include "cuda/blas_handles.h"

#include <stdexcept>

namespace krigtune::cuda {

BlasHandle make_blas_handle() {
  cublasLtHandle_t handle = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtCreate(&handle));
  return BlasHandle(handle);
}

MatmulDescription make_matmul_description() {
  cublasLtMatmulDesc_t description = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  return MatmulDescription(description);
}

MatrixLayout make_layout(DType type, std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t layout = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtMatrixLayoutCreate(&layout, blas_type(type), static_cast<std::uint64_t>(rows),
                                                 static_cast<std::uint64_t>(cols), rows));
  return MatrixLayout(layout);
}

MatmulPreference make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
  return MatmulPreference(preference);
}

cudaDataType_t blas_type(DType type) {
  switch (type) {
    case DType::kFp32:
      return CUDA_R_32F;
    case DType::kBf16:
      return CUDA_R_16BF;
    case DType::kFp16:
      return CUDA_R_16F;
    default:
      throw std::logic_error("only numbers can be multiplied");
  }
}

}  // namespace krigtune::cuda
