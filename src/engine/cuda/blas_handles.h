#pragma once
// Owners of what cuBLASLt hands out. All functions throw DeviceError.
#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "cuda/check.h"
#include "krigtune/plan/step_plan.h"

namespace krigtune::cuda {

struct DestroyBlas {
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
  void operator()(cublasLtMatmulDescOpaque_t* description) const { cublasLtMatmulDescDestroy(description); }
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
using BlasHandle = std::unique_ptr<cublasLtContext, DestroyBlas>;
using MatmulDescription = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyBlas>;
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyBlas>;
using MatmulPreference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyBlas>;

BlasHandle make_blas_handle();
/// Of a product with sums in fp32.
MatmulDescription make_matmul_description();
/// Column-major and dense. `type`: fp32, bf16 or fp16.
MatrixLayout make_layout(DType type, std::int64_t rows, std::int64_t cols);
MatmulPreference make_preference();
cudaDataType_t blas_type(DType type);

template <class T>
void set_attribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, const T& value) {
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulDescSetAttribute(description, which, &value, sizeof(value)));
}
template <class T>
void set_attribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which, const T& value) {
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)));
}

}  // namespace krigtune::cuda
