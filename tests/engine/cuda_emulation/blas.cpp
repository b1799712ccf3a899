// Stands in for cuBLASLt (include/cublasLt.h).
#include <cublasLt.h>

#include <cmath>
#include <memory>
#include <vector>

#include "engine/cuda/runtime/blas_library.h"
#include "engine/cuda/runtime/library_versions.h"
#include "engine/host/number_types.h"

namespace {

using krigtune::schedule::DType;

DType type_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? DType::kFp32 : type == CUDA_R_16F ? DType::kFp16 : DType::kBf16;
}

double read(const void* data, cudaDataType_t type, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<double>(static_cast<const float*>(data)[i]);
  float value = 0.0F;
  krigtune::engine::widen(type_of(type), static_cast<const std::uint16_t*>(data) + i, 1, &value);
  return static_cast<double>(value);
}

void write(void* data, cudaDataType_t type, std::int64_t i, double wide) {
  const auto value = static_cast<float>(wide);
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[i] = value;
  } else {
    krigtune::engine::round_to(type_of(type), &value, 1, static_cast<std::uint16_t*>(data) + i);
  }
}

/// Returns the matrix, or its transpose, row by row.
std::vector<double> widened(const void* data, const cublasLtMatrixLayoutOpaque_t& layout, bool transposed) {
  const std::int64_t rows = transposed ? layout.cols : layout.rows;
  const std::int64_t cols = transposed ? layout.rows : layout.cols;
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      all.push_back(read(data, layout.type, transposed ? i * layout.ld + j : j * layout.ld + i));
    }
  }
  return all;
}

// GELU in the tanh form (Hendrycks and Gimpel 2016), which is the library's.
constexpr double kRoot = 0.7978845608028654;
constexpr double kCubic = 0.044715;
double gelu(double x) { return 0.5 * x * (1.0 + std::tanh(kRoot * (x + kCubic * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(kRoot * (x + kCubic * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kRoot * (1.0 + 3.0 * kCubic * x * x);
}

/// A product as the caller describes it.
struct Asked {
  cublasLtMatmulDescOpaque_t description;
  cublasLtMatrixLayoutOpaque_t a, b, d;

  bool has(std::uint32_t part) const { return (description.epilogue & part) != 0; }
  bool has_bias() const { return has(4); }
  bool has_gelu() const { return has(32); }
  bool has_gelu_gradient() const { return has(64); }
  bool has_aux() const { return has(128); }
  bool sums_columns() const { return has(16); }  // of D's transpose, which is the caller's matrix
  bool sums_b() const { return has(512); }
  bool has_vector() const { return has_bias() || sums_columns() || sums_b(); }
  bool is_plain() const { return !has_aux() && !sums_columns() && !sums_b(); }

  std::int64_t depth() const { return description.transpose_a == CUBLAS_OP_T ? a.rows : a.cols; }
  bool fits() const {
    const std::int64_t m = description.transpose_a == CUBLAS_OP_T ? a.cols : a.rows;
    const std::int64_t n = description.transpose_b == CUBLAS_OP_T ? b.rows : b.cols;
    const std::int64_t of_b = description.transpose_b == CUBLAS_OP_T ? b.cols : b.rows;
    const bool vector_fits = !has_vector() || (description.bias != nullptr && description.bias_type == d.type);
    return m == d.rows && n == d.cols && of_b == depth() && a.type == b.type && a.ld >= a.rows && b.ld >= b.rows &&
           d.ld >= d.rows && vector_fits && aux_fits();
  }
  bool aux_fits() const {
    constexpr std::uintptr_t kAlignment = 16;
    return !has_aux() || (description.aux != nullptr && description.aux_ld % 8 == 0 && description.aux_ld >= d.rows &&
                          reinterpret_cast<std::uintptr_t>(description.aux) % kAlignment == 0);
  }
};

struct Multiplied {
  Asked asked;
  const void* a;
  const void* b;
  void* d;
  double alpha, beta;

  void operator()() const {
    const auto left = widened(a, asked.a, asked.description.transpose_a == CUBLAS_OP_T);
    const auto right = widened(b, asked.b, asked.description.transpose_b == CUBLAS_OP_N);  // column by column
    const auto depth = static_cast<std::size_t>(asked.depth());
    std::vector<double> sums(static_cast<std::size_t>(asked.d.rows), 0.0);
    for (std::int64_t j = 0; j < asked.d.cols; ++j) {
      const double* of_b = right.data() + static_cast<std::size_t>(j) * depth;
      for (std::int64_t i = 0; i < asked.d.rows; ++i) {
        const double* of_a = left.data() + static_cast<std::size_t>(i) * depth;
        double sum = 0.0;
        for (std::size_t k = 0; k < depth; ++k) sum += of_a[k] * of_b[k];
        sums[static_cast<std::size_t>(i)] += put(i, j, alpha * sum);
      }
      if (asked.sums_b()) sum_column(j, of_b, depth);
    }
    for (std::int64_t i = 0; asked.sums_columns() && i < asked.d.rows; ++i) {
      write(asked.description.bias, asked.d.type, i, sums[static_cast<std::size_t>(i)]);
    }
  }

 private:
  // Writes one element of D, and returns what it adds to the columns' sums.
  double put(std::int64_t i, std::int64_t j, double value) const {
    const cublasLtMatmulDescOpaque_t& how = asked.description;
    const std::int64_t at = j * asked.d.ld + i;
    if (beta != 0.0) value += beta * read(d, asked.d.type, at);
    if (asked.has_bias()) value += read(how.bias, asked.d.type, i);
    if (asked.has_gelu()) {
      write(how.aux, asked.d.type, j * how.aux_ld + i, value);
      value = gelu(value);
    }
    if (asked.has_gelu_gradient()) value *= gelu_slope(read(how.aux, asked.d.type, j * how.aux_ld + i));
    write(d, asked.d.type, at, value);
    return value;
  }
  void sum_column(std::int64_t j, const double* of_b, std::size_t depth) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < depth; ++k) sum += of_b[k];
    write(asked.description.bias, asked.d.type, j, sum);
  }
};

constexpr std::size_t kNumber = 0, kParts = 1, kScheme = 2;

bool is_split(const cublasLtMatmulAlgo_t& algorithm) { return algorithm.data[kParts] > 1; }

bool is_known(const cublasLtMatmulAlgo_t& algorithm) {
  const std::uint64_t number = algorithm.data[kNumber];
  return number >= 1 && number <= krigtune::emulation::blas_behaviour().times.size() &&
         (!is_split(algorithm) || algorithm.data[kScheme] == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

std::size_t workspace_of(const Asked& asked, const cublasLtMatmulAlgo_t& algorithm) {
  if (!is_split(algorithm)) return 0;
  return static_cast<std::size_t>(algorithm.data[kParts]) * sizeof(float) *
         static_cast<std::size_t>(asked.d.rows * asked.d.cols);
}

cublasStatus_t checked(const Asked& asked) {
  if (!asked.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_offered = asked.is_plain() || krigtune::emulation::blas_behaviour().has_epilogues;
  return is_offered ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class T>
cublasStatus_t made(T** place) {
  *place = std::make_unique<T>().release();
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t ended(T* pointer) {
  const std::unique_ptr<T> owner(pointer);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t taken(T* to, const void* value, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  *to = *static_cast<const T*>(value);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

namespace krigtune::emulation {

BlasBehaviour& blas_behaviour() {
  thread_local BlasBehaviour behaviour;
  return behaviour;
}

}  // namespace krigtune::emulation

std::size_t cublasLtGetVersion() { return krigtune::emulation::blas_behaviour().version; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return made(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return ended(handle); }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t /*c_layout*/, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* /*workspace*/, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  const Asked asked{*description, *a_layout, *b_layout, *d_layout};
  const cublasStatus_t status = checked(asked);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (c != d || !is_known(*algorithm) || workspace_of(asked, *algorithm) > workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  krigtune::emulation::BlasBehaviour& behaviour = krigtune::emulation::blas_behaviour();
  const auto number = static_cast<int>(algorithm->data[kNumber]);
  const bool split = is_split(*algorithm);
  constexpr int kOfPart = 100;
  ++behaviour.multiplied[number + (split ? kOfPart * (static_cast<int>(algorithm->data[kParts]) - 1) : 0)];
  ++behaviour.with_epilogue[description->epilogue];
  const int time = (split ? behaviour.time_of_split : behaviour.times[static_cast<std::size_t>(number - 1)]) +
                   behaviour.time_of_epilogue[description->epilogue];
  for (int i = 1; i < time; ++i) krigtune::emulation::enqueue(stream, [] {});
  const Multiplied product{asked,
                           a,
                           b,
                           d,
                           static_cast<double>(*static_cast<const float*>(alpha)),
                           static_cast<double>(*static_cast<const float*>(beta))};
  krigtune::emulation::enqueue(stream, product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t /*c*/,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const Asked asked{*description, *a, *b, *d};
  if (!is_known(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  *result = {*algorithm, workspace_of(asked, *algorithm), checked(asked), 1.0F, {}};
  return result->state;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, const void* value,
                                                    std::size_t bytes) {
  std::uint32_t number = 0;
  const cublasStatus_t status = taken(&number, value, bytes);
  algorithm->data[which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? kParts : kScheme] = number;
  return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t /*preference*/, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  *found = 0;
  const cublasStatus_t status = checked({*description, *a, *b, *d});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto count = static_cast<int>(krigtune::emulation::blas_behaviour().times.size());
  for (; *found < wanted && *found < count; ++*found) {
    results[*found] = {{{static_cast<std::uint64_t>(*found) + 1, 1}}, 0, CUBLAS_STATUS_SUCCESS, 1.0F, {}};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t /*compute*/,
                                        cudaDataType_t /*scale*/) {
  return made(description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return ended(description); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return taken(&description->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return taken(&description->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return taken(&description->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return taken(&description->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return taken(&description->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return taken(&description->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return taken(&description->bias_type, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t cols, std::int64_t ld) {
  const cublasStatus_t status = made(layout);
  **layout = {type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), ld};
  return status;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return ended(layout); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return made(preference); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return ended(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    std::size_t bytes) {
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return taken(&preference->workspace_bytes, value, bytes);
  std::uint32_t alignment_bytes = 0;
  return taken(&alignment_bytes, value, bytes);
}

namespace krigtune::cuda {

const BlasFunctions& blas() {
  static const BlasFunctions functions{cublasLtGetVersion,
                                       cublasLtGetStatusName,
                                       cublasLtCreate,
                                       cublasLtDestroy,
                                       cublasLtMatmul,
                                       cublasLtMatmulAlgoCheck,
                                       cublasLtMatmulAlgoConfigSetAttribute,
                                       cublasLtMatmulAlgoGetHeuristic,
                                       cublasLtMatmulDescCreate,
                                       cublasLtMatmulDescDestroy,
                                       cublasLtMatmulDescSetAttribute,
                                       cublasLtMatrixLayoutCreate,
                                       cublasLtMatrixLayoutDestroy,
                                       cublasLtMatmulPreferenceCreate,
                                       cublasLtMatmulPreferenceDestroy,
                                       cublasLtMatmulPreferenceSetAttribute};
  return functions;
}

LibraryVersion blas_version() { return {1, "emulated", ""}; }

void check_blas(int code, const char* call, const char* file, int line) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  fail(BenchExit::kInternal, call, cublasLtGetStatusName(static_cast<cublasStatus_t>(code)), code, file, line);
}

}  // namespace krigtune::cuda
