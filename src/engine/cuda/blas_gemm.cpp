// cuBLASLt is column-major, and a row-major matrix is its own transpose there: D = A B becomes D^T = B^T A^T, so that
// the library's first matrix is our b, and its rows are our columns.
#include "cuda/blas_gemm.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <stdexcept>

#include "cuda/check.h"
#include "cuda/handles.h"

namespace krigtune::cuda {
namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20U;  // what NVIDIA recommends for Hopper
constexpr std::uint64_t kMostAlignmentBytes = 256;                 // more helps no kernel

struct DestroyHandle {
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
};
struct DestroyDescription {
  void operator()(cublasLtMatmulDescOpaque_t* description) const { cublasLtMatmulDescDestroy(description); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { cublasLtMatrixLayoutDestroy(layout); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyLayout>;

cudaDataType_t data_type(DType type) {
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

Layout make_layout(DType type, std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t layout = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtMatrixLayoutCreate(&layout, data_type(type), static_cast<std::uint64_t>(rows),
                                                 static_cast<std::uint64_t>(cols), rows));
  return Layout(layout);
}

std::uint32_t alignment_bytes(const Product& p) {
  const auto all = std::bit_cast<std::uintptr_t>(p.a.data) | std::bit_cast<std::uintptr_t>(p.b.data) |
                   std::bit_cast<std::uintptr_t>(p.d.data) | kMostAlignmentBytes;
  return static_cast<std::uint32_t>(all & (~all + 1));  // its lowest bit
}

/// What an algorithm depends on.
struct Key {
  std::int64_t rows, cols, depth;
  bool transpose_a, transpose_b;
  DType a, b, d;
  std::uint32_t alignment;

  explicit Key(const Product& p)
      : rows(p.rows),
        cols(p.cols),
        depth(p.depth),
        transpose_a(p.transpose_a),
        transpose_b(p.transpose_b),
        a(p.a.type),
        b(p.b.type),
        d(p.d.type),
        alignment(alignment_bytes(p)) {}
  auto operator<=>(const Key&) const = default;
};

struct Prepared {
  std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyDescription> description;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm{};
};

void set_transpose(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, bool transpose) {
  const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulDescSetAttribute(description, which, &operation, sizeof(operation)));
}

Prepared describe(const Product& p) {
  cublasLtMatmulDesc_t description = nullptr;
  KRIGTUNE_CHECK_BLAS(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  Prepared prepared;
  prepared.description.reset(description);
  set_transpose(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b);
  set_transpose(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a);
  prepared.b = p.transpose_b ? make_layout(p.b.type, p.depth, p.cols) : make_layout(p.b.type, p.cols, p.depth);
  prepared.a = p.transpose_a ? make_layout(p.a.type, p.rows, p.depth) : make_layout(p.a.type, p.depth, p.rows);
  prepared.d = make_layout(p.d.type, p.cols, p.rows);
  return prepared;
}

class BlasGemm final : public Gemm {
 public:
  BlasGemm() : workspace_(allocate_device(kWorkspaceBytes)) {
    cublasLtHandle_t handle = nullptr;
    KRIGTUNE_CHECK_BLAS(cublasLtCreate(&handle));
    handle_.reset(handle);
  }

  void prepare(const Product& product) override {
    const Key key(product);
    if (prepared_.find(key) != prepared_.end()) return;
    Prepared prepared = describe(product);
    choose(product, key, prepared);
    prepared_.emplace(key, std::move(prepared));
  }

  void multiply(const Product& product, Queue queue) override {
    const auto found = prepared_.find(Key(product));
    if (found == prepared_.end()) throw std::logic_error("a product was not prepared before the first step");
    const Prepared& with = found->second;
    const float alpha = 1.0F;
    const float beta = product.d.adds() ? 1.0F : 0.0F;
    KRIGTUNE_CHECK_BLAS(cublasLtMatmul(handle_.get(), with.description.get(), &alpha, product.b.data, with.b.get(),
                                       product.a.data, with.a.get(), &beta, product.d.data, with.d.get(),
                                       product.d.data, with.d.get(), &with.algorithm, workspace_.get(),
                                       static_cast<std::size_t>(kWorkspaceBytes), queue));
  }

 private:
  void choose(const Product& p, const Key& key, Prepared& prepared) const {
    cublasLtMatmulPreference_t made = nullptr;
    KRIGTUNE_CHECK_BLAS(cublasLtMatmulPreferenceCreate(&made));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference> preference(made);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      KRIGTUNE_CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value)));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(attribute, key.alignment);
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    KRIGTUNE_CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(handle_.get(), prepared.description.get(), prepared.b.get(),
                                                       prepared.a.get(), prepared.d.get(), prepared.d.get(), made, 1,
                                                       &best, &found));
    if (found == 0) {
      throw std::runtime_error(fmt::format("cuBLASLt has no algorithm for {} x {} x {}", p.rows, p.cols, p.depth));
    }
    prepared.algorithm = best.algo;
  }

  std::unique_ptr<cublasLtContext, DestroyHandle> handle_;
  DeviceBytes workspace_;
  std::map<Key, Prepared> prepared_;
};

}  // namespace

std::unique_ptr<Gemm> make_blas_gemm() { return std::make_unique<BlasGemm>(); }

}  // namespace krigtune::cuda
