#pragma once
// The functions of one KernelUnit: what their files define once for every kind of vector unit, each time under another
// namespace (CMakeLists.txt). An inline function that was compiled for AVX-512 must not be what the linker keeps for
// the whole program.
#include "host/kernels/gemm.h"
#include "host/kernels/kernel.h"

namespace krigtune::KRIGTUNE_KERNELS {

template <class T>
void multiply(const Product<T>& product, T* scratch);

// One file a family.
template <class T>
void load_batch(const KernelCall& call);
template <class T>
void zero(const KernelCall& call);
template <class T>
void add(const KernelCall& call);
template <class T>
void accumulate(const KernelCall& call);
template <class T>
void embedding_forward(const KernelCall& call);
template <class T>
void embedding_backward(const KernelCall& call);
template <class T>
void positions_forward(const KernelCall& call);
template <class T>
void positions_backward(const KernelCall& call);
template <class T>
void layer_norm_forward(const KernelCall& call);
template <class T>
void layer_norm_backward(const KernelCall& call);
template <class T>
void rms_norm_forward(const KernelCall& call);
template <class T>
void rms_norm_backward(const KernelCall& call);
template <class T>
void linear_forward(const KernelCall& call);
template <class T>
void linear_backward_input(const KernelCall& call);
template <class T>
void linear_backward_weight(const KernelCall& call);
template <class T>
void add_bias(const KernelCall& call);
template <class T>
void bias_backward(const KernelCall& call);
template <class T>
void rotary_forward(const KernelCall& call);
template <class T>
void rotary_backward(const KernelCall& call);
template <class T>
void attention_forward(const KernelCall& call);
template <class T>
void attention_backward(const KernelCall& call);
template <class T>
void gelu_forward(const KernelCall& call);
template <class T>
void gelu_backward(const KernelCall& call);
template <class T>
void swiglu_forward(const KernelCall& call);
template <class T>
void swiglu_backward(const KernelCall& call);
template <class T>
void dropout_forward(const KernelCall& call);
template <class T>
void dropout_backward(const KernelCall& call);
template <class T>
void cross_entropy(const KernelCall& call);
template <class T>
void vocab_max(const KernelCall& call);
template <class T>
void vocab_sum_exp(const KernelCall& call);
template <class T>
void vocab_cross_entropy(const KernelCall& call);
template <class T>
void gradient_norm(const KernelCall& call);
template <class T>
void update_loss_scale(const KernelCall& call);
template <class T>
void adamw(const KernelCall& call);
template <class T>
void sgd(const KernelCall& call);

std::int64_t linear_scratch(const Shape& shape);
std::int64_t rotary_scratch(const Shape& shape);
std::int64_t attention_scratch(const Shape& shape);

}  // namespace krigtune::KRIGTUNE_KERNELS
